import { Context } from '@temporalio/activity';

/** Well below any heartbeat timeout; what ends sooner costs no beat. The SDK sends fewer when it may. */
const BEAT_EVERY_MS = 3_000;

/**
 * Tells Temporal that this worker still lives, so that another takes over soon when it does not.
 * @param details what the next try may go on from, read at each beat
 */
export async function whileBeating<T>(
  work: () => Promise<T>,
  details: () => unknown = () => undefined,
): Promise<T> {
  const context = Context.current();
  const beating = setInterval(() => context.heartbeat(details()), BEAT_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(beating);
  }
}
