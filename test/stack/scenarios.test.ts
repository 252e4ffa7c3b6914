import { readScenarios } from '../../scripts/scenarios';

type Status = 'passed' | 'failed' | 'pending';

/** jest's JSON for one file with these tests: title, status, assertions that held. */
function results(...tests: [fullName: string, status: Status, numPassingAsserts: number][]) {
  return {
    testResults: [
      {
        name: 'a.test.ts',
        assertionResults: tests.map(([fullName, status, numPassingAsserts]) => ({
          fullName,
          status,
          numPassingAsserts,
        })),
      },
    ],
  };
}

test('each scenario in a title gets one line, in order of number, with its tests added up', () => {
  const lines = readScenarios(
    results(
      ['pay B102: late answer', 'passed', 4],
      ['B11: a conflict after the charge', 'passed', 3],
      ['B11, B12: both at once', 'passed', 2],
      ['an order without a scenario', 'passed', 9],
    ),
  );
  expect(lines).toEqual([
    { id: 'B11', tests: 2, assertions: 5, result: 'passed' },
    { id: 'B12', tests: 1, assertions: 2, result: 'passed' },
    { id: 'B102', tests: 1, assertions: 4, result: 'passed' },
  ]);
});

test('a scenario fails with one of its tests, or when nothing was asserted', () => {
  const lines = readScenarios(
    results(
      ['B01: one half', 'passed', 3],
      ['B01: other half', 'failed', 1],
      ['B02: nothing asserted', 'passed', 0],
    ),
  );
  expect(lines.map(({ id, result }) => [id, result])).toEqual([
    ['B01', 'failed'],
    ['B02', 'failed'],
  ]);
});

test('a scenario whose tests were not run has no line', () => {
  expect(readScenarios(results(['B05: filtered out', 'pending', 0]))).toEqual([]);
});
