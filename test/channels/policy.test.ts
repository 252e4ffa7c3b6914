import { ChannelConfigurationError, MOCK_POLICY } from '../../channels/adapter';
import { mergePolicy } from '../../channels/policy';
import type { ChannelPolicy } from '../../domain/channel-policy';

const merge = (overrides: object) => mergePolicy('ch', MOCK_POLICY, overrides);

describe('merging a channel policy', () => {
  it('takes the overrides and leaves the rest as the adapter wants it', () => {
    const policy = merge({ pollLadderMs: [50, 50, 100], maxCallsPerSecond: 0.5 });
    expect(policy).toEqual({
      ...MOCK_POLICY,
      pollLadderMs: [50, 50, 100],
      maxCallsPerSecond: 0.5,
    } satisfies ChannelPolicy);
  });

  it.each<[string, object]>([
    ['callTimeoutMs', { callTimeoutMs: 0 }],
    ['callTimeoutMs', { callTimeoutMs: 1.5 }],
    ['callTimeoutMs', { callTimeoutMs: '5000' }],
    ['callTimeoutMs', { callTimeoutMs: 2 ** 31 }],
    ['maxSends', { maxSends: -1 }],
    ['maxSends', { maxSends: null }],
    ['maxCallsPerSecond', { maxCallsPerSecond: 0 }],
    ['maxCallsPerSecond', { maxCallsPerSecond: Number.NaN }],
    ['pollLadderMs', { pollLadderMs: [] }],
    ['pollLadderMs', { pollLadderMs: [0, 1] }],
    ['pollLadderMs', { pollLadderMs: [10, 5] }],
    ['refundLadderMs', { refundLadderMs: 10 }],
    ['refundSpacingMs', { refundSpacingMs: -1 }],
    ['notFoundGraceMs', { notFoundGraceMs: 5_000 }],
    ['feeBasisPoints', { feeBasisPoints: -1 }],
    ['feeBasisPoints', { feeBasisPoints: 0.6 }],
    ['tradeBillMaxBytes', { tradeBillMaxBytes: 0 }],
    ['pollLadder is no policy', { pollLadder: [1] }],
  ])('refuses %s in %j', (named, overrides) => {
    expect(() => merge(overrides)).toThrow(ChannelConfigurationError);
    expect(() => merge(overrides)).toThrow(named);
  });

  it('takes a channel without fees', () => {
    expect(merge({ feeBasisPoints: 0, tradeBillMaxBytes: 1_000_000 })).toMatchObject({
      feeBasisPoints: 0,
      tradeBillMaxBytes: 1_000_000,
    });
  });

  it('names every fault at once', () => {
    expect(() => merge({ maxSends: 0, breakerFailures: 0 })).toThrow(/maxSends.*breakerFailures/);
  });
});
