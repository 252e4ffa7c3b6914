import { writeSync } from 'node:fs';

/**
 * A named place where a test may kill this process. Off unless FAILPOINT names it; then the process
 * reports that it has arrived (a line on standard error) and waits there for ever: whoever set the
 * failpoint ends it with SIGKILL. The process never ends itself.
 */
export function failpoint(name: string): Promise<void> {
  if (process.env['FAILPOINT'] !== name) return Promise.resolve();
  // Synchronously, so that the line is out before the kill.
  writeSync(2, `FAILPOINT ${name}\n`);
  return new Promise(() => {
    setInterval(() => undefined, 60_000);
  });
}
