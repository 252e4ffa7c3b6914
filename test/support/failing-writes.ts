import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { Pool } from '../../db/transaction';

/** A write that fails a few times, by a trigger in the test's own database. */
export interface FailingWrite {
  /** How often the write was tried by now, failed tries included. */
  tries(): Promise<number>;
}

export type FailingTable = 'captures' | 'channel_callbacks' | 'order_events' | 'notifications';

/**
 * Makes the first `times` inserts into `table` for one order fail with the SQLSTATE. They are counted
 * by a sequence, because what a sequence gave out is not taken back when the transaction is undone.
 */
export async function failInserts(
  pool: Pool,
  write: { table: FailingTable; orderId: string; times: number; code: string },
): Promise<FailingWrite> {
  const name = `fail_${randomBytes(4).toString('hex')}`;
  const literal = pg.escapeLiteral;
  await pool.query(`create sequence ${name}`);
  await pool.query(`
    create function ${name}() returns trigger language plpgsql as $$
    begin
      if nextval(${literal(name)}) <= ${write.times} then
        raise exception 'the test lets this write fail' using errcode = ${literal(write.code)};
      end if;
      return new;
    end $$`);
  await pool.query(`
    create trigger ${name} before insert on ${write.table} for each row
    when (new.order_id = ${literal(write.orderId)}) execute function ${name}()`);
  return {
    async tries() {
      const { rows } = await pool.query<{ tries: number }>(
        `select case when is_called then last_value else 0 end as tries from ${name}`,
      );
      return rows[0]?.tries ?? 0;
    },
  };
}
