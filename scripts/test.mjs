/**
 * `npm test`: installs what is missing, then type check, lint, format and all tests; the last line
 * is `N passed, N failed`, and a check that fails counts as one failed and is named.
 *
 * `npm test -- ARGS` hands ARGS to jest (`-t B11`, a path) and runs these tests alone; the checks
 * concern the whole project and are left to the run without arguments. `--full` (`npm run
 * test:full`) runs the big scenarios at full size.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { endWithNpm } from './end-with-npm.mjs';
import { ensureInstalled, projectFolder } from './install.mjs';

const CHECKS = [
  { name: 'type check', command: ['node_modules/typescript/bin/tsc', '--noEmit', '-p', '.'] },
  {
    name: 'type check of what browsers run',
    command: ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.pages.json'],
  },
  { name: 'lint', command: ['node_modules/eslint/bin/eslint.js', '--max-warnings', '0', '.'] },
  {
    name: 'format',
    command: [
      'node_modules/prettier/bin/prettier.cjs',
      '--check',
      '**/*.{ts,tsx,js,mjs,cjs,css,yml}',
    ],
  },
];

const given = process.argv.slice(2);
const full = given.includes('--full');
const jestArguments = given.filter((argument) => argument !== '--full');
const partial = jestArguments.length > 0;

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
for (const [signal, number] of Object.entries({ SIGINT: 2, SIGTERM: 15, SIGHUP: 1 })) {
  process.on(signal, () => {
    for (const child of running) child.kill('SIGTERM');
    process.exit(128 + number);
  });
}
ensureInstalled();
endWithNpm();
const [failedChecks, tests] = await Promise.all([partial ? [] : runChecks(), runTests()]);
for (const name of failedChecks) console.log(`FAILED: ${name}`);
if (tests.failed > 0) console.log(`FAILED: ${tests.failed} of jest's tests or files (see above)`);
if (tests.passed + tests.failed === 0) console.log('FAILED: no test was run');
const failed = failedChecks.length + tests.failed + (tests.passed + tests.failed === 0 ? 1 : 0);
console.log(`${tests.passed} passed, ${failed} failed`);
// Whatever a test left open must not keep a finished run alive.
process.exit(failed === 0 && tests.exitCode === 0 ? 0 : 1);

/** One after another in the time that the tests leave idle; the output of each is shown in one piece. */
async function runChecks() {
  const failedNames = [];
  for (const { name, command } of CHECKS) {
    const startedAt = performance.now();
    const { exitCode, output } = await run(command, { beside: true });
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    console.log(`${name}: ${exitCode === 0 ? 'passed' : 'FAILED'} (${seconds} s)`);
    if (exitCode === 0) continue;
    console.log(output);
    failedNames.push(name);
  }
  return failedNames;
}

async function runTests() {
  const cache = join(projectFolder, '.cache');
  mkdirSync(cache, { recursive: true });
  // A run of a few tests leaves the results of the last whole run alone.
  const file = join(cache, partial ? 'jest-results-partial.json' : 'jest-results.json');
  rmSync(file, { force: true });
  const { exitCode } = await run(
    ['node_modules/jest/bin/jest.js', '--json', `--outputFile=${file}`, ...jestArguments],
    { env: full ? { FULL: '1' } : {} },
  );
  try {
    const results = JSON.parse(readFileSync(file, 'utf8'));
    // A file that cannot even be loaded has no tests that could fail.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    return {
      passed: results.numPassedTests,
      failed: failed === 0 && exitCode !== 0 && results.numPassedTests > 0 ? 1 : failed,
      exitCode,
    };
  } catch {
    return { passed: 0, failed: 1, exitCode };
  }
}

/**
 * @param {string[]} command a script of Node and its arguments
 * @param {{ env?: Record<string, string>, beside?: boolean }} [options] `beside`: with what is left of
 *   the processors, its output kept for the caller
 * @returns {Promise<{ exitCode: number, output: string }>}
 */
function run(command, { env = {}, beside = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, command, {
      cwd: projectFolder,
      env: { ...process.env, ...env },
      // jest reports on standard error; on standard output it would also be heard by a pipe.
      stdio: beside ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
    });
    running.add(child);
    if (beside && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
    let output = '';
    child.stdout?.on('data', (chunk) => (output += chunk));
    child.stderr?.on('data', (chunk) => (output += chunk));
    child.once('error', reject);
    child.once('close', (code) => {
      running.delete(child);
      resolve({ exitCode: code ?? 1, output });
    });
  });
}
