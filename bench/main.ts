/**
 * `npm run bench -- <name> [--options]`: each prints a table and, as its last line, one JSON object.
 */
import { cost } from './cost';
import { fulfilment } from './fulfilment';
import { http } from './http';
import { memory } from './memory';
import { reconcile } from './reconcile';
import { report } from './report';
import { saga } from './saga';
import { soak } from './soak';
import { strategies } from './strategies';

const BENCHES: Record<string, (args: readonly string[]) => Promise<unknown>> = {
  cost,
  fulfilment,
  http,
  memory,
  reconcile,
  report,
  saga,
  soak,
  strategies,
};

async function main(): Promise<void> {
  const [name, ...args] = process.argv.slice(2);
  const bench = name === undefined ? undefined : BENCHES[name];
  if (!bench) {
    console.error(
      `usage: npm run bench -- <${Object.keys(BENCHES).join(' | ')}> [--orders N | --rows N]`,
    );
    process.exit(2);
  }
  console.log(JSON.stringify(await bench(args)));
}

main().then(
  // Native clients may keep the process alive after everything was given back.
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
