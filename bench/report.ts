/**
 * Writes docs/benchmarks.md and its plots from the last kept results (bench/results/*.json). What was
 * never measured is said to be so.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PROJECT_FOLDER } from '../scripts/servers/temporal';
import { chooseSection } from './report/choose';
import { memorySection, soakSection } from './report/endurance';
import { httpSection } from './report/http';
import { readResults } from './report/results-read';
import type { Results } from './report/results-read';
import { sagaSection } from './report/saga';
import { strategiesSection } from './report/strategies';

export interface ReportResult {
  page: string;
  plots: string[];
  /** Benches without a result. */
  missing: string[];
}

export interface Report {
  /** Markdown. */
  page: string;
  /** SVG by the name of its file. */
  plots: Map<string, string>;
}

export async function report(args: readonly string[]): Promise<ReportResult> {
  const { values } = parseArgs({
    args: [...args],
    options: { results: { type: 'string' }, out: { type: 'string' } },
  });
  const results = readResults(values.results ?? join(PROJECT_FOLDER, 'bench', 'results'));
  const out = values.out ?? join(PROJECT_FOLDER, 'docs');
  const { page, plots } = renderReport(results);
  const folder = join(out, 'benchmarks');
  mkdirSync(folder, { recursive: true });
  // A plot whose result is gone must not stay.
  for (const name of readdirSync(folder)) if (name.endsWith('.svg')) rmSync(join(folder, name));
  for (const [name, svg] of plots) writeFileSync(join(folder, name), svg);
  const file = join(out, 'benchmarks.md');
  writeFileSync(file, page);
  const missing = missingOf(results);
  console.log(`${file}, ${plots.size} plots`);
  if (missing.length > 0) console.log(`not measured yet: ${missing.join(', ')}`);
  return Promise.resolve({ page: 'docs/benchmarks.md', plots: [...plots.keys()], missing });
}

/** The page and its plots; nothing of it but the results decides what they say. */
export function renderReport(results: Results): Report {
  const plots = new Map<string, string>();
  const page = [
    '# Benchmarks',
    'Made by `npm run bench -- report` from the results in [bench/results](../bench/results): do not edit. Every figure of ours ' +
      'stands beside a floor that was measured in the same run; absolute numbers belong to the machine under their table.',
    chooseSection(results),
    strategiesSection(results, plots),
    httpSection(results, plots),
    sagaSection(results, plots),
    memorySection(results, plots),
    soakSection(results, plots),
  ].join('\n\n');
  return { page: `${page}\n`, plots };
}

function missingOf(results: Results): string[] {
  const names: [keyof Results, string][] = [
    ['strategies', 'strategies'],
    ['http', 'http'],
    ['saga', 'saga'],
    ['sagaPostgres', 'saga --temporal-postgres'],
    ['memory', 'memory'],
    ['soak', 'soak'],
  ];
  return names.flatMap(([key, name]) => (results[key] ? [] : [name]));
}
