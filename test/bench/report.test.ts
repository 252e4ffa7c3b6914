import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { renderReport, report } from '../../bench/report';
import { STRATEGIES } from '../../bench/report/strategies';
import type { StrategyFigures } from '../../bench/report/results-read';
import type { Knee } from '../../bench/saga/knee';
import { growthOf } from '../../bench/soak/growth';

const ORIGIN = {
  commit: '0123456789abcdef',
  dirty: false,
  date: '2026-12-01T10:00:00.000Z',
  full_size: true,
  rig: { cpu: 'A processor', cores: 2, memory_gib: 24, kernel: 'Linux 6', node: 'v20.20.2' },
};
const RIG_LINE = 'A processor, 2 cores, 24 GiB, Linux 6, node v20.20.2, commit 0123456789ab';

it('says of every bench that was never run that it is not measured, and invents no figure', () => {
  const { page, plots } = renderReport({});
  expect(plots.size).toBe(0);
  for (const name of ['strategies', 'http', 'saga', 'memory', 'soak'])
    expect(page).toContain(`not measured yet: \`npm run bench -- ${name}\``);
  expect(page).not.toMatch(/\d (orders per second|ms)/);
  for (const { title } of STRATEGIES) expect(page).toContain(title);
});

describe('which should I choose', () => {
  it('recommends the first that charged nobody twice, with its figures', () => {
    const { page } = renderReport({ strategies: strategies({}) });
    expect(sectionOf(page, 'Small shop')).toContain(
      '**(1) unique order number**: 200 orders per second',
    );
    expect(sectionOf(page, 'Growing shop')).toContain('**(3) table of stored answers**');
    expect(sectionOf(page, 'Platform')).toContain('**(6) this project');
  });

  it('passes over what charged somebody twice under a fault, and says so', () => {
    const { page } = renderReport({
      strategies: strategies({ stored_answers: { postgres_restarted: 3 } }),
    });
    const section = sectionOf(page, 'Growing shop');
    expect(section).toContain('**(6) this project');
    expect(section).toContain('(3) table of stored answers charged 3 orders more than once');
  });

  it('recommends nothing when every candidate did', () => {
    const { page } = renderReport({ strategies: strategies({ attempt_key: { redis_killed: 1 } }) });
    expect(sectionOf(page, 'Platform')).toContain('can be recommended from the figures');
  });
});

it('puts machine, commit and date under every table of figures', () => {
  const { page } = renderReport({ strategies: strategies({}), memory: memory() });
  const tables = page.match(/\|\n\n<sub>/g) ?? [];
  expect(tables).toHaveLength(3);
  expect(page.split(RIG_LINE)).toHaveLength(4);
});

it('shows a strategy that could not run as not run', () => {
  const kept = strategies({});
  kept.strategies[2] = { name: 'redis_token', not_run: 'there is no redis-server', faults: {} };
  const { page } = renderReport({ strategies: kept });
  expect(page).toContain('not run: there is no redis-server');
});

it('says what of a target is missed, and that a run was smaller than promised', () => {
  const { page } = renderReport({ memory: { ...memory(), full_size: false, heap_ratio: 1.5 } });
  expect(page).toContain('1.5 (at most 1.15: **missed**)');
  expect(page).toContain('A smaller run than the figures are promised for');
});

