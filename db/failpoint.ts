import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** How often each entry of FAILPOINT was passed. */
const arrivals = new Map<string, number>();

/** `settle:before`, `settle:before#order-7`, `settle:before@2`, `settle:before~1500`, in this order. */
const ENTRY = /^([a-z:-]+)(?:#([A-Za-z0-9_.-]+))?(?:@([0-9]+))?(?:~([0-9]+))?$/;

/**
 * A named place where a test may kill this process. Off unless FAILPOINT names it; then the process
 * reports that it has arrived (a line on standard error: `FAILPOINT name order`) and waits there for
 * ever: whoever set the failpoint ends it with SIGKILL. The process never ends itself.
 *
 * FAILPOINT is a list, separated by commas. Each entry is a name, and where wanted: `#` and the one
 * order it is for, `@` and the arrival from which on it holds (1 unless said), `~` and for how many
 * milliseconds instead of for ever.
 */
export async function failpoint(name: string, orderId?: string): Promise<void> {
  const setting = process.env['FAILPOINT'];
  if (setting === undefined) return;
  for (const entry of setting.split(',')) {
    const [, itsName, itsOrder, from = '1', holdMs] = ENTRY.exec(entry) ?? [];
    if (itsName !== name || (itsOrder !== undefined && itsOrder !== orderId)) continue;
    const arrival = (arrivals.get(entry) ?? 0) + 1;
    arrivals.set(entry, arrival);
    if (arrival < Number(from)) continue;
    // Synchronously, so that the line is out before the kill.
    writeSync(2, `FAILPOINT ${name}${orderId === undefined ? '' : ` ${orderId}`}\n`);
    if (holdMs !== undefined) await delay(Number(holdMs));
    else await forEver();
  }
}

function forEver(): Promise<never> {
  return new Promise(() => {
    setInterval(() => undefined, 60_000);
  });
}
