import type { Desks } from './desk';
import { BILL_DEFECTS } from './bill-defects';
import { daysAgo, paidOn, reconcile } from './reconciliations';

/** What shop and operators write on the pages, where a test wants it hostile. */
export interface DeskTexts {
  subject?: string;
  metadata?: object;
  name?: string;
  reason?: string;
  longReason?: string;
  evidence?: string;
}

export const DESK_PAGES = [
  ...(['login', 'glance', 'glance-by-day', 'cases', 'case', 'acts', 'act', 'search'] as const),
  ...(['order', 'month', 'date', 'dead-letters', 'dead-letter', 'stuck', 'problem'] as const),
];
export type DeskPage = (typeof DESK_PAGES)[number];

/**
 * Makes something to see on every page of the desk, and gives the pages' addresses. The saga's limit for
 * one operator (ACTS_ALONE_UP_TO) and its ladder of notifications are the caller's.
 */
export async function makeDeskPages(
  desks: Desks,
  texts: DeskTexts = {},
): Promise<Record<DeskPage, string>> {
  const { saga, operators } = desks;
  const day = daysAgo(saga, 26);
  const { outTradeNo, tradeNo } = await paidOn(saga, 'mock-a', day);
  const about = { outTradeNo, channelTradeNo: tradeNo, amountMinor: 10_000 };
  await BILL_DEFECTS.fee(saga.mock, { dialect: 'mock-a', day }, about);
  await reconcile(saga, 'mock-a', day);
  const letter = await deadLetter(desks);

  const { subject = 'Two oak chairs, oiled', metadata = { basket: 'b-17' } } = texts;
  const { orderId } = await operators.mismatch(9_000, { subject, metadata });
  const { name = 'Lin', reason = 'the payer sent the receipt' } = texts;
  await operators.act(orderId, { kind: 'note', name, reason: texts.longReason ?? reason });
  const { named, case_id: caseId } = await operators.openCase(orderId);
  const evidence = texts.evidence ?? 'paid back by bank transfer, see statement 117';
  const act = await operators.act(orderId, {
    ...{ kind: 'close_case', ...named, name, reason, evidence },
  });
  if (act.status !== 202) throw new Error(`the act does not wait: ${JSON.stringify(act.body)}`);
  const path = {
    login: '/login?next=/ops/ui/cases',
    glance: '',
    'glance-by-day': '?by=day',
    cases: '/cases',
    case: `/cases/${caseId}`,
    acts: '/acts',
    act: `/acts/${act.body.act_no}`,
    search: '/search?status=review',
    order: `/orders/${saga.merchantId}/${orderId}`,
    month: `/reconciliation?month=${day.slice(0, 7)}`,
    date: `/reconciliation/${day}`,
    'dead-letters': '/dead-letters',
    'dead-letter': `/dead-letters/${letter}`,
    stuck: '/stuck',
    problem: '/nothing-here',
  };
  for (const page of DESK_PAGES) path[page] = desks.url + path[page];
  return path;
}

/** An event that its shop could not be told. */
async function deadLetter({ saga }: Desks): Promise<string> {
  const { answer } = saga.merchant;
  saga.merchant.answer = () => 503;
  const { orderId } = await saga.paidOrder();
  await saga.untilSettled(orderId);
  saga.merchant.answer = answer;
  const [row] = await saga.rows<{ id: string }>(
    `select notification_id::text as id from notifications where order_id = $1::text`,
    orderId,
  );
  return row!.id;
}
