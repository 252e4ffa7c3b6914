import type { FaultAction, FaultRule } from '../../mock-channel/control-types';
import type { Saga } from '../support/saga';

/** The limit of one channel call in the chaos run; delays are drawn around it. */
export const CALL_TIMEOUT_MS = 1_500;

type Operation = FaultRule['match']['operation'];
type Odds = [probability: number, does: FaultAction];

const NEAR_THE_LIMIT: FaultAction = {
  delayBeforeAnswerMs: [CALL_TIMEOUT_MS - 300, CALL_TIMEOUT_MS + 300],
};
const LOST_AFTER_EFFECT: FaultAction = { answer: 'drop' };
const LOST_BEFORE_EFFECT: FaultAction = { effect: 'none', answer: 'drop' };
const ERROR_AFTER_EFFECT: FaultAction = { answer: 'http', status: 500 };
const ERROR_BEFORE_EFFECT: FaultAction = { effect: 'none', answer: 'http', status: 502 };
const HTML: FaultAction = { answer: 'html', status: 200 };
const TOO_MANY: FaultAction = { effect: 'none', answer: 'http', status: 429, retryAfterSeconds: 1 };

/** What may go wrong on any call. */
const ON_EVERY_CALL: Odds[] = [
  [0.06, LOST_AFTER_EFFECT],
  [0.03, LOST_BEFORE_EFFECT],
  [0.05, ERROR_AFTER_EFFECT],
  [0.03, ERROR_BEFORE_EFFECT],
  [0.03, HTML],
  [0.03, TOO_MANY],
  [0.05, NEAR_THE_LIMIT],
  [0.02, { answer: 'cut_off' }],
  [0.02, { answer: 'empty' }],
  [0.02, { answer: 'odd_fields' }],
  [0.02, { answer: 'word', word: 'FROZEN' }],
];

const ON: [Operation, Odds[]][] = [
  [
    'create',
    [
      [0.04, { answer: 'refuse' }],
      [0.04, { captureNow: true, answer: 'drop' }],
      [0.04, { captureNow: true, answerAfterCallback: true }],
      [0.03, { answer: 'already_paid' }],
      [0.03, { delayBeforeEffectMs: CALL_TIMEOUT_MS + 500 }],
    ],
  ],
  [
    'query',
    [
      [0.08, { answer: 'no_such_order' }],
      [0.04, { captureNow: true }],
    ],
  ],
  [
    'close',
    [
      [0.12, { captureNow: true }],
      [0.06, { effect: 'none', answer: 'ok' }],
      [0.04, { answer: 'no_such_order' }],
    ],
  ],
  [
    'refund',
    [
      [0.06, { refund: 'now', answer: 'drop' }],
      [0.06, { refund: 'refuse' }],
      [0.05, { refund: 'fail_later' }],
      [0.05, { refund: 'not_enough_balance' }],
      [0.04, { refund: 'abnormal' }],
      [0.08, { refund: 'hold' }],
      [0.04, { answer: 'already_processed' }],
      [0.03, { delayBeforeEffectMs: CALL_TIMEOUT_MS + 500 }],
    ],
  ],
  ['refund_query', [[0.06, { answer: 'no_such_order' }]]],
];

const ON_CALLBACKS: Odds[] = [
  [0.15, { drop: true }],
  [0.15, { delayMs: [50, 2_500] }],
  [0.12, { hold: true }],
  [0.12, { copies: 4 }],
  [0.05, { callback: { notifyId: 'new', copies: 2 } }],
];

/** Sets every fault of the run; each die is seeded from `seed`. */
export async function setFaults(saga: Saga, seed: number): Promise<void> {
  let rules = 0;
  const add = async (operation: Operation, odds: Odds[]) => {
    for (const [probability, does] of odds) {
      await saga.mock.addFault({
        match: { operation },
        probability,
        seed: seed * 1_000 + ++rules,
        do: does,
      });
    }
  };
  for (const [operation, odds] of ON) await add(operation, odds);
  await add('any', ON_EVERY_CALL);
  await add('callback', ON_CALLBACKS);
}

/**
 * The channel is well again: no fault acts, what it held back is sent (the last first), every notice
 * that was never acknowledged is sent again, and refunds it kept are finished.
 */
export async function liftFaults(saga: Saga, roll: () => number): Promise<void> {
  await saga.mock.clearFaults();
  await saga.mock.releaseCallbacks({ order: 'lifo' });
  for (const trade of await saga.mock.trades()) {
    for (const refund of trade.refunds) {
      if (refund.status !== 'processing') continue;
      const result = roll() < 0.7 ? 'succeed' : 'fail';
      // Its own timer may have finished it meanwhile.
      await saga.mock
        .finishRefund({ outRefundNo: refund.outRefundNo, dialect: refund.dialect, result })
        .catch(() => undefined);
    }
  }
  await saga.mock.waitUntilIdle({ timeoutMs: 15_000 });
  const deliveries = await saga.mock.deliveries();
  const taken = new Set(deliveries.filter((d) => d.acknowledged).map((d) => d.noticeId));
  const notices = new Set(deliveries.map((d) => d.noticeId));
  for (const noticeId of notices) {
    if (!taken.has(noticeId)) await saga.mock.resendCallback({ noticeId });
  }
}