it('writes the page and its plots, and takes plots away whose results are gone', async () => {
  jest.spyOn(console, 'log').mockImplementation(() => undefined);
  const folder = mkdtempSync(join(tmpdir(), 'report-'));
  try {
    const place = ['--results', folder, '--out', folder];
    writeFileSync(join(folder, 'memory.json'), JSON.stringify(memory()));
    const written = await report(place);
    expect(written.plots).toEqual(['memory.svg']);
    expect(written.missing).not.toContain('memory');
    const svg = readFileSync(join(folder, 'benchmarks', 'memory.svg'), 'utf8');
    expect(svg).toMatch(/^<svg [^>]*role="img"/);
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    rmSync(join(folder, 'memory.json'));
    await report(place);
    expect(readdirSync(join(folder, 'benchmarks'))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    jest.restoreAllMocks();
  }
});

it('draws whatever the figures are, also none above zero', () => {
  const knee: Knee = { per_second: 0, found: true, steps: [] };
  const compared = {
    knee,
    rate: 1,
    ...{ p50_ms: 0, p99_ms: 0, plain_p50_ms: 0, plain_p99_ms: 0, p50_ratio: 0, p99_ratio: 0 },
    failed: 0,
  };
  const { plots } = renderReport({
    http: {
      ...ORIGIN,
      ...{ pool_size: 10, channel_delay_ms: 20, copies: 10, requests: 0, plain_knee: knee },
      ...{ create: compared, payments: compared, callbacks: compared },
      duplicates: {
        clients: 1,
        callback_copies_per_s: 0,
        order_repeats_per_s: 0,
        plain_conflicts_per_s: 0,
        ratio: 0,
        order_repeats_ratio: 0,
      },
    },
  });
  expect(plots.get('http-latency.svg')).not.toMatch(/NaN|Infinity/);
});

describe('growth', () => {
  const samples = (of: (minute: number) => number) =>
    Array.from({ length: 61 }, (_, i) => ({ at_s: i * 30, value: of(i / 2) }));
  const bound = { shareMax: 0.05, room: 10 };

  it('is none while caches fill in the first half', () => {
    const growth = growthOf(
      samples((minute) => Math.min(300, 200 + 10 * minute)),
      bound,
    );
    expect(growth).toMatchObject({ middle: 300, rise: 0, grows: false });
  });

  it('is a line that rises by more than its bound over the second half', () => {
    const growth = growthOf(
      samples((minute) => 200 + 2 * minute),
      bound,
    );
    expect(growth).toMatchObject({ rise: 30, bound: 12.25, grows: true });
  });

  it('is not noise around a level, nor a fall', () => {
    expect(
      growthOf(
        samples((minute) => 300 + (minute % 1 === 0 ? 9 : -9)),
        bound,
      ).grows,
    ).toBe(false);
    expect(
      growthOf(
        samples((minute) => 300 - 5 * minute),
        bound,
      ).grows,
    ).toBe(false);
  });
});

function strategies(doubles: Record<string, Record<string, number>>) {
  return {
    ...ORIGIN,
    orders: 1_000,
    clients: 10,
    floor: { inserts_per_s: 1_000 },
    strategies: STRATEGIES.map(({ name }, i): StrategyFigures => {
      const fault = (which: string) => ({
        double_effects: doubles[name]?.[which] ?? 0,
        errors: 1,
      });
      return {
        name,
        orders_per_s: 100 + i * 100,
        p50_ms: 1,
        p95_ms: 2,
        p99_ms: 3,
        errors: 0,
        double_effects: name === 'unprotected' ? 200 : 0,
        faults: {
          redis_killed: fault('redis_killed'),
          stalled_client: fault('stalled_client'),
          postgres_restarted: fault('postgres_restarted'),
        },
      };
    }),
  };
}

function memory() {
  const curve = {
    points: [0, 2_000, 10_000].map((open) => ({
      open,
      rss_bytes: 2e8 + open * 100_000,
      heap_bytes: 7e7 + open * 60_000,
    })),
    rss_per_run: 100_000,
    heap_per_run: 60_000,
  };
  return {
    ...ORIGIN,
    cached_runs: { all: 10_500, capped: 500 },
    orders: curve,
    bare: curve,
    heap_ratio: 1,
    rss_ratio: 1,
    capped: curve,
    capped_growth: 1,
    finished: { opened: 20_000, paid: 20_000 },
  };
}

function sectionOf(page: string, title: string): string {
  return page.split(`### ${title}\n`)[1]?.split('\n#')[0] ?? '';
}
