import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const importing = (path: string) => `import { it } from '${path}';\nexport { it };\n`;
const importingType = (path: string) => `import type { It } from '${path}';\nexport type { It };\n`;

const forbidden: [file: string, code: string][] = [
  // domain imports nothing of ours, no package, no module of Node
  ...['workflows', 'db', 'channels', 'activities', 'api', 'worker', 'mock-channel'].map(
    (folder): [string, string] => ['domain/states.ts', importing(`../${folder}/anything`)],
  ),
  ['domain/states.ts', importing('node:fs')],
  ['domain/states.ts', importing('crypto')],
  ['domain/states.ts', importing('zod')],
  ['domain/states.ts', importing('pg')],
  ['domain/states.ts', importing('@temporalio/workflow')],
  ['domain/states.ts', "export const it = import('pg');\n"],
  // workflows import domain, and types of activities
  ...['db', 'channels', 'api', 'worker', 'mock-channel', 'scripts'].map(
    (folder): [string, string] => ['workflows/refund.ts', importing(`../${folder}/anything`)],
  ),
  ['workflows/refund.ts', importing('../activities')],
  ['workflows/refund.ts', importing('../activities/index')],
  ['workflows/refund.ts', importing('node:crypto')],
  ['workflows/refund.ts', importing('fs')],
  ['workflows/refund.ts', importing('zod')],
  ['workflows/refund.ts', importing('pg')],
  ['workflows/refund.ts', importing('@temporalio/client')],
  ['workflows/refund.ts', "export const it = import('zod');\n"],
  // db and channels import domain
  ...['workflows', 'channels', 'activities', 'api', 'worker', 'mock-channel'].map(
    (folder): [string, string] => ['db/orders.ts', importing(`../${folder}/anything`)],
  ),
  ...['workflows', 'db', 'activities', 'api', 'worker', 'mock-channel'].map(
    (folder): [string, string] => ['channels/mock-a.ts', importing(`../${folder}/anything`)],
  ),
  // activities import db, channels, domain, and of the workflows only what describes a run
  ...['api', 'worker', 'mock-channel', 'scripts'].map((folder): [string, string] => [
    'activities/orders.ts',
    importing(`../${folder}/anything`),
  ]),
  ['activities/orders.ts', importing('../workflows/order-payment')],
  ['activities/orders.ts', importing('../workflows')],
  ['activities/orders.ts', importing('../workflows/ids-of-others')],
  // api imports db, channels, domain, and of the workflows what names and describes them
  ...['activities', 'worker', 'mock-channel', 'scripts'].map((folder): [string, string] => [
    'api/routes/orders.ts',
    importing(`../../${folder}/anything`),
  ]),
  ['api/routes/orders.ts', importing('../../workflows/order-payment')],
  ['api/app.ts', importing('../workflows/index')],
  // nothing imports api, scripts, test, bench
  ...['api', 'scripts', 'test', 'bench', 'mock-channel'].map((folder): [string, string] => [
    'worker/main.ts',
    importing(`../${folder}/anything`),
  ]),
  // the mock channel imports nothing of ours but money
  ...['db', 'channels', 'workflows', 'activities', 'api', 'worker'].map(
    (folder): [string, string] => ['mock-channel/books.ts', importing(`../${folder}/anything`)],
  ),
  ['mock-channel/books.ts', importing('../domain/states')],
  ['mock-channel/books.ts', importingType('../domain/states')],
];

const allowed: [file: string, code: string][] = [
  ['domain/states.ts', importing('./money')],
  ['workflows/refund.ts', importing('../domain/states')],
  ['workflows/refund.ts', importing('@temporalio/workflow')],
  ['workflows/refund.ts', importingType('../activities')],
  ['db/orders.ts', importing('../domain/money')],
  ['db/orders.ts', importing('pg')],
  ['channels/mock-a.ts', importing('../domain/money')],
  ['activities/orders.ts', importing('../db/orders')],
  ['activities/orders.ts', importing('../workflows/ids')],
  ['activities/orders.ts', importing('../workflows/failures')],
  ['activities/orders.ts', importing('../workflows/messages')],
  ['activities/orders.ts', importing('../workflows/start-options')],
  ['api/app.ts', importing('../workflows/start-options')],
  ['api/routes/orders.ts', importing('../../db/orders')],
  ['api/routes/orders.ts', importing('../../workflows/messages')],
  ['worker/main.ts', importing('../activities')],
  ['worker/main.ts', importing('../workflows/ids')],
  ['mock-channel/books.ts', importing('../domain/money')],
  ['test/stack/any.test.ts', importing('../../api/app')],
];

/** One report per case, in order. */
function report(cases: [file: string, code: string][]): string[][] {
  const { stdout, stderr } = spawnSync(process.execPath, [join(__dirname, 'report-imports.mjs')], {
    cwd: join(__dirname, '..', '..'),
    input: JSON.stringify(cases.map(([file, code]) => ({ file, code }))),
    encoding: 'utf8',
  });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as string[][];
}

test('every import that the layout forbids is reported by lint, by its folder', () => {
  const reports = report(forbidden);
  const silent = forbidden.filter((_, index) => reports[index]?.length === 0);
  expect(silent).toEqual([]);
  for (const [index, [file]] of forbidden.entries()) {
    const folder = file.split('/')[0] ?? '';
    // `import()` is reported by its syntax, everything else by a sentence that names the folder.
    expect(reports[index]?.join(' ')).toMatch(new RegExp(`${folder}|ImportExpression`));
  }
});

test('no import that the layout allows is reported', () => {
  const reports = report(allowed);
  const refused = allowed.flatMap((one, index) => reports[index]?.map((text) => [...one, text]));
  expect(refused).toEqual([]);
});
