import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { migrate } from '../db/migrate';
import { startPostgres } from './servers/postgres';
import { createDatabase } from './servers/stack';
import { startTemporal } from './servers/temporal';

/** Addresses of the servers that one test run shares. */
export interface TestServers {
  /** The server's own database: for `create database`, never for tables. */
  databaseUrl: string;
  /** A migrated database nobody is connected to; each test file gets a copy of it. */
  templateDatabase: string;
  temporalAddress: string;
  temporalNamespace: string;
  /** The workflows' code, bundled once for every worker of the run. */
  workflowBundle: string;
}

/** A deleted run is forgotten once its earlier tasks are noted as done; by default that is every 30 s. */
const FORGETS_SOON = {
  'history.transferProcessorUpdateAckInterval': '2s',
  'history.visibilityProcessorUpdateAckInterval': '2s',
};

/**
 * Starts the servers of a test run, prints their addresses as one line of JSON and waits until its
 * input ends: so it ends with the run, whatever becomes of the run.
 */
async function main(): Promise<void> {
  // Several runs may share the server that DATABASE_URL names.
  const templateDatabase = `template_${process.pid}_${Date.now().toString(36)}`;
  const [database, temporal, workflowBundle] = await Promise.all([
    startDatabase(templateDatabase),
    startTemporal({ dynamicConfig: FORGETS_SOON }),
    bundleWorkflows(),
  ]);
  const servers: TestServers = {
    databaseUrl: database.url,
    templateDatabase,
    temporalAddress: temporal.address,
    temporalNamespace: temporal.namespace,
    workflowBundle,
  };
  const over = new Promise((resolve) => process.stdin.once('end', resolve).resume());
  console.log(JSON.stringify(servers));
  await over;
  await Promise.all([database.end(), temporal.end()]);
  rmSync(workflowBundle, { force: true });
}

/** One bundle, named by this process, so that two runs at once do not share one file. */
async function bundleWorkflows(): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: require.resolve('../workflows/index.ts'),
    payloadConverterPath: require.resolve('../workflows/payload-converter.ts'),
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  });
  const folder = path.join(__dirname, '..', '.cache');
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, `workflow-bundle-${process.pid}.js`);
  writeFileSync(file, code);
  return file;
}

async function startDatabase(
  templateDatabase: string,
): Promise<{ url: string; end(): Promise<void> }> {
  const given = process.env['DATABASE_URL'];
  const postgres = given ? undefined : await startPostgres();
  const url = given ?? postgres?.databaseUrl() ?? '';
  await createDatabase(url, templateDatabase);
  const template = new URL(url);
  template.pathname = `/${templateDatabase}`;
  await migrate(template.href);
  return { url, end: async () => postgres?.end() };
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
