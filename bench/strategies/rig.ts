/** The servers of one run of the bench, with a fresh database for each part of it. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { startPostgres } from '../../scripts/servers/postgres';
import type { PostgresServer } from '../../scripts/servers/postgres';
import { findRedis, redisSettings, startRedis } from '../redis-server';
import type { RedisServer } from '../redis-server';
import { connectRedis } from './redis-client';
import { findPgbench, pgbenchVersion } from './pgbench';

/**
 * As a payments database is run: every commit waits for the disk. The rest is what a small machine of
 * this kind would have, so that checkpoints do not come every few seconds.
 */
const POSTGRES = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '1GB',
  max_wal_size: '8GB',
};

const MIGRATE_WITHIN_MS = 60_000;

export interface Servers {
  postgres: PostgresServer;
  redis: RedisServer | { missing: string };
  pgbench: string | undefined;
  /** For effect logs. */
  folder: string;
  /** What the figures depend on, for the description of the rig. */
  about: Record<string, string>;
  /** An empty database, or one with the product's schema; `use` gets its address and name. */
  withDatabase<T>(migrated: boolean, use: (url: string, name: string) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}

/** @throws when PostgreSQL does not say that it waits for the disk */
export async function startServers(): Promise<Servers> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-strategies-'));
  const settings = Object.entries(POSTGRES).map(([name, value]) => `${name}=${value}`);
  // A temporary server deletes itself whatever happens; its quick settings are overruled by these.
  const postgres = await startPostgres({ settings });
  const found = findRedis();
  let redis: Servers['redis'] | undefined;
  const end = async () => {
    if (redis && 'end' in redis) await redis.end();
    await postgres.end();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    redis = 'program' in found ? await startRedis(found.program) : found;
    const pgbench = findPgbench();
    const version = await checkDurable(postgres.databaseUrl());
    return {
      ...{ postgres, redis, pgbench, folder, end },
      about: {
        postgres: version,
        postgres_settings: settings.join(' '),
        redis: 'url' in redis ? `${redis.version} ${redisSettings()}` : redis.missing,
        pgbench: pgbench ? pgbenchVersion(pgbench) : 'not found',
        disk: fileSystemOf(folder),
      },
      withDatabase: withDatabases(postgres),
    };
  } catch (error) {
    await end();
    throw error;
  }
}

async function checkDurable(url: string): Promise<string> {
  return onServer(url, async (client) => {
    for (const name of ['fsync', 'synchronous_commit', 'full_page_writes']) {
      const { rows } = await client.query<Record<string, string>>(`show ${name}`);
      if (rows[0]?.[name] !== 'on') throw new Error(`PostgreSQL runs with ${name} off`);
    }
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? 'unknown';
  });
}

function withDatabases(postgres: PostgresServer): Servers['withDatabase'] {
  let count = 0;
  let template: Promise<string> | undefined;
  return async (migrated, use) => {
    const name = `bench_${++count}`;
    template ??= migrated ? makeTemplate(postgres) : undefined;
    const from = migrated ? await template : 'template1';
    const admin = postgres.databaseUrl();
    await onServer(admin, (client) => client.query(`create database ${name} template ${from}`));
    try {
      const url = postgres.databaseUrl(name);
      // What an earlier part left to be written must not be written during this one.
      await onServer(url, (client) => client.query('checkpoint'));
      return await use(url, name);
    } finally {
      await onServer(admin, (client) =>
        client.query(`drop database if exists ${name} with (force)`),
      );
    }
  };
}

/** The product's schema by its own migrations, in a process of their own: their library is ESM. */
async function makeTemplate(postgres: PostgresServer): Promise<string> {
  const name = 'bench_migrated';
  await onServer(postgres.databaseUrl(), (client) => client.query(`create database ${name}`));
  const script = join(__dirname, '..', '..', 'db', 'migrate.ts');
  await promisify(execFile)(process.execPath, ['--import', 'tsx', script], {
    env: { ...process.env, DATABASE_URL: postgres.databaseUrl(name) },
    timeout: MIGRATE_WITHIN_MS,
  });
  return name;
}

async function onServer<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/** A server of Redis without what an earlier part left in it. */
export async function emptyRedis(redis: RedisServer): Promise<void> {
  const client = await connectRedis(redis.url);
  try {
    await client.flushAll();
  } finally {
    client.destroy();
  }
}

/** Waiting for a disk that is memory proves nothing, so its kind belongs to the figures. */
function fileSystemOf(folder: string): string {
  try {
    return execFileSync('stat', ['--file-system', '--format=%T', folder], {
      encoding: 'utf8',
    }).trim();
  } catch {
    return 'unknown';
  }
}
