import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { closedLoad, Durations, openLoad } from '../../bench/open-load';
import { assertKeepable, describeRig, keepResult, rigLine } from '../../bench/results';

const clean = { commit: 'c'.repeat(40), dirty: false, date: '2026-12-01T00:00:00.000Z' };

test('an answer that holds everything up makes all those behind it late, not only itself', async () => {
  // One at a time, 100 a second, and the first takes 400 ms: those planned meanwhile waited for it.
  const load = await openLoad({
    perSecond: 100,
    count: 40,
    inFlightMax: 1,
    act: async (index) => {
      if (index === 0) await delay(400);
    },
  });
  expect(load).toMatchObject({ planned: 40, sent: 40, succeeded: 40, failed: 0, in_flight_max: 1 });
  expect(load.latency.max_ms).toBeGreaterThanOrEqual(390);
  // Measured from the send, the median would be about 0.
  expect(load.latency.p50_ms).toBeGreaterThan(100);
  expect(load.held_back).toBeGreaterThan(0);
});

test('the open form sends at its rate whether answers come or not', async () => {
  let [open, most] = [0, 0];
  const load = await openLoad({
    perSecond: 1_000,
    count: 100,
    inFlightMax: 1_000,
    act: async () => {
      most = Math.max(most, ++open);
      await delay(300);
      open--;
    },
  });
  expect(most).toBe(100);
  expect(load).toMatchObject({ in_flight_max: 100, held_back: 0 });
  expect(load.took_ms).toBeGreaterThanOrEqual(390);
});

test('no more than the bound are under way, in either form', async () => {
  const act = () => delay(2);
  const open = await openLoad({ perSecond: 100_000, count: 200, inFlightMax: 7, act });
  const closed = await closedLoad({ clients: 7, count: 200, act });
  expect([open.in_flight_max, closed.in_flight_max]).toEqual([7, 7]);
  expect([open.succeeded, closed.succeeded]).toEqual([200, 200]);
});

test('failures are counted by message and end nothing', async () => {
  const done: number[] = [];
  const load = await closedLoad({
    clients: 3,
    count: 30,
    act: (index) => (index % 3 === 0 ? Promise.reject(new Error('refused')) : Promise.resolve()),
    onDone: (count) => done.push(count),
  });
  expect(load).toMatchObject({ succeeded: 20, failed: 10, errors: { refused: 10 } });
  expect(load.latency.count).toBe(20);
  expect(done.at(-1)).toBe(30);
});

test('time and signal end the sending, and what is under way is waited for', async () => {
  let answered = 0;
  const act = async () => {
    await delay(20);
    answered++;
  };
  const timed = await openLoad({ perSecond: 100, count: 1e6, inFlightMax: 10, forMsMax: 100, act });
  expect(timed.sent).toBeLessThan(30);
  expect(answered).toBe(timed.sent);
  const stop = AbortSignal.abort();
  expect((await closedLoad({ clients: 5, count: 1e6, signal: stop, act })).sent).toBe(0);
});

test('percentiles keep three digits, from microseconds to an hour', () => {
  const durations = new Durations();
  for (let ms = 1; ms <= 1_000; ms++) durations.record(ms);
  const { count, p50_ms: p50, p99_ms: p99, max_ms: max } = durations.percentiles();
  expect(count).toBe(1_000);
  expect(p50).toBeCloseTo(500, -1);
  expect(p99).toBeCloseTo(990, -1);
  expect(max).toBeCloseTo(1_000, -1);
  expect(new Durations().percentiles()).toMatchObject({ count: 0, p50_ms: 0, max_ms: 0 });
});

test('a result is kept at full size or on demand, with its rig, commit and date', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-results-'));
  try {
    const rig = describeRig({ postgres: '18.4' });
    const about = { rig, source: clean, folder };
    const small = { fullSize: false, write: false };
    expect(keepResult('toy', { orders: 1 }, { ...about, keeping: small })).toBeUndefined();
    const keeping = { fullSize: true, write: false };
    expect(keepResult('toy', { orders: 1 }, { ...about, keeping })).toBe('bench/results/toy.json');
    expect(JSON.parse(readFileSync(join(folder, 'toy.json'), 'utf8'))).toEqual({
      ...{ bench: 'toy', full_size: true, ...clean, orders: 1 },
      rig: expect.objectContaining({ postgres: '18.4', node: process.version }) as unknown,
    });
    expect(rigLine(rig, clean)).toContain('postgres 18.4, commit cccccccccccc, 2026-12-01');
    expect(() => keepResult('../toy', {}, { ...about, keeping })).toThrow('no name of a result');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a full-size run is refused on a tree with changes unless it is insisted on', () => {
  const dirty = { ...clean, dirty: true };
  expect(() => assertKeepable({ fullSize: true, write: false }, dirty)).toThrow('commit first');
  expect(() => assertKeepable({ fullSize: true, write: true }, dirty)).not.toThrow();
  expect(() => assertKeepable({ fullSize: false, write: false }, dirty)).not.toThrow();
  expect(() => assertKeepable({ fullSize: true, write: false }, clean)).not.toThrow();
});
