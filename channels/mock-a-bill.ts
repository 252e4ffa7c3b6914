import type { ChannelRow } from '../domain/channel-policy';
import { MOCK_POLICY } from './adapter';
import { billNoAnswer } from './bill-not-ready';
import type { SaidOfBill } from './bill-not-ready';
import type { TradeBillAnswer } from './contract';
import { unreadable } from './http-answer';
import type { HttpExchange } from './http-client';
import { readSmallBody } from './http-download';
import type { DownloadExchange } from './http-download';
import { isSignedWithAny } from './message-authenticity';
import { SIGN_TYPE } from './mock-a-form';
import { openBillFile, wrongDay } from './trade-bill-reading';
import type { BillFormat } from './trade-bill-rows';
import { zoneClockReader } from './zone-clock';

/*
 * Trade bills of dialect `mock-a`: one call answered by the file itself, CSV with decimal amounts,
 * every cell behind a backtick, a table of sums at the end. Protocol: mock-channel/PROTOCOL.md,
 * section 1.
 */

const FORMAT: Omit<BillFormat, 'readTime'> = {
  columns: {
    time: '交易时间',
    type: '交易类型',
    channelTradeNo: '平台订单号',
    outTradeNo: '商户订单号',
    channelRefundNo: '平台退款单号',
    outRefundNo: '商户退款单号',
    currency: '币种',
    amount: '金额',
    fee: '手续费',
    status: '状态',
  },
  kinds: {
    PAYMENT: 'payment',
    REFUND: 'refund',
    REVERSAL: 'reversal',
    REINSTATEMENT: 'adjustment',
    REFUND_RETURN: 'adjustment',
    ADJUSTMENT: 'adjustment',
    SUSPENSE: 'adjustment',
  },
  statuses: {
    TRADE_SUCCESS: 'succeeded',
    TRADE_CLOSED: 'failed',
    REFUND_SUCCESS: 'succeeded',
    REFUND_PROCESSING: 'processing',
    REFUND_FAIL: 'failed',
  },
  amounts: { unit: 'decimal', grouping: true, currencySigns: true },
  summary: {
    currency: '汇总币种',
    payments: '收款笔数',
    paymentsAmount: '收款金额',
    refunds: '退款笔数',
    refundsAmount: '退款金额',
    fees: '手续费金额',
  },
};

/** What the channel answered to `bill.download`: the file, or signed words. */
export async function openMockABill(
  asked: { row: ChannelRow; keys: readonly string[]; day: string },
  exchange: DownloadExchange,
  readAnswer: (exchange: HttpExchange) => SaidOfBill,
): Promise<TradeBillAnswer> {
  const { row, keys, day } = asked;
  if (exchange.result !== 'answer') return billNoAnswer(readAnswer(exchange));
  const { status, headers } = exchange;
  const type = /^text\/csv(?:\s*;\s*charset="?([^\s;"]+)"?)?$/i.exec(headers['content-type'] ?? '');
  if (status !== 200 || !type) {
    const small = await readSmallBody(exchange);
    if (status === 202 || status === 204) {
      return { outcome: 'not_ready', reason: `http_${status}`, retryAfterMs: null };
    }
    return billNoAnswer(readAnswer(small));
  }

  const header = (name: string): string => {
    const value = headers[name];
    return typeof value === 'string' ? value : '';
  };
  const charset = type[1] ?? 'utf-8';
  const billDate = header('x-mock-a-bill-date');
  const fileName = header('x-mock-a-bill-name');
  const signed = `${row.accountId}\n${billDate}\n${charset}\n${fileName}\n`;
  const isSigned =
    header('x-mock-a-sign-type') === SIGN_TYPE &&
    isSignedWithAny(keys, header('x-mock-a-sign'), [signed]);
  if (!isSigned) {
    await readSmallBody(exchange);
    return unreadable('unsigned_answer: bill');
  }
  return openBillFile({
    fileName,
    body: exchange.body,
    packed: null,
    charset,
    statedSha256: null,
    statedTotals: null,
    maxBytes: row.policy.tradeBillMaxBytes ?? MOCK_POLICY.tradeBillMaxBytes,
    format: { ...FORMAT, readTime: zoneClockReader(row.timeZone) },
    fault: wrongDay(day, billDate),
  });
}
