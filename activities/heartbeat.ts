import { Context } from '@temporalio/activity';

/** Well below the heartbeat timeouts; most work ends before the first beat. */
const BEAT_EVERY_MS = 3_000;

/** Tells Temporal that this worker still lives, so that another takes over soon when it does not. */
export async function whileBeating<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const beating = setInterval(() => context.heartbeat(), BEAT_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(beating);
  }
}
