import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { CHANNEL, FEE_BASIS_POINTS } from './reconcile-books';

export interface Floor {
  totalMs: number;
  copyMs: number;
  analyzeMs: number;
  joinMs: number;
  /** What the join counts; it cannot say what differs, nor see every kind. */
  differing: number;
}

/**
 * The least that any comparison does: the rows, ready as text, into a bare table; its statistics; one
 * full outer join with our books that counts what is not equal. Same memory for the join as ours.
 */
export async function measureFloor(
  databaseUrl: string,
  input: { textFile: string; day: string },
): Promise<Floor> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`set work_mem = '256MB'; set hash_mem_multiplier = 2`);
    await client.query(`create table floor_lines (line_no integer, kind text, status text,
      out_trade_no text, channel_trade_no text, out_refund_no text, channel_refund_no text,
      amount_minor bigint, currency text, fee_minor bigint, occurred_at timestamptz, word text,
      error text)`);
    const [copyMs] = await timed(() =>
      pipeline(
        createReadStream(input.textFile, { highWaterMark: 64 * 1024 }),
        client.query(copyFrom('copy floor_lines from stdin')),
      ),
    );
    const [analyzeMs] = await timed(() => client.query('analyze floor_lines'));
    const [joinMs, { rows }] = await timed(() =>
      client.query<{ differing: number }>(`
        select count(*)::int as differing from (
          select coalesce(out_refund_no, out_trade_no) as no, amount_minor, currency, fee_minor
          from floor_lines
        ) l
        full join (
          select r.out_trade_no as no, c.amount_minor::bigint as amount_minor,
            c.currency::text as currency,
            (c.amount_minor * ${FEE_BASIS_POINTS} + 5000) / 10000 as fee_minor
          from captures c join pay_records r using (pay_record_id)
          where c.channel = '${CHANNEL}' and c.status = 'captured'
            and c.paid_at >= '${input.day}T00:00:00Z'
            and c.paid_at < '${input.day}T00:00:00Z'::timestamptz + interval '1 day'
          union all
          select out_refund_no, amount_minor, currency,
            -((amount_minor * ${FEE_BASIS_POINTS} + 5000) / 10000)
          from refunds where channel = '${CHANNEL}' and status = 'succeeded'
            and first_sent_at >= '${input.day}T00:00:00Z'
            and first_sent_at < '${input.day}T00:00:00Z'::timestamptz + interval '1 day'
        ) b on b.no = l.no
        where l.no is null or b.no is null or l.amount_minor is distinct from b.amount_minor
          or l.currency is distinct from b.currency or l.fee_minor is distinct from b.fee_minor`),
    );
    await client.query('drop table floor_lines');
    return {
      totalMs: copyMs + analyzeMs + joinMs,
      copyMs,
      analyzeMs,
      joinMs,
      differing: rows[0]?.differing ?? 0,
    };
  } finally {
    await client.end();
  }
}

async function timed<T>(act: () => Promise<T>): Promise<[ms: number, result: T]> {
  const began = performance.now();
  const result = await act();
  return [performance.now() - began, result];
}
