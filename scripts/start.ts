import { openDemoPages } from './demo-pages';
import type { DemoPages } from './demo-pages';
import type { Stack } from './servers/stack';
import { startStack } from './servers/stack';
import { runTour } from './tour';

/**
 * `npm start`: the whole stack on this machine, the guided tour, then the addresses to open; it
 * stays up until Ctrl-C. With `--once` it ends after the tour, 0 when every step passed.
 */
async function start(once: boolean): Promise<void> {
  const startedAt = performance.now();
  const running: { stack?: Stack } = {};
  let ending: Promise<void> | undefined;
  const end = () => (ending ??= running.stack?.end() ?? Promise.resolve());
  const endAndExit = (code: number) => {
    void end().finally(() => process.exit(code));
  };
  for (const [signal, number] of Object.entries({ SIGINT: 2, SIGTERM: 15, SIGHUP: 1 })) {
    process.on(signal, () => {
      // Before the stack is whole, what has been started ends with this process.
      if (ending === undefined) console.log(`${signal}: ending`);
      endAndExit(128 + number);
    });
  }
  // Whoever read the output has gone (`npm start | head`): end quietly, for to say so would fail again.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => endAndExit(1));
  process.on('uncaughtException', (error) => {
    if (ending === undefined) console.error(error);
    endAndExit(1);
  });

  const stack = await startStack({ log: (line) => console.log(line) });
  running.stack = stack;
  console.log(`up after ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`);
  let result = { passed: 0, failed: 1 };
  try {
    result = await runTour(stack);
  } catch (error) {
    console.error(error);
  }
  if (once) {
    await end();
    console.log(`${result.passed} passed, ${result.failed} failed`);
    process.exit(result.failed === 0 ? 0 : 1);
  }
  // The stack is worth having up also when something on it does not work.
  const pages = await openDemoPages(stack).catch((error: unknown) => void console.error(error));
  console.log(`\n${result.passed} passed, ${result.failed} failed\n\n${addresses(stack, pages)}`);
  watch(stack, (report) => {
    if (ending !== undefined) return;
    console.error(report);
    endAndExit(1);
  });
}

function addresses(stack: Stack, pages: DemoPages | void): string {
  return [
    'Open',
    `  operators' desk    ${stack.api.url}/ops/ui`,
    `    log in with      ${stack.demo.operatorKey}`,
    `    second person    ${stack.demo.secondOperatorKey} (in another browser or a private window)`,
    ...(pages
      ? [`    for two persons  ${pages.reviewUrl}`, `  payer's page       ${pages.payUrl}`]
      : []),
    `  API documentation  ${stack.api.url}/docs`,
    `  Temporal Web       ${stack.temporal.uiUrl ?? '(see your Temporal server)'}`,
    `  mock channel       ${stack.mockChannel.controlUrl}/control/trades`,
    `  database           ${stack.databaseUrl}`,
    `  API key            ${stack.demo.apiKey}`,
    `  logs               ${stack.logFolder}`,
    'Ctrl-C ends everything.',
  ].join('\n');
}

/** Stays up; a part that ends by itself is told and ends the rest. */
function watch(stack: Stack, onEnd: (report: string) => void): void {
  // Nothing else keeps this process running: every child is held only while it is waited for.
  setInterval(() => undefined, 60_000);
  for (const part of [stack.api, stack.worker, stack.mockChannel]) {
    void part.ended.then(({ code, signal }) => {
      onEnd(`${part.name} ended (${signal ?? code}): see ${part.logFile}`);
    });
  }
}

const unknown = process.argv.slice(2).filter((option) => option !== '--once');
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(' ')}\nusage: npm start [-- --once]`);
  process.exit(2);
}

start(process.argv.includes('--once')).catch((error: unknown) => {
  console.error(error);
  console.log('0 passed, 1 failed');
  process.exit(1);
});
