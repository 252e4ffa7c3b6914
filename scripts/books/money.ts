import { LIVE_ATTEMPT, OPEN_REFUND } from '../../domain/states';
import type { ChannelBooks, ChannelCapture, ChannelRefund } from './channel-books';
import { captureKey, refundKey } from './channel-books';
import type { Findings } from './findings';
import { inspect, together } from './findings';
import type { CaptureRow, OpenCases, OrderRow, RefundRow, Snapshot } from './snapshot';
import { orderKey } from './snapshot';

/** What the money invariants look at: our rows, the channel's books, what is before a person. */
export interface MoneyPicture {
  snapshot: Snapshot;
  books: ChannelBooks;
  cases: OpenCases;
  /** News of the channel younger than this may still be on its way to us. */
  graceMs: number;
}

const money = (amountMinor: number, currency: string) => `${amountMinor} ${currency}`;
const captureName = (c: { dialect: string; channelTradeNo: string }) =>
  `capture ${c.dialect}/${c.channelTradeNo}`;

/**
 * I1: per order at most one capture settles it. A paid order has exactly one, neither reversed nor
 * of another amount or currency than was asked (unless a person decided so), and an order that is
 * still open has none.
 */
export function checkOneSettlingCapture({ snapshot, cases }: MoneyPicture): Findings {
  const settling = grouped(snapshot.captures.filter((c) => c.settles));
  return inspect('I1', snapshot.orders, orderName, function* (order) {
    const captures = settling.get(orderKey(order)) ?? [];
    if (captures.length > 1) yield `${captures.length} captures settle it, one may`;
    if (order.status === 'paid') {
      const [capture] = captures;
      if (!capture) yield 'is paid, but no capture settles it';
      else if (capture.status === 'reversed') yield 'is paid by a capture that was reversed';
      else if (isOtherMoney(capture, order) && !cases.wasDecided(order)) {
        yield (
          `costs ${money(order.amountMinor, order.currency)} and is paid by ` +
          money(capture.amountMinor, capture.currency)
        );
      }
    }
    if (isOpenOrder(order) && captures.length > 0)
      yield `is ${order.status}, yet a capture settles it`;
  });
}

/**
 * I2: what the channel captured and what our books hold is the same, capture by capture (trade
 * number, amount, currency) and in sum per currency. A capture may be missing here only while its
 * news can still arrive (its attempt is live, a callback waits) or an open case names its number; a
 * figure may differ, and a capture be ours alone, only if an open case names it.
 */
export function checkSameCaptures(picture: MoneyPicture): Findings {
  const { snapshot, books, cases } = picture;
  const ours = new Map(snapshot.captures.map((c) => [ourCaptureKey(c), c]));
  const attempts = new Map(snapshot.records.map((r) => [r.outTradeNo, r]));
  const sums = new Map<string, { channelMinor: number; oursMinor: number }>();
  const book = (currency: string, channelMinor: number, oursMinor: number) => {
    const sum = sums.get(currency) ?? { channelMinor: 0, oursMinor: 0 };
    sum.channelMinor += channelMinor;
    sum.oursMinor += oursMinor;
    sums.set(currency, sum);
  };
  const isExcused = (c: ChannelCapture) => {
    const attempt = attempts.get(c.outTradeNo);
    return (
      (attempt !== undefined && LIVE_ATTEMPT.includes(attempt.status)) ||
      isOnItsWay(picture, c.at, c.outTradeNo) ||
      cases.name(c.outTradeNo, c.channelTradeNo)
    );
  };

  const atChannel = inspect('I2', books.captures.values(), captureName, function* (theirs) {
    const own = ours.get(captureKey(theirs.dialect, theirs.outTradeNo, theirs.channelTradeNo));
    if (own === undefined && isExcused(theirs)) return;
    if (own && isOtherMoney(own, theirs) && cases.name(own.outTradeNo, own.channelTradeNo)) return;
    book(theirs.currency, theirs.amountMinor, 0);
    if (own) book(own.currency, 0, own.amountMinor);
    if (!own) {
      yield (
        `the channel captured ${money(theirs.amountMinor, theirs.currency)} under ` +
        `${theirs.outTradeNo}, our books do not have it`
      );
    } else if (isOtherMoney(own, theirs)) {
      yield (
        `the channel captured ${money(theirs.amountMinor, theirs.currency)}, our books say ` +
        money(own.amountMinor, own.currency)
      );
    }
  });
  const oursAlone = snapshot.captures.filter((c) => !books.captures.has(ourCaptureKey(c)));
  const onlyHere = inspect('I2', oursAlone, captureName, function* (own) {
    if (cases.name(own.outTradeNo, own.channelTradeNo)) return;
    book(own.currency, 0, own.amountMinor);
    yield `our books hold ${money(own.amountMinor, own.currency)} that the channel never captured`;
  });
  const perCurrency = inspect(
    'I2',
    sums,
    ([currency]) => `currency ${currency}`,
    function* ([, { channelMinor, oursMinor }]) {
      if (channelMinor !== oursMinor) {
        yield `${channelMinor} captured at the channel, ${oursMinor} in our books (minor units)`;
      }
    },
  );
  return together([atChannel, onlyHere, perCurrency]);
}

/**
 * I3: per capture the refunds at the channel, those under way included, never exceed it; one refund
 * number has one effect there, of the amount we asked for; and what our books call refunded or
 * refused is so at the channel. A difference is no fault while its news can still arrive or an open
 * case names it.
 */
