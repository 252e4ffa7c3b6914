/**
 * Preloaded into our own processes when the stack or a test starts them: ends the process when its
 * starter is gone, also after kill -9. First the polite way, so that what is in flight is finished.
 */
const GRACE_MS = 10_000;

process.on('disconnect', () => {
  process.kill(process.pid, 'SIGTERM');
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), GRACE_MS).unref();
});
// The channel alone must not keep the process running.
process.channel?.unref();
