import { checkFulfilment } from '../../scripts/books/fulfilment';
import { lineOf } from '../../scripts/books/findings';
import type { Snapshot, StepRow } from '../../scripts/books/snapshot';
import type { MerchantEffect } from '../../scripts/merchant-steps';

const REF = { merchantId: 'shop', orderId: 'o-1' };

/** A fulfilled order of two steps, told so, and what the test says of it. */
function aPicture(said: {
  status?: string;
  failure?: string;
  steps?: string;
  events?: string[];
  cases?: Snapshot['cases'];
  rest?: number;
}): Snapshot {
  const { status = 'done', steps = 'done done', events = ['order.fulfilled'] } = said;
  const rest = said.rest ?? 0;
  return {
    now: '',
    orders: [
      {
        ...REF,
        amountMinor: 100,
        currency: 'CNY',
        status: 'paid',
        fulfilmentStatus: status,
        fulfilmentFailure: said.failure ?? null,
        closeRequestedAt: null,
      },
    ],
    steps: steps.split(' ').map((step, i) => ({
      ...REF,
      stepNo: i + 1,
      name: `s${i + 1}`,
      status: step as StepRow['status'],
      canBeUndone: true,
    })),
    notifications: events.map((eventType) => ({ ...REF, eventType, subjectNo: '' })),
    captures: [
      {
        ...REF,
        captureId: 1,
        channel: 'mock-a',
        dialect: 'mock-a',
        outTradeNo: 'OUT1',
        channelTradeNo: 'T1',
        amountMinor: 100,
        currency: 'CNY',
        settles: true,
        status: 'captured',
        reservedMinor: 0,
        refundedMinor: 100 - rest,
        reversedMinor: 0,
      },
    ],
    cases: said.cases ?? [],
    records: [],
    refunds: [],
    events: [],
    work: [],
    waitingNumbers: new Set(),
    schemaMoves: new Set(),
  } as Snapshot;
}

const effect = (call: 'do' | 'undo', step: string, key?: string): MerchantEffect => ({
  ...REF,
  call,
  step,
  key: key ?? `ful:shop:o-1:${step}${call === 'undo' ? ':undo' : ''}`,
});
const BOTH = [effect('do', 's1'), effect('do', 's2')];
const FAILED = {
  status: 'failed',
  failure: 'step_refused',
  steps: 'undone refused',
  events: ['order.fulfilment_failed'],
};
const faults = (snapshot: Snapshot, effects?: readonly MerchantEffect[]) =>
  checkFulfilment(snapshot, effects).violations.map((v) =>
    lineOf(v).replace('I8 order shop/o-1: ', ''),
  );

describe('I8 of a fulfilment', () => {
  it('finds nothing where everything was done once, or undone and given back', () => {
    expect(faults(aPicture({}), BOTH)).toEqual([]);
    expect(faults(aPicture(FAILED), [effect('do', 's1'), effect('undo', 's1')])).toEqual([]);
    expect(
      faults(aPicture({ status: 'running', steps: 'done running', events: [] }), BOTH),
    ).toEqual([]);
  });

  it.each<[string, Snapshot, MerchantEffect[] | undefined, string]>([
    [
      'an effect twice',
      aPicture({}),
      [...BOTH, effect('do', 's2')],
      'the merchant logged 2 times: do s2',
    ],
    [
      'an effect under another key',
      aPicture({}),
      [effect('do', 's1'), effect('do', 's2', 'ful:shop:o-1:s2:again')],
      'the merchant was asked for do s2 under ful:shop:o-1:s2:again',
    ],
    [
      'an effect of no step',
      aPicture({}),
      [...BOTH, effect('do', 's9')],
      'the merchant logged do s9, the order has no such step',
    ],
    [
      'a step without its effect',
      aPicture({}),
      [effect('do', 's1')],
      'step s2 is done, its effect is not',
    ],
    [
      'a done step that was undone',
      aPicture({}),
      [...BOTH, effect('undo', 's2')],
      'step s2 is done, and was undone',
    ],
    [
      'an effect that stands',
      aPicture(FAILED),
      [effect('do', 's1')],
      'its fulfilment failed, the effect of step s1 stands',
    ],
    [
      'a payment that was not given back',
      aPicture({ ...FAILED, rest: 40 }),
      undefined,
      'could not be fulfilled, and its payment T1 is not given back',
    ],
    [
      'an end not told',
      aPicture({ events: [] }),
      undefined,
      'its fulfilment is done, order.fulfilled is written 0 times',
    ],
    [
      'an end told wrongly',
      aPicture({ events: ['order.fulfilled', 'order.fulfilment_failed'] }),
      undefined,
      'its fulfilment is done, order.fulfilment_failed is written 1 times',
    ],
    [
      'a step that is not where the order is',
      aPicture({ steps: 'done running' }),
      undefined,
      'its fulfilment is done, step s2 is running',
    ],
    [
      'an undo given up without a case',
      aPicture({ ...FAILED, steps: 'undo_failed refused' }),
      undefined,
      'a step could not be undone, no case says so',
    ],
  ])('names %s', (_, snapshot, effects, fault) => {
    expect(faults(snapshot, effects)).toEqual([fault]);
  });

  it('lets an effect stand that could not be undone, when a person was told', () => {
    const cases = [
      { ...REF, caseId: 1, status: 'open' as const, text: '', settledCaptures: [] },
    ] as Snapshot['cases'];
    const snapshot = aPicture({ ...FAILED, steps: 'undo_failed refused', cases });
    expect(faults(snapshot, [effect('do', 's1')])).toEqual([]);
  });
});
