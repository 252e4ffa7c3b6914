import type { ChannelPolicy } from '../domain/channel-policy';
import { ChannelConfigurationError } from './adapter';

const LADDERS = ['pollLadderMs', 'refundLadderMs', 'tradeBillLadderMs'] as const;
/** No spacing of refunds, and no fees to compare. */
const MAY_BE_ZERO: readonly (keyof ChannelPolicy)[] = ['refundSpacingMs', 'feeBasisPoints'];
/** Node's timers take no longer wait; also the bound for what the worker waits in one go. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * The adapter's default policy with the row's overrides, checked: whole positive numbers (spacing of
 * refunds and fees may be 0), ladders that do not fall, a grace that outlasts a call.
 *
 * @throws ChannelConfigurationError that names every fault at once
 */
export function mergePolicy(
  channel: string,
  defaults: ChannelPolicy,
  overrides: Partial<ChannelPolicy>,
): ChannelPolicy {
  const faults: string[] = [];
  for (const key of Object.keys(overrides)) {
    // A misspelt limit would otherwise silently leave the default in force.
    if (!Object.hasOwn(defaults, key)) faults.push(`${key} is no policy`);
  }
  const given = Object.entries(overrides).filter(([, value]) => value !== undefined);
  const merged = { ...defaults, ...(Object.fromEntries(given) as Partial<ChannelPolicy>) };

  for (const key of Object.keys(defaults) as (keyof ChannelPolicy)[]) {
    const value: unknown = merged[key];
    if ((LADDERS as readonly string[]).includes(key)) {
      if (!isLadder(value)) faults.push(`${key} must be a list of positive waits that never falls`);
    } else if (key === 'maxCallsPerSecond') {
      // A fraction is meaningful here: one call every two seconds.
      if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) {
        faults.push(`${key} must be above 0`);
      }
    } else if (!isWhole(value, MAY_BE_ZERO.includes(key) ? 0 : 1)) {
      faults.push(`${key} must be a positive whole number`);
    }
  }
  if (merged.callTimeoutMs > LONGEST_TIMER_MS) faults.push('callTimeoutMs is too long for a timer');
  if (merged.notFoundGraceMs <= merged.callTimeoutMs) {
    faults.push(
      'notFoundGraceMs must be longer than callTimeoutMs, a call may still be on its way',
    );
  }
  if (faults.length > 0) {
    throw new ChannelConfigurationError(`channel ${channel}: policy: ${faults.join('; ')}`);
  }
  return merged;
}

function isLadder(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((rung, index) => isWhole(rung, index === 0 ? 1 : (value[index - 1] as number)))
  );
}

function isWhole(value: unknown, least: number): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least;
}
