import type { Channel } from './channel';

/**
 * What to do about a call that was recorded before it was made and never booked. While its sender may
 * still send: wait. Afterwards the channel is asked under the recorded number: money taken is booked,
 * and only a number that the channel does not know is sent again, by whoever moves the record.
 */
export async function resumeUnknown(
  channel: Channel,
  call: { number: string; ageMs: number; leaseMs: number },
): Promise<'wait' | 'book' | 'send_again'> {
  // A call that left at the very end of its sender's time is still on its way.
  if (call.ageMs < call.leaseMs * ARRIVAL_GRACE) return 'wait';
  return (await channel.query(call.number)) ? 'book' : 'send_again';
}

const ARRIVAL_GRACE = 1.5;
