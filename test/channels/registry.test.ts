import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ChannelConfigurationError, MOCK_POLICY } from '../../channels/adapter';
import { adapters, createChannelRegistry } from '../../channels/registry';
import type { RegistryOptions } from '../../channels/registry';
import type { ChannelRow } from '../../domain/channel-policy';
import { aCallbackOrder, aRow, anAccount, writeMockCallback } from './mock-callback-writer';

const account = anAccount('mock-a');
const env = { CURRENT: account.keys.current, PREVIOUS: account.keys.previous ?? '' };

function aRegistry(rows: ChannelRow[], overrides: Partial<RegistryOptions> = {}) {
  const readRows = jest.fn(() => Promise.resolve(structuredClone(rows)));
  const registry = createChannelRegistry({ readRows, env, refreshAfterMs: 0, ...overrides });
  return { registry, readRows };
}

describe('the channel registry', () => {
  it('makes a channel of its row, with policy and working keys', async () => {
    const { registry } = aRegistry([aRow(account, { policy: { maxSends: 2 } })]);
    const found = await registry.get('mock-a');
    expect(found?.policy).toEqual({ ...MOCK_POLICY, maxSends: 2 });
    for (const key of ['current', 'previous'] as const) {
      const { rawBody, headers } = writeMockCallback(account, aCallbackOrder({ key }));
      expect(found?.channel.readCallback(rawBody, headers, new Date()).ok).toBe(true);
    }
    expect(await registry.get('no-such')).toBeUndefined();
    expect((await registry.all()).map(({ row }) => row.channel)).toEqual(['mock-a']);
  });

  it('keeps the instance across refreshes until its row or a secret changes', async () => {
    const rows = [aRow(account)];
    const secrets: Record<string, string> = { ...env };
    const { registry, readRows } = aRegistry(rows, { env: secrets });
    const first = (await registry.get('mock-a'))?.channel;
    expect((await registry.get('mock-a'))?.channel).toBe(first);
    expect(readRows).toHaveBeenCalledTimes(2);

    rows[0] = aRow(account, { payEnabled: false });
    const second = await registry.get('mock-a');
    expect(second?.channel).not.toBe(first);
    expect(second?.row.payEnabled).toBe(false);

    secrets.CURRENT = 'a new key';
    expect((await registry.get('mock-a'))?.channel).not.toBe(second?.channel);
  });

  it('reads the rows once for callers at the same time and not again before the age', async () => {
    const { registry, readRows } = aRegistry([aRow(account)], { refreshAfterMs: 60_000 });
    await Promise.all(Array.from({ length: 20 }, () => registry.get('mock-a')));
    await registry.all();
    for (let time = 0; time < 20; time += 1) await registry.get('unknown');
    expect(readRows).toHaveBeenCalledTimes(1);
  });

  it('goes on with the rows it knows when the database is away', async () => {
    const onRefreshError = jest.fn();
    let away = false;
    const { registry } = aRegistry([], {
      readRows: () => (away ? Promise.reject(new Error('away')) : Promise.resolve([aRow(account)])),
      hooks: { onRefreshError },
    });
    expect(await registry.get('mock-a')).toBeDefined();
    away = true;
    expect(await registry.get('mock-a')).toBeDefined();
    expect(onRefreshError).toHaveBeenCalled();
  });

  it('says so when the database is away from the start', async () => {
    const { registry } = aRegistry([], { readRows: () => Promise.reject(new Error('away')) });
    await expect(registry.get('mock-a')).rejects.toThrow('away');
  });

  it.each<[string, Partial<ChannelRow>, RegExp]>([
    ['a missing variable', { secretRefs: { current: 'env:NO_SUCH' } }, /"current" at env:NO_SUCH/],
    ['an empty variable', { secretRefs: { current: 'env:EMPTY' } }, /env:EMPTY/],
    ['a missing file', { secretRefs: { current: 'file:/no/such' } }, /file:\/no\/such/],
    ['no current secret', { secretRefs: {} }, /role "current"/],
    ['an unknown adapter', { adapter: 'constructor' }, /no adapter "constructor"/],
    ['a bad policy', { policy: { maxSends: 0 } }, /maxSends/],
    ['a bad address', { gatewayUrl: 'file:///etc/passwd' }, /gatewayUrl/],
  ])('names %s, and leaves the other channels alone', async (_, difference, message) => {
    const onConfigurationError = jest.fn();
    const rows = [aRow(account, { channel: 'broken', ...difference }), aRow(account)];
    const { registry } = aRegistry(rows, {
      env: { ...env, EMPTY: '' },
      hooks: { onConfigurationError },
    });
    await expect(registry.get('broken')).rejects.toThrow(ChannelConfigurationError);
    await expect(registry.get('broken')).rejects.toThrow(message);
    expect(onConfigurationError).toHaveBeenCalled();
    expect((await registry.all()).map(({ row }) => row.channel)).toEqual(['mock-a']);
  });

  it('never shows a secret that was written where its reference belongs', async () => {
    const row = aRow(account, { secretRefs: { current: 'hunter2-secret' } });
    const { registry } = aRegistry([row]);
    const error: unknown = await registry.get('mock-a').catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/neither env: nor file:/);
    expect(String(error)).not.toContain('hunter2');
  });

  it('reads a secret from a file, without the newline at its end', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'channel-secret-'));
    try {
      const file = path.join(folder, 'key');
      await writeFile(file, `${account.keys.current}\n`);
      const row = aRow(account, { secretRefs: { current: `file:${file}` } });
      const { registry } = aRegistry([row]);
      const { rawBody, headers } = writeMockCallback(account, aCallbackOrder());
      const found = await registry.get('mock-a');
      expect(found?.channel.readCallback(rawBody, headers, new Date()).ok).toBe(true);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('takes an adapter of a plug-in author from a map', async () => {
    const mine = { ...adapters, mine: adapters['mock-a']! };
    const { registry } = aRegistry([aRow(account, { adapter: 'mine' })], { adapters: mine });
    expect(await registry.get('mock-a')).toBeDefined();
  });
});
