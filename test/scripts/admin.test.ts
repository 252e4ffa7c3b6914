import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readCaller } from '../../db/merchants';
import type { Pool } from '../../db/transaction';
import { createPool } from '../../db/transaction';
import { admin } from '../../scripts/admin';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({
    databaseUrl: database.url,
    max: 2,
    connectionTimeoutMs: 5_000,
    statementTimeoutMs: 5_000,
    applicationName: 'test',
    onIdleError: () => undefined,
  });
  expect((await run('merchant', 'add', 'shop', '--name', 'The shop')).code).toBe(0);
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

async function run(...args: string[]) {
  const said = { out: [] as string[], err: [] as string[] };
  const code = await admin(
    args,
    { DATABASE_URL: database.url },
    { out: (line) => said.out.push(line), err: (line) => said.err.push(line) },
  );
  return { code, out: said.out.join('\n'), err: said.err.join('\n') };
}

async function json(...args: string[]) {
  const { code, out, err } = await run(...args, '--json');
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out) as Record<string, unknown> & Record<string, unknown>[];
}

const CHANNEL = [
  ...['--adapter', 'mock-a', '--account', '2088', '--app', 'app-1'],
  ...['--gateway', 'https://pay.example', '--secret', 'current=env:A_KEY'],
];

describe('merchants', () => {
  it('are added once, changed by what is named only, and listed', async () => {
    await json('merchant', 'add', 'm1', '--name', 'One', '--late-payment', 'revive');
    const again = await run('merchant', 'add', 'm1', '--name', 'Other');
    expect([again.code, again.err]).toEqual([
      1,
      'merchant m1 exists: change it with "merchant set"',
    ]);
    const set = await json(
      ...['merchant', 'set', 'm1', '--notify-url', 'https://shop.example/events'],
      ...['--notify-secret', 'env:SHOP_SECRET'],
    );
    expect(set).toMatchObject({
      name: 'One',
      latePaymentPolicy: 'revive',
      notifyUrl: 'https://shop.example/events',
      notifySecretRef: 'env:SHOP_SECRET',
      notifyPreviousSecretRef: null,
    });
    expect(await json('merchant', 'list')).toContainEqual(set);
    expect((await run('merchant', 'list')).out).toMatch(/^m1 +One +https:\/\/shop/m);
    expect(await json('merchant', 'set', 'm1', '--notify-url', 'none')).toMatchObject({
      notifyUrl: null,
    });
  });

  it('change their secret in two steps, both secrets live in between', async () => {
    const setUp = ['--notify-url', 'https://s.example/', '--notify-secret', 'env:OLD'];
    await json('merchant', 'add', 'm2', '--name', 'Two', ...setUp);
    expect(await json('merchant', 'rotate-secret', 'm2', '--to', 'file:/run/new')).toMatchObject({
      notifySecretRef: 'file:/run/new',
      notifyPreviousSecretRef: 'env:OLD',
    });
    const third = await run('merchant', 'rotate-secret', 'm2', '--to', 'env:THIRD');
    expect(third.code).toBe(1);
    expect(third.err).toContain('still signs with env:OLD too');
    expect(await json('merchant', 'set', 'm2', '--previous-secret', 'none')).toMatchObject({
      notifySecretRef: 'file:/run/new',
      notifyPreviousSecretRef: null,
    });
  });

  it('are told again once a stopped address is named again', async () => {
    const url = 'https://gone.example/';
    await json(
      'merchant',
      'add',
      'm3',
      '--name',
      'T',
      '--notify-url',
      url,
      '--notify-secret',
      'env:S',
    );
    await pool.query(
      `update merchants set notify_stopped_at = now(), notify_stopped_because = 'it answered 410'
       where merchant_id = 'm3'`,
    );
    expect((await run('merchant', 'list')).out).toContain('stopped: it answered 410');
    expect(
      (await json('merchant', 'set', 'm3', '--name', 'Three'))['notifyStoppedAt'],
    ).toBeTruthy();
    expect(await json('merchant', 'set', 'm3', '--notify-url', url)).toMatchObject({
      notifyStoppedAt: null,
      notifyStoppedBecause: null,
    });
  });

  it('may have fulfilment steps, checked', async () => {
    const steps = JSON.stringify([{ name: 'ship', url: 'https://shop.example/ship' }]);
    const named = ['--fulfilment-steps', steps];
    expect((await run('merchant', 'set', 'shop', ...named)).err).toContain('is signed');
    expect(
      await json('merchant', 'set', 'shop', ...named, '--notify-secret', 'env:S'),
    ).toMatchObject({ fulfilmentSteps: [{ name: 'ship' }] });
    const bad = await run('merchant', 'set', 'shop', '--fulfilment-steps', '[{"name":"x"}]');
    expect([bad.code, bad.err]).toEqual([1, expect.stringContaining('url')]);
  });
});

