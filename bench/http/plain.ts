import { join } from 'node:path';
import { startProcess } from '../../scripts/servers/children';
import { freePort } from '../../scripts/servers/wait';
import type { Saga } from '../../test/support/saga';
import { HttpClient } from '../saga/http-client';
import { PLAIN_TABLE } from './plain-app';

/** What the API's own default is; both pools have it. */
export const POOL_SIZE = 10;

/** The plain app beside the API, in the same database. */
export interface Plain {
  /** One insert of a row that was never there. */
  insert(): Promise<void>;
  /** One insert of a row that is there already, `do nothing`; the number is that of an earlier insert. */
  insertAgain(index: number): Promise<void>;
  end(): Promise<void>;
}

export async function startPlain(saga: Saga, logFolder: string): Promise<Plain> {
  await saga.pool.query(PLAIN_TABLE);
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const app = await startProcess({
    name: 'plain-app',
    script: 'bench/http/plain-app.ts',
    logFile: join(logFolder, 'plain-app.log'),
    readyUrl: `${base}/healthz`,
    env: {
      DATABASE_URL: String(saga.env['DATABASE_URL']),
      API_POOL_SIZE: String(POOL_SIZE),
      API_PORT: String(port),
    },
  });
  const http = new HttpClient();
  const headers = { 'content-type': 'application/json' };
  const body = (index: number) =>
    JSON.stringify({
      order_id: `p-${index}`,
      amount: 10_000,
      currency: 'CNY',
      subject: `Order p-${index}`,
      expires_in: 1_800,
    });
  let inserted = 0;
  return {
    async insert() {
      await http.expect([201], `${base}/rows`, body(++inserted), headers);
    },
    async insertAgain(index) {
      const known = 1 + (index % Math.max(1, inserted));
      await http.expect([200], `${base}/rows-once`, body(known), headers);
    },
    async end() {
      http.close();
      await app.stop();
    },
  };
}
