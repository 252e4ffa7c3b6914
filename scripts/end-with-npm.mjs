/** How soon after npm's end this process notices it. */
const CHECK_EVERY_MS = 500;

/**
 * When npm started this process and is gone (kill -9 leaves it no time to pass a signal on), ends
 * this process as Ctrl-C would have. Started by hand, the process may outlive its shell.
 */
export function endWithNpm() {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, CHECK_EVERY_MS);
  timer.unref();
}
