/**
 * `npm run mutants`: takes the protections out, one at a time, in a copy of the project, and runs the
 * test that must notice. A guard is killed when that very test fails by an assertion; a compiler,
 * lint or schema comparison does not count. The unmutated copy must pass the same tests.
 *
 * The last line is `N killed, N survived`; exit code 1 when one survived or the control failed.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GUARDS } from './mutants/guards';
import type { Guard } from './mutants/guards';

const PROJECT = path.join(__dirname, '..');
/** One run of one test file, its servers included, takes some twenty seconds. */
const RUN_TIMEOUT_MS = 300_000;

interface TestResult {
  fullName: string;
  status: string;
  failureMessages: string[];
}

async function main(): Promise<void> {
  const only = process.argv.slice(2).join(' ');
  const guards = GUARDS.filter((guard) => guard.name.includes(only));
  const copy = copyProject();
  try {
    const files = [...new Set(guards.map((guard) => guard.test.file))];
    const control = await runTests(copy, files);
    const failed = control.filter((result) => result.status === 'failed');
    console.log(`control: ${control.length - failed.length} of ${control.length} tests pass\n`);
    for (const result of failed) console.log(`  FAILED: ${result.fullName}`);
    const survivors: string[] = [];
    for (const guard of guards) {
      const killer = await killerOf(copy, guard);
      if (!killer) survivors.push(guard.name);
      console.log(`${killer ? 'killed  ' : 'SURVIVED'}  ${guard.name}`);
      console.log(
        `          ${killer ?? `by no test like "${guard.test.title}" in ${guard.test.file}`}`,
      );
    }
    console.log(`\n${guards.length - survivors.length} killed, ${survivors.length} survived`);
    process.exitCode = survivors.length > 0 || failed.length > 0 || control.length === 0 ? 1 : 0;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** What git knows of the working tree, with this project's dependencies and server programs. */
function copyProject(): string {
  const copy = mkdtempSync(path.join(tmpdir(), 'payment-saga-mutants-'));
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: PROJECT }).toString('utf8');
  for (const file of listed.split('\0').filter((name) => name !== '')) {
    const from = path.join(PROJECT, file);
    if (existsSync(from)) cpSync(from, path.join(copy, file));
  }
  symlinkSync(path.join(PROJECT, 'node_modules'), path.join(copy, 'node_modules'));
  const temporal = path.join(PROJECT, '.cache', 'temporal');
  if (existsSync(temporal)) {
    mkdirSync(path.join(copy, '.cache'));
    symlinkSync(temporal, path.join(copy, '.cache', 'temporal'));
  }
  return copy;
}

/** The test that failed by an assertion with the guard taken out, or undefined. */
async function killerOf(copy: string, guard: Guard): Promise<string | undefined> {
  const file = path.join(copy, guard.file);
  const original = readFileSync(file, 'utf8');
  if (original.split(guard.find).length !== 2) {
    throw new Error(`${guard.name}: its text does not occur exactly once in ${guard.file}`);
  }
  writeFileSync(
    file,
    original.replace(guard.find, () => guard.replace),
  );
  try {
    const results = await runTests(copy, [guard.test.file], guard.test.title);
    const killer = results.find(
      ({ status, fullName, failureMessages }) =>
        status === 'failed' &&
        fullName.includes(guard.test.title) &&
        failureMessages.some((message) => /expect\(|JestAssertionError/.test(message)),
    );
    return killer?.fullName;
  } finally {
    writeFileSync(file, original);
  }
}

async function runTests(copy: string, files: string[], title = ''): Promise<TestResult[]> {
  const output = path.join(copy, 'mutants-results.json');
  rmSync(output, { force: true });
  const pattern = title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const jest = spawn(
    process.execPath,
    [
      'node_modules/jest/bin/jest.js',
      ...['--json', `--outputFile=${output}`, '--silent', '--forceExit'],
      ...(pattern ? ['-t', pattern] : []),
      '--runTestsByPath',
      ...files,
    ],
    { cwd: copy, stdio: 'ignore', timeout: RUN_TIMEOUT_MS },
  );
  await new Promise((resolve, reject) => jest.once('exit', resolve).once('error', reject));
  if (!existsSync(output)) return [];
  const { testResults } = JSON.parse(readFileSync(output, 'utf8')) as {
    testResults: { assertionResults: TestResult[] }[];
  };
  return testResults
    .flatMap((file) => file.assertionResults)
    .filter(({ status }) => status === 'passed' || status === 'failed');
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
