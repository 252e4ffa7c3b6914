import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { PostgresServer } from '../../scripts/servers/postgres';
import { startPostgres } from '../../scripts/servers/postgres';
import { isReachable, postgresUser } from '../../scripts/servers/postgres-binaries';

async function query(server: PostgresServer, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: server.databaseUrl(), query_timeout: 10_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

const FROZEN_MS = 300;

describe('a temporary server', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    await query(server, 'create table kept (n integer)');
    await query(server, 'insert into kept values (1)');
  });
  afterAll(() => server.end());

  test('comes back after a restart at the same address with the same data', async () => {
    const before = { url: server.databaseUrl(), pid: server.pid };
    await server.restart();
    expect(server.databaseUrl()).toBe(before.url);
    expect(server.pid).not.toBe(before.pid);
    expect(await query(server, 'select n from kept')).toEqual([{ n: 1 }]);
  });

  test('comes back after a crash, and an open connection sees the crash as an error', async () => {
    const client = new pg.Client({ connectionString: server.databaseUrl() });
    const lost = new Promise((resolve) => client.once('error', resolve));
    await client.connect();
    await server.stop('immediate');
    expect(await lost).toBeInstanceOf(Error);
    expect(server.running).toBe(false);
    await server.restart();
    expect(await query(server, 'select n from kept')).toEqual([{ n: 1 }]);
  });

  test('answers nothing while it is paused, and goes on with the same connection', async () => {
    const client = new pg.Client({ connectionString: server.databaseUrl() });
    await client.connect();
    try {
      await server.pause();
      const answer = client.query<{ one: number }>('select 1 as one');
      const first = await Promise.race([
        answer.then(() => 'answered'),
        new Promise((resolve) => setTimeout(() => resolve('frozen'), FROZEN_MS)),
      ]);
      expect(first).toBe('frozen');
      await server.resume();
      expect((await answer).rows).toEqual([{ one: 1 }]);
    } finally {
      await server.resume();
      await client.end();
    }
  });

  test('listens on the loopback address alone', async () => {
    expect(await query(server, 'show listen_addresses')).toEqual([
      { listen_addresses: '127.0.0.1' },
    ]);
    expect(await query(server, 'show unix_socket_directories')).toEqual([
      { unix_socket_directories: '' },
    ]);
  });
});

describe('a server with a data folder', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'payment-saga-test-'));
  });
  afterEach(() => {
    const note = join(folder, 'postgres-location');
    if (existsSync(note)) rmSync(readFileSync(note, 'utf8').trim(), { recursive: true });
    rmSync(folder, { recursive: true });
  });

  test('keeps its data, waits for the disk, and starts over what a killed run left', async () => {
    const first = await startPostgres({ dataFolder: folder });
    try {
      await query(first, 'create table kept (n integer)');
      expect(await query(first, 'show fsync')).toEqual([{ fsync: 'on' }]);
      // The first server is still alive on this folder, as after a kill -9 of its keeper.
      const second = await startPostgres({ dataFolder: folder });
      try {
        expect(first.running).toBe(false);
        expect(await query(second, 'select n from kept')).toEqual([]);
      } finally {
        await second.end();
      }
    } finally {
      await first.end();
    }
  });

  test('is not held up by the pid file of a process that is somebody else by now', async () => {
    const first = await startPostgres({ dataFolder: folder });
    await first.end();
    const note = join(folder, 'postgres-location');
    const home = existsSync(note) ? readFileSync(note, 'utf8').trim() : join(folder, 'postgres');
    writeFileSync(join(home, 'data', 'postmaster.pid'), `${process.pid}\n`);
    const second = await startPostgres({ dataFolder: folder });
    expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }]);
    await second.end();
  });

  test('lives in the temporary folder when its user cannot enter the checkout', async () => {
    const user = postgresUser();
    // Only a root caller lends the server another user; anybody else can enter his own folder.
    const closed = join(folder, 'closed');
    mkdirSync(closed, { mode: 0o700 });
    expect(isReachable(join(closed, 'data', 'postgres'), user)).toBe(user === undefined);
    expect(isReachable(tmpdir(), user)).toBe(true);
    if (user === undefined) return;
    const first = await startPostgres({ dataFolder: join(closed, 'data') });
    await query(first, 'create table kept (n integer)');
    await first.end();
    const home = readFileSync(join(closed, 'data', 'postgres-location'), 'utf8').trim();
    const second = await startPostgres({ dataFolder: join(closed, 'data') });
    expect(await query(second, 'select n from kept')).toEqual([]);
    await second.end();
    rmSync(home, { recursive: true });
  });
});
