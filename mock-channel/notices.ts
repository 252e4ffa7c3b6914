import type { Account, DialectFormat, Notice } from './dialect';
import type { Capture, Refund, Trade } from './ledger';
import type { News } from './trade-desk';

/** Fixes what a notice tells: later changes of the trade do not change it. */
export function noticeFor(
  format: DialectFormat,
  account: Account,
  news: News,
  noticeId: string,
): Notice {
  const { trade, kind } = news;
  const content =
    news.kind === 'payment'
      ? format.tradeContent(account, trade, news.capture)
      : format.refundContent(account, news.refund, trade);
  return {
    noticeId,
    dialect: trade.dialect,
    outTradeNo: trade.outTradeNo,
    outRefundNo: news.kind === 'refund' ? news.refund.outRefundNo : null,
    subject: trade.subject,
    kind,
    word: format.wordOf(content, kind),
    currency:
      news.kind === 'refund' ? news.refund.currency : (news.capture?.currency ?? trade.currency),
    content,
  };
}

/** A success notice about numbers that are not in the books: 1.00 (or 100 minor units) of money. */
export function strangerNotice(
  format: DialectFormat,
  account: Account,
  about: { noticeId: string; outTradeNo: string; outRefundNo: string | null; currency: string },
): Notice {
  const now = new Date().toISOString();
  const { noticeId, outTradeNo, outRefundNo, currency } = about;
  const { dialect } = format;
  const channelTradeNo = `${now.slice(0, 10).replace(/-/g, '')}99${digitsOf(noticeId)}`;
  const capture = imaginedCapture(channelTradeNo, 100, currency);
  const trade: Trade = {
    dialect,
    outTradeNo,
    channelTradeNo,
    subject: 'a stranger',
    amountMinor: 100,
    currency,
    expiresAt: now,
    payMethod: 'redirect',
    returnUrl: null,
    status: 'open',
    createdAt: now,
    captures: [capture],
    refunds: [],
  };
  if (outRefundNo === null) {
    return noticeFor(format, account, { kind: 'payment', trade, capture }, noticeId);
  }
  const refund: Refund = {
    dialect,
    outTradeNo,
    outRefundNo,
    channelRefundNo: `${channelTradeNo.slice(0, -1)}7`,
    channelTradeNo,
    amountMinor: 100,
    currency,
    status: 'succeeded',
    failCode: null,
    finishedAt: now,
  };
  return noticeFor(format, account, { kind: 'refund', trade, refund }, noticeId);
}

/** A capture that is not in the books, for a success notice about money nobody took. */
export function imaginedCapture(
  channelTradeNo: string,
  amountMinor: number,
  currency: string,
): Capture {
  return {
    channelTradeNo,
    amountMinor,
    currency,
    payerTotalMinor: amountMinor,
    capturedAt: new Date().toISOString(),
    refundedMinor: 0,
    reservedMinor: 0,
    reversedMinor: 0,
    everReversed: false,
  };
}

/** 18 digits out of a UUID: enough that two strangers differ. */
function digitsOf(uuid: string): string {
  return (BigInt(`0x${uuid.replace(/-/g, '')}`) % 10n ** 18n).toString().padStart(18, '0');
}
