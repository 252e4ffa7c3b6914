import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_FOLDER } from './servers/temporal';

/** The part of jest's JSON that is read here. */
interface JestResults {
  testResults: {
    name: string;
    assertionResults: {
      fullName: string;
      status: 'passed' | 'failed' | 'pending' | 'todo' | 'disabled' | 'focused' | 'skipped';
      numPassingAsserts: number;
    }[];
  }[];
}

export interface ScenarioLine {
  id: string;
  tests: number;
  assertions: number;
  result: 'passed' | 'failed';
}

/**
 * One line per scenario named in a test's title (`B11: …`, also several: `B11, B12: …`), ordered by
 * number. A scenario has passed when it was run, every test of it passed and something was asserted.
 */
export function readScenarios(results: JestResults): ScenarioLine[] {
  const lines = new Map<string, ScenarioLine>();
  const tests = results.testResults.flatMap((file) => file.assertionResults);
  for (const test of tests) {
    if (test.status !== 'passed' && test.status !== 'failed') continue;
    for (const id of new Set(test.fullName.match(/\bB\d{2,3}\b/g))) {
      const line = lines.get(id) ?? { id, tests: 0, assertions: 0, result: 'passed' };
      line.tests++;
      line.assertions += test.numPassingAsserts;
      if (test.status === 'failed') line.result = 'failed';
      lines.set(id, line);
    }
  }
  for (const line of lines.values()) if (line.assertions === 0) line.result = 'failed';
  return [...lines.values()].sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)));
}

/** `npm run scenarios [-- --run]`: from the results of the last whole `npm test`, or a new one. */
function main(): void {
  if (process.argv.includes('--run')) {
    spawnSync(process.execPath, [join(PROJECT_FOLDER, 'scripts', 'test.mjs')], {
      stdio: 'inherit',
    });
  }
  const file = join(PROJECT_FOLDER, '.cache', 'jest-results.json');
  if (!existsSync(file)) {
    console.error('no results yet: run `npm test`, or `npm run scenarios -- --run`');
    process.exit(1);
  }
  const lines = readScenarios(JSON.parse(readFileSync(file, 'utf8')) as JestResults);
  console.log('id     tests  assertions  result');
  for (const { id, tests, assertions, result } of lines) {
    console.log(
      `${id.padEnd(5)}  ${String(tests).padStart(5)}  ${String(assertions).padStart(10)}  ${result}`,
    );
  }
  const failed = lines.filter(({ result }) => result === 'failed').length;
  console.log(`${lines.length - failed} passed, ${failed} failed`);
  process.exit(failed === 0 && lines.length > 0 ? 0 : 1);
}

if (require.main === module) main();
