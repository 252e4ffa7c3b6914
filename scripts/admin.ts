/** `npm run admin -- <command>`: merchants, their keys, and channels. Secrets by reference only. */
import { existsSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { noteAdminAct } from '../db/administration';
import { createPool, isDatabaseUnavailable, withTransaction } from '../db/transaction';
import { channelCommands } from './admin/channels';
import type { Command, CommandResult } from './admin/command';
import { AdminRefusal, UsageError } from './admin/command';
import { keyCommands } from './admin/keys';
import { merchantCommands } from './admin/merchants';
import type { RunningStack } from './servers/running-stack';
import { RUNNING_STACK_FILE } from './servers/running-stack';

const COMMANDS: Record<string, Command> = {
  ...merchantCommands,
  ...keyCommands,
  ...channelCommands,
};

const USAGE = `npm run admin -- COMMAND [--json]

${Object.values(COMMANDS)
  .map(({ usage, summary, options }) => {
    const lines = Object.entries(options).map(([name, takes]) => `      --${name} ${takes}`);
    return [`  ${usage}`, `      ${summary}`, ...lines].join('\n');
  })
  .join('\n')}

The database is that of DATABASE_URL, else that of the stack that \`npm start\` runs.
Exit code 0: done; 1: refused, with the reason; 2: not understood.`;

/** @returns the exit code; what is printed goes to `out` and `err` */
export async function admin(
  args: readonly string[],
  env: Record<string, string | undefined>,
  print: { out: (line: string) => void; err: (line: string) => void },
): Promise<number> {
  try {
    if (args.length === 0 || args.includes('--help') || args.includes('help')) {
      print.out(USAGE);
      return args.length === 0 ? 2 : 0;
    }
    const name = args.slice(0, 2).join(' ');
    const command = COMMANDS[name];
    if (!command) throw new UsageError(`there is no command "${name}"`);
    const { words, options, asJson } = read(command, args.slice(2));
    const result = await perform(name, command, words, options, databaseUrlOf(env));
    if (asJson) print.out(JSON.stringify(result.value, null, 2));
    else for (const line of result.lines) print.out(line);
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      print.err(`${error.message}\n\n${USAGE}`);
      return 2;
    }
    print.err(wordsOf(error));
    return 1;
  }
}

function read(command: Command, args: readonly string[]) {
  const names = Object.keys(command.options);
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        json: { type: 'boolean' },
        ...Object.fromEntries(
          names.map((name) => [name, { type: 'string', multiple: true }] as const),
        ),
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error });
  }
  const words = parsed.positionals;
  if (words.length < command.words.least || words.length > command.words.most)
    throw new UsageError(`it is used as: ${command.usage}`);
  const values = parsed.values as Record<string, string[] | boolean | undefined>;
  const options = Object.fromEntries(
    names.flatMap((name) => (Array.isArray(values[name]) ? [[name, values[name]]] : [])),
  ) as Record<string, string[]>;
  return { words, options, asJson: values['json'] === true };
}

/** One transaction: what was changed and who changed it, or neither. */
async function perform(
  name: string,
  command: Command,
  words: string[],
  options: Record<string, string[]>,
  databaseUrl: string,
): Promise<CommandResult> {
  const pool = createPool({
    databaseUrl,
    max: 1,
    connectionTimeoutMs: 10_000,
    statementTimeoutMs: 10_000,
    applicationName: 'payment-admin',
    onIdleError: () => undefined,
  });
  try {
    return await withTransaction(pool, async (client) => {
      const result = await command.run({ words, options, client });
      if (result.note) {
        await noteAdminAct(client, { command: name, ...result.note, actor: userInfo().username });
      }
      return result;
    });
  } finally {
    await pool.end();
  }
}

function databaseUrlOf(env: Record<string, string | undefined>): string {
  const named = env['DATABASE_URL'];
  if (named) return named;
  const file = join(__dirname, '..', '.data', RUNNING_STACK_FILE);
  if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as RunningStack).databaseUrl;
  throw new AdminRefusal('DATABASE_URL is not set, and no stack has been started with `npm start`');
}

function wordsOf(error: unknown): string {
  if (isDatabaseUnavailable(error))
    return `the database does not answer: ${(error as Error).message}`;
  return error instanceof Error ? error.message : String(error);
}

if (require.main === module) {
  void admin(process.argv.slice(2), process.env, {
    out: (line) => console.log(line),
    err: (line) => console.error(line),
  }).then((code) => process.exit(code));
}
