import { execFile } from 'node:child_process';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT_FOLDER } from '../servers/temporal';

const run = promisify(execFile);

/** The version that docker-compose.yml runs, and that the development server of the CLI carries. */
export const TEMPORAL_SERVER_VERSION = '1.32.0';

const MODULE = 'go.temporal.io/server';
/** Two cores took eight minutes; a slow network or machine gets several times that. */
const BUILD_TIMEOUT_MS = 3_600_000;

/** The two programs of Temporal's own module; the schema's files are inside the second. */
export interface TemporalPrograms {
  server: string;
  sqlTool: string;
}

/** The programs that were built before, or undefined. */
export function builtPrograms(): TemporalPrograms | undefined {
  const programs = programsIn(folder());
  const isThere = (file: string) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  return isThere(programs.server) && isThere(programs.sqlTool) ? programs : undefined;
}

/**
 * Gives the programs of the Temporal server, built from its Go module into the cache when they are not
 * there (minutes, once).
 * @throws Error when there is no Go, or the module cannot be fetched or built
 */
export async function temporalPrograms(
  log: (line: string) => void = () => undefined,
): Promise<TemporalPrograms> {
  const built = builtPrograms();
  if (built) return built;
  mkdirSync(folder(), { recursive: true });
  log(`building Temporal's server ${TEMPORAL_SERVER_VERSION} with Go: some minutes, once`);
  const sources = ['cmd/server', 'cmd/tools/sql'];
  try {
    // Politely: whoever waits for this may have other work on the same cores.
    await run(
      'nice',
      [
        ...['-n', '10', 'go', 'install'],
        ...sources.map((path) => `${MODULE}/${path}@v${TEMPORAL_SERVER_VERSION}`),
      ],
      { env: { ...process.env, GOBIN: folder() }, timeout: BUILD_TIMEOUT_MS },
    );
  } catch (error) {
    throw new Error(`Temporal's server could not be built: ${lastLine(error)}`, { cause: error });
  }
  return programsIn(folder());
}

function folder(): string {
  return join(PROJECT_FOLDER, '.cache', `temporal-server-${TEMPORAL_SERVER_VERSION}`);
}

/** As `go install` names them: by the folder of their source. */
function programsIn(home: string): TemporalPrograms {
  return { server: join(home, 'server'), sqlTool: join(home, 'sql') };
}

function lastLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string };
  return (stderr?.trim() || message).split('\n').at(-1) ?? '';
}
