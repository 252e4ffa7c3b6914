import { rmSync } from 'node:fs';
import { testServers } from '../../test/support/servers';
import { bundle, postgresVersion } from './server-parts';

export interface BenchServers {
  /** Undefined for the servers of a test run, which belong to that run. */
  postgresPid: number | undefined;
  temporalAddress: string;
  temporalNamespace: string;
  /** Undefined for a server at TEMPORAL_ADDRESS, which is not ours. */
  temporalPid: number | undefined;
  /** The PostgreSQL that Temporal itself keeps its histories in, where it does. */
  temporalPostgresPid: number | undefined;
  /** The floors' workflows (control-workflow.ts), bundled. */
  controlBundle: string;
  /** What the figures depend on, for the rig's line. */
  versions: { postgres: string; temporal: string };
  end(): Promise<void>;
}

export interface BenchServersOptions {
  /** Temporal on a PostgreSQL of its own instead of the development server. */
  temporalPostgres?: boolean;
  /** Keep pg_stat_statements, for a profile. It costs a little. */
  statements?: boolean;
  /** On the servers of a test run, which do not wait for the disk: for the shape of a result only. */
  testServers?: boolean;
  log?: (line: string) => void;
}

/** The servers of a bench: its own, or those of a test run. */
export async function startBenchServers(options: BenchServersOptions = {}): Promise<BenchServers> {
  if (options.testServers) return onTestServers();
  // Loaded only here: the migrations come with a package that jest cannot load.
  const { startOwnServers } = await import('./own-servers.js');
  return startOwnServers(options);
}

async function onTestServers(): Promise<BenchServers> {
  const { temporalAddress, temporalNamespace, databaseUrl } = testServers();
  const controlBundle = await bundle('control', require.resolve('./control-workflow.ts'));
  return {
    postgresPid: undefined,
    temporalAddress,
    temporalNamespace,
    temporalPid: undefined,
    temporalPostgresPid: undefined,
    controlBundle,
    versions: { postgres: await postgresVersion(databaseUrl), temporal: 'of the test run' },
    end: () => Promise.resolve(rmSync(controlBundle, { force: true })),
  };
}
