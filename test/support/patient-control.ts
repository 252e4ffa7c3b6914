import { MockChannelControl, MockChannelControlError } from '../../mock-channel/control-client';
import { waitFor } from './wait';

/**
 * The practice channel's control as tests of the whole saga use it: a payer decides once the trade is
 * there. On a busy machine an order may be "paying" a moment before the channel has heard of it.
 */
export class PatientControl extends MockChannelControl {
  override approve(trade: Parameters<MockChannelControl['approve']>[0]) {
    return onceThere(() => super.approve(trade));
  }

  override decline(trade: Parameters<MockChannelControl['decline']>[0]) {
    return onceThere(() => super.decline(trade));
  }
}

/** Any other refusal is the answer. */
async function onceThere<T>(decide: () => Promise<T>): Promise<T> {
  const settled = await waitFor('the trade is at the channel', () =>
    decide().then(
      (value) => ({ value }),
      (error: unknown) => {
        if (error instanceof MockChannelControlError && error.status === 404) throw error;
        return { error };
      },
    ),
  );
  if ('error' in settled) throw settled.error;
  return settled.value;
}