export function checkRefundsWithinCaptures(picture: MoneyPicture): Findings {
  const { snapshot, books, cases } = picture;
  const ours = new Map(snapshot.refunds.map((r) => [refundKey(r.dialect, r.outRefundNo), r]));
  const perCapture = inspect('I3', books.captures.values(), captureName, function* (capture) {
    const total = capture.refundedMinor + capture.underWayMinor;
    if (total > capture.amountMinor) {
      yield (
        `${total} refunded or under way at the channel, ` +
        `${money(capture.amountMinor, capture.currency)} captured`
      );
    }
  });
  const perNumber = inspect('I3', books.refunds.values(), channelRefundName, function* (theirs) {
    if (theirs.executed > 1) yield `the channel paid it ${theirs.executed} times`;
    if (theirs.accepted > 1) yield `the channel accepted it ${theirs.accepted} times`;
    const own = ours.get(refundKey(theirs.dialect, theirs.outRefundNo));
    if (isOnItsWay(picture, theirs.at, theirs.outRefundNo) || cases.name(theirs.outRefundNo))
      return;
    if (!own) {
      if (theirs.executed > 0)
        yield `the channel paid ${theirs.amountMinor}, our books do not have it`;
      return;
    }
    if (own.amountMinor !== theirs.amountMinor) {
      yield `the channel has ${theirs.amountMinor}, our books say ${own.amountMinor} (minor units)`;
    }
    if (theirs.executed > 0 && own.status === 'failed') yield 'paid at the channel, failed here';
  });
  const perRow = inspect('I3', snapshot.refunds, ourRefundName, function* (own) {
    if (own.status !== 'succeeded' && own.status !== 'returned') return;
    const theirs = books.refunds.get(refundKey(own.dialect, own.outRefundNo));
    if ((theirs?.executed ?? 0) > 0 || cases.name(own.outRefundNo)) return;
    yield `is ${own.status} here, the channel never paid it (${own.outRefundNo})`;
  });
  return together([perCapture, perNumber, perRow]);
}

/**
 * I4: every captured minor unit has its place: a paid order, a refund (paid or under way), a
 * reversal, or an open case. What is reserved is carried by refunds that are not final, and what our
 * books call refunded has left the channel.
 */
export function checkNothingLost(picture: MoneyPicture): Findings {
  const { snapshot, books, cases } = picture;
  const orders = new Map(snapshot.orders.map((order) => [orderKey(order), order]));
  const refundsOf = new Map<number, RefundRow[]>();
  for (const refund of snapshot.refunds) {
    refundsOf.set(refund.captureId, [...(refundsOf.get(refund.captureId) ?? []), refund]);
  }
  return inspect('I4', snapshot.captures, captureName, function* (c) {
    const restMinor = c.amountMinor - c.reservedMinor - c.refundedMinor - c.reversedMinor;
    const isPlaced =
      (c.settles && orders.get(orderKey(c))?.status === 'paid') ||
      cases.holds(c) ||
      cases.settled(c.captureId);
    if (restMinor > 0 && !isPlaced) {
      yield (
        `${money(restMinor, c.currency)} of ${money(c.amountMinor, c.currency)} belong to no ` +
        `paid order, refund, reversal or open case (order ${orderKey(c)})`
      );
    }
    const refunds = refundsOf.get(c.captureId) ?? [];
    const carriedMinor = refunds
      .filter(({ status }) => OPEN_REFUND.includes(status) || status === 'abnormal')
      .reduce((sum, { amountMinor }) => sum + amountMinor, 0);
    if (c.reservedMinor !== carriedMinor) {
      yield `${c.reservedMinor} reserved, but refunds under way carry ${carriedMinor}`;
    }
    const goneMinor = books.captures.get(ourCaptureKey(c))?.refundedMinor ?? 0;
    // Money of a refund that came back a moment ago is still refunded here.
    const hasNews = refunds.some((own) => {
      const theirs = books.refunds.get(refundKey(own.dialect, own.outRefundNo));
      return theirs !== undefined && isOnItsWay(picture, theirs.at, own.outRefundNo);
    });
    if (c.refundedMinor > goneMinor && !cases.holds(c) && !hasNews) {
      yield `${c.refundedMinor} refunded in our books, ${goneMinor} at the channel`;
    }
  });
}

/** The channel spoke a moment ago, or what it said waits in our inbox. */
function isOnItsWay({ snapshot, graceMs }: MoneyPicture, at: string, ourNo: string): boolean {
  return snapshot.waitingNumbers.has(ourNo) || Date.parse(at) >= Date.parse(snapshot.now) - graceMs;
}

function ourCaptureKey(c: CaptureRow): string {
  return captureKey(c.dialect, c.outTradeNo, c.channelTradeNo);
}

function orderName(order: OrderRow): string {
  return `order ${orderKey(order)}`;
}

function channelRefundName({ dialect, outRefundNo }: ChannelRefund): string {
  return `refund ${dialect}/${outRefundNo}`;
}

function ourRefundName(refund: RefundRow): string {
  return `refund ${orderKey(refund)}/${refund.refundNo}`;
}

function isOpenOrder({ status }: OrderRow): boolean {
  return status === 'created' || status === 'paying';
}

function isOtherMoney(
  a: { amountMinor: number; currency: string },
  b: { amountMinor: number; currency: string },
): boolean {
  return a.amountMinor !== b.amountMinor || a.currency !== b.currency;
}

function grouped<Row extends { merchantId: string; orderId: string }>(
  rows: readonly Row[],
): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) groups.set(orderKey(row), [...(groups.get(orderKey(row)) ?? []), row]);
  return groups;
}
