/**
 * The floor of the HTTP bench, a process of its own: the API's server, framework, driver and size of
 * pool, and routes that do one statement each.
 */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createPool } from '../../db/transaction';

/** Made by the bench beforehand. */
export const PLAIN_TABLE = `create table plain_rows (
  id text primary key,
  amount_minor bigint not null,
  currency text not null,
  subject text not null,
  created_at timestamptz not null default now()
)`;

interface PlainRow {
  order_id: string;
  amount: number;
  currency: string;
  subject: string;
}

async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const pool = createPool({
    databaseUrl: env['DATABASE_URL'] ?? '',
    max: Number(env['API_POOL_SIZE']),
    connectionTimeoutMs: 3_000,
    statementTimeoutMs: 5_000,
    applicationName: 'bench-plain',
    onIdleError: (error) => console.error(error),
  });
  const app = new Hono();
  app.get('/healthz', (c) => c.json({ ok: true }));
  app.post('/rows', async (c) => {
    const row = await c.req.json<PlainRow>();
    await pool.query({
      name: 'insert',
      text: `insert into plain_rows (id, amount_minor, currency, subject)
        values ($1::text, $2::bigint, $3::text, $4::text)`,
      values: [row.order_id, row.amount, row.currency, row.subject],
    });
    return c.json(row, 201);
  });
  app.post('/rows-once', async (c) => {
    const row = await c.req.json<PlainRow>();
    const { rowCount } = await pool.query({
      name: 'insert-once',
      text: `insert into plain_rows (id, amount_minor, currency, subject)
        values ($1::text, $2::bigint, $3::text, $4::text) on conflict do nothing`,
      values: [row.order_id, row.amount, row.currency, row.subject],
    });
    return c.json(row, rowCount === 1 ? 201 : 200);
  });
  const server = serve({
    fetch: app.fetch,
    hostname: '127.0.0.1',
    port: Number(env['API_PORT']),
  }) as Server;
  await once(server, 'listening');
  process.once('SIGTERM', () => process.exit(0));
}

// The bench reads the table's definition from here; only as a process of its own is it a server.
if (require.main === module) {
  main(process.env).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
}