describe('keys', () => {
  it('are shown once, open what their scopes say, and only their hash is stored', async () => {
    const key = await json('key', 'add', 'shop', '--scopes', 'pay,read', '--id', 'k1');
    const apiKey = String(key['apiKey']);
    expect(await readCaller(pool, apiKey)).toEqual({
      merchantId: 'shop',
      keyId: 'k1',
      scopes: ['pay', 'read'],
    });
    const { out } = await run('key', 'add', 'shop', '--scopes', 'read');
    expect(out).toMatch(/shown this once:\npsk_[A-Za-z0-9_-]{43}$/);
    const { rows } = await pool.query<{ everything: string }>(
      `select (select jsonb_agg(k) from api_keys k)::text
         || (select jsonb_agg(a) from admin_acts a)::text as everything`,
    );
    expect(rows[0]!.everything).not.toContain(apiKey);
    expect((await run('key', 'list', '--json')).out).not.toContain('psk_');
    expect(await json('key', 'list', 'shop')).toContainEqual(
      expect.objectContaining({ keyId: 'k1', scopes: ['pay', 'read'], state: 'valid' }),
    );
  });

  it('end when they are revoked, and by themselves', async () => {
    const key = await json('key', 'add', 'shop', '--scopes', 'read', '--id', 'k2');
    expect((await run('key', 'revoke', 'k2')).out).toBe('key k2 is revoked');
    expect(await readCaller(pool, String(key['apiKey']))).toBeUndefined();
    expect((await run('key', 'revoke', 'k2')).out).toBe('key k2 was revoked before');
    const short = await json('key', 'add', 'shop', '--scopes', 'read', '--expires-in', '12h');
    const lasts = Date.parse(String(short['expiresAt'])) - Date.now();
    expect(Math.round(lasts / 60_000)).toBe(12 * 60);
  });
});

describe('channels', () => {
  it('are added once, changed by what is named only, and listed', async () => {
    const added = await json(
      'channel',
      'add',
      'alipay-cn',
      ...CHANNEL,
      '--time-zone',
      'Asia/Shanghai',
    );
    expect(added).toMatchObject({ payEnabled: true, secretRefs: { current: 'env:A_KEY' } });
    expect((await run('channel', 'add', 'alipay-cn', ...CHANNEL)).code).toBe(1);
    const set = await json(
      ...['channel', 'set', 'alipay-cn', '--pay', 'off', '--secret', 'previous=env:A_OLD'],
      ...['--policy', '{"maxSends": 2}'],
    );
    expect(set).toEqual({
      ...added,
      payEnabled: false,
      secretRefs: { current: 'env:A_KEY', previous: 'env:A_OLD' },
      policy: { maxSends: 2 },
    });
    expect(await json('channel', 'list')).toContainEqual(set);
    expect(
      await json('channel', 'set', 'alipay-cn', '--secret', 'previous=none', '--pay', 'on'),
    ).toMatchObject({ payEnabled: true, secretRefs: { current: 'env:A_KEY' } });
  });
});

