import type { ChannelRow } from '../domain/channel-policy';
import type { BillTotals } from '../domain/trade-bill';
import { isCurrency } from '../domain/money';
import { MOCK_POLICY } from './adapter';
import { billNoAnswer } from './bill-not-ready';
import type { SaidOfBill } from './bill-not-ready';
import type { TradeBillAnswer } from './contract';
import { readInteger, readText } from './exact-json';
import type { ExactJsonObject } from './exact-json';
import { readInstant } from './fact-reading';
import { unreadable } from './http-answer';
import type { NoAnswer } from './http-answer';
import type { HttpExchange } from './http-client';
import { readSmallBody } from './http-download';
import type { DownloadExchange } from './http-download';
import { openBillFile, wrongDay } from './trade-bill-reading';
import type { BillFormat } from './trade-bill-rows';
import { byMinute } from './zone-clock';

/*
 * Trade bills of dialect `mock-b`: a signed answer with hash, sums and path of the file, then the
 * file, gzip CSV in minor units. Protocol: mock-channel/PROTOCOL.md, section 2.
 */

const FORMAT: Omit<BillFormat, 'readTime'> = {
  columns: {
    time: 'success_time',
    type: 'trade_type',
    channelTradeNo: 'transaction_id',
    outTradeNo: 'out_trade_no',
    channelRefundNo: 'refund_id',
    outRefundNo: 'out_refund_no',
    currency: 'currency',
    amount: 'amount',
    fee: 'fee',
    status: 'trade_state',
  },
  kinds: {
    PAY: 'payment',
    REFUND: 'refund',
    REVERSAL: 'reversal',
    REINSTATEMENT: 'adjustment',
    REFUND_RETURN: 'adjustment',
    ADJUSTMENT: 'adjustment',
    SUSPENSE: 'adjustment',
  },
  statuses: {
    SUCCESS: 'succeeded',
    PROCESSING: 'processing',
    CLOSED: 'failed',
  },
  amounts: { unit: 'minor', grouping: false, currencySigns: false },
  summary: null,
};

/** The answer to the question for a bill, read; `json` when it is a success. */
type Said =
  { code: 'success'; json: ExactJsonObject } | Exclude<SaidOfBill, { code: 'success' }> | NoAnswer;

/** Asks for the file that the channel's answer names, at its own address and nowhere else. */
export async function openMockBBill(
  asked: { row: ChannelRow; day: string },
  said: Said,
  download: (path: string) => Promise<{
    exchange: DownloadExchange;
    readAnswer: (exchange: HttpExchange) => SaidOfBill;
  }>,
): Promise<TradeBillAnswer> {
  const { row, day } = asked;
  if ('outcome' in said || said.code !== 'success') return billNoAnswer(said);
  const { json } = said;
  const [path, hash] = [readText(json, 'download_path'), readText(json, 'hash_value')];
  const totals = readTotals(json);
  const isComplete =
    path !== undefined &&
    // A path, never an address: a signed request must not wander to another host.
    /^\/[A-Za-z0-9][A-Za-z0-9/_?=&.-]{0,500}$/.test(path) &&
    readText(json, 'hash_type') === 'SHA256' &&
    hash !== undefined &&
    /^[0-9a-fA-F]{64}$/.test(hash) &&
    totals !== undefined;
  if (!isComplete) return unreadable('answer_without_bill');

  const { exchange, readAnswer } = await download(path);
  if (exchange.result !== 'answer') return billNoAnswer(readAnswer(exchange));
  if (exchange.status !== 200) {
    return billNoAnswer(readAnswer(await readSmallBody(exchange)));
  }
  return openBillFile({
    fileName: readText(json, 'file_name')?.slice(0, 200) ?? `bill-${day}`,
    body: exchange.body,
    packed: 'gzip',
    charset: 'utf-8',
    statedSha256: hash,
    statedTotals: totals,
    maxBytes: row.policy.tradeBillMaxBytes ?? MOCK_POLICY.tradeBillMaxBytes,
    format: { ...FORMAT, readTime: byMinute(readInstant) },
    fault: wrongDay(day, readText(json, 'bill_date') ?? ''),
  });
}

/** Null: the channel states no sums. Undefined: what it states is not sums. */
function readTotals(json: ExactJsonObject): BillTotals[] | null | undefined {
  if (!Object.hasOwn(json, 'totals')) return null;
  if (!Array.isArray(json.totals)) return undefined;
  const totals = (json.totals as unknown[]).map(readTotal);
  return totals.every((one) => one !== undefined) ? totals : undefined;
}

function readTotal(value: unknown): BillTotals | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const object = value as ExactJsonObject;
  const currency = readText(object, 'currency');
  const payments = readInteger(object, 'payments');
  const paymentsMinor = readInteger(object, 'payments_amount');
  const refunds = readInteger(object, 'refunds');
  const refundsMinor = readInteger(object, 'refunds_amount');
  const feesMinor = readInteger(object, 'fees');
  if (
    currency === undefined ||
    !isCurrency(currency) ||
    payments === undefined ||
    paymentsMinor === undefined ||
    refunds === undefined ||
    refundsMinor === undefined ||
    feesMinor === undefined
  ) {
    return undefined;
  }
  return { currency, payments, paymentsMinor, refunds, refundsMinor, feesMinor };
}
