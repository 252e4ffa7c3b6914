import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { Saga } from './saga';

/** What other sessions could see of an order, at every commit. */
export interface CommitWatch {
  /** Commits that touched the order, and how many of them left it as described. */
  seen(orderId: string): Promise<{ commits: number; bad: number }>;
}

const TABLES = ['orders', 'captures', 'refunds'];

/**
 * Looks at an order at the end of every transaction that touched its rows, right before the commit:
 * what a sample in between could miss is seen here for certain.
 *
 * @param bad an SQL condition over the order's row `o` that must never be committed
 */
export async function watchCommits(saga: Saga, bad: string): Promise<CommitWatch> {
  const name = `watch_${randomBytes(4).toString('hex')}`;
  await saga.pool.query(`create table ${name} (order_id text not null, is_bad boolean not null)`);
  await saga.pool.query(`
    create function ${name}() returns trigger language plpgsql as $$
    begin
      insert into ${name} (order_id, is_bad)
      select o.order_id, coalesce((${bad}), false) from orders o
      where o.merchant_id = new.merchant_id and o.order_id = new.order_id;
      return null;
    end $$`);
  for (const table of TABLES) {
    await saga.pool.query(`
      create constraint trigger ${name} after insert or update on ${table}
      deferrable initially deferred for each row
      when (new.merchant_id = ${pg.escapeLiteral(saga.merchantId)}) execute function ${name}()`);
  }
  return {
    async seen(orderId) {
      const [row] = await saga.rows<{ commits: number; bad: number }>(
        `select count(*)::int as commits, count(*) filter (where is_bad)::int as bad
         from ${name} where order_id = $1::text`,
        orderId,
      );
      return row ?? { commits: 0, bad: 0 };
    },
  };
}
