import { parseArgs } from 'node:util';
import { temporalPrograms } from './temporal-postgres/programs';
import { startTemporalOnPostgres } from './temporal-postgres/server';

const USAGE = `node --import tsx scripts/temporal-postgres.ts [--build] [--data FOLDER]
A Temporal server with PostgreSQL persistence on the loopback address, until Ctrl-C.
  --build        only build its programs into .cache/ (minutes, once; needs Go)
  --data FOLDER  keep its data there; else they are gone at the end`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      build: { type: 'boolean' },
      data: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) return console.log(USAGE);
  const log = (line: string) => console.log(line);
  if (values.build) {
    const { server, sqlTool } = await temporalPrograms(log);
    return console.log(`${server}\n${sqlTool}`);
  }
  const temporal = await startTemporalOnPostgres({ dataFolder: values.data, log });
  console.log(`TEMPORAL_ADDRESS=${temporal.address} TEMPORAL_NAMESPACE=${temporal.namespace}`);
  // The wait for a signal alone would not keep the process alive.
  const alive = setInterval(() => undefined, 60_000);
  await new Promise<void>((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
  clearInterval(alive);
  await temporal.end();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
