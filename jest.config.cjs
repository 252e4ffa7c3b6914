const swc = { jsc: { target: 'es2023' }, sourceMaps: 'inline' };
const JSX = {
  parser: { syntax: 'typescript', tsx: true },
  transform: { react: { runtime: 'automatic', importSource: 'hono/jsx' } },
};

/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  transform: {
    '^.+\\.[cm]?ts$': ['@swc/jest', swc],
    '^.+\\.tsx$': ['@swc/jest', { ...swc, jsc: { ...swc.jsc, ...JSX } }],
  },
  // One PostgreSQL and one Temporal for the whole run, started outside of jest's sandbox.
  globalSetup: '<rootDir>/test/support/servers-start.ts',
  globalTeardown: '<rootDir>/test/support/servers-stop.ts',
  // As many as the cores aimed at: the work is bound by them, and a third only makes each one wait.
  maxWorkers: 2,
  // Of the tests that a file says may run beside each other, because they wait for timers most of their time.
  maxConcurrency: 3,
  testTimeout: 60_000,
  // Found again here rather than as a hang of the whole run.
  openHandlesTimeout: 5_000,
};
