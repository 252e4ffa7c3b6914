import type { TestServers } from '../../scripts/test-servers';

/** The PostgreSQL and Temporal servers that this test run started. */
export function testServers(): TestServers {
  const text = process.env['TEST_SERVERS'];
  if (text === undefined) throw new Error('no test servers: run the tests with `npm test`');
  return JSON.parse(text) as TestServers;
}