describe('what cannot be done', () => {
  it.each([
    [['merchant', 'add', '-x', '--name', 'X'], 2, 'Unknown option'],
    [['merchant', 'add', 'a:b', '--name', 'X'], 1, 'must be 1 to 64 of'],
    [['merchant', 'add', 'x'], 2, '--name is missing'],
    [['merchant', 'add', 'x', '--name', 'X', '--notify-url', 'https://s.example'], 1, 'is signed'],
    [['merchant', 'set', 'nobody', '--name', 'X'], 1, 'there is no merchant nobody'],
    [['merchant', 'set', 'shop'], 2, 'name what to set'],
    [['merchant', 'set', 'shop', '--name', 'a', '--name', 'b'], 2, '--name is given twice'],
    [['merchant', 'set', 'shop', '--notify-url', 'ftp://x'], 1, 'must be an http or https address'],
    [['merchant', 'set', 'shop', '--late-payment', 'keep'], 1, 'must be refund or revive'],
    [['merchant', 'set', 'shop', '--fulfilment-steps', '{'], 1, 'must be JSON'],
    [['merchant', 'remove', 'shop'], 2, 'there is no command "merchant remove"'],
    [['key', 'add', 'nobody', '--scopes', 'read'], 1, 'there is no merchant nobody'],
    [['key', 'add', 'shop', '--scopes', 'admin'], 1, '--scopes must be'],
    [['key', 'add', 'shop'], 2, '--scopes is missing'],
    [['key', 'add', 'shop', '--scopes', 'read', '--expires-in', '1y'], 1, 'must be days or hours'],
    [['key', 'revoke', 'nobody'], 1, 'there is no key nobody'],
    [['key', 'list', 'a', 'b'], 2, 'it is used as: key list'],
    [['channel', 'add', 'c'], 2, 'missing: --adapter'],
    [['channel', 'add', 'c', ...CHANNEL, '--time-zone', 'Mars'], 1, 'must be an IANA zone'],
    [['channel', 'add', 'c', ...CHANNEL, '--adapter', 'other'], 2, 'given twice'],
    [['channel', 'add', 'c', ...CHANNEL, '--policy', '{"maxSend": 1}'], 1, 'maxSend is no policy'],
    [['channel', 'set', 'nobody', '--pay', 'on'], 1, 'there is no channel nobody'],
  ])('%j ends with %i: %s', async (args, code, reason) => {
    const said = await run(...args);
    expect([said.code, said.out]).toEqual([code, '']);
    expect(said.err).toContain(reason);
  });

  it('a secret in the place of its reference is neither stored nor repeated', async () => {
    const secret = 'whsec_dGhpcyBpcyBhIHNlY3JldA==';
    for (const args of [
      ['merchant', 'set', 'shop', '--notify-secret', secret],
      ['channel', 'add', 'c', ...CHANNEL, '--secret', `previous=${secret}`],
    ]) {
      const { code, out, err } = await run(...args);
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain('never the secret itself');
      expect(err).not.toContain(secret);
    }
  });

  it('changes nothing and is noted nowhere, while what was done says by whom', async () => {
    const acts = async () =>
      (await pool.query<{ command: string; actor: string }>('select * from admin_acts')).rows;
    const before = await acts();
    await run('key', 'revoke', 'nobody');
    await run('merchant', 'list');
    expect(await acts()).toEqual(before);
    await run('merchant', 'set', 'shop', '--name', 'Renamed');
    const last = (await acts()).at(-1)!;
    expect(last).toMatchObject({
      command: 'merchant set',
      subject: 'shop',
      detail: { name: ['Renamed'] },
    });
    expect(last.actor).not.toBe('');
    await expect(pool.query('delete from admin_acts')).rejects.toThrow('append-only');
  });
});

test('as a process: the usage, and the exit code of what is not understood', async () => {
  const project = join(__dirname, '..', '..');
  const node = promisify(execFile);
  const args = ['--import', 'tsx', 'scripts/admin.ts'];
  const help = await node(process.execPath, [...args, '--help'], { cwd: project });
  expect(help.stdout).toContain('merchant add ID --name TEXT');
  const wrong = node(process.execPath, [...args, 'merchant', 'burn'], { cwd: project });
  await expect(wrong).rejects.toMatchObject({ code: 2 });
  const away = node(process.execPath, [...args, 'merchant', 'list'], {
    cwd: project,
    env: { ...process.env, DATABASE_URL: 'postgres://x@127.0.0.1:1/x' },
  });
  await expect(away).rejects.toMatchObject({
    code: 1,
    stderr: 'the database does not answer: connect ECONNREFUSED 127.0.0.1:1\n',
  });
});
