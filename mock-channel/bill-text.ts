import { encode } from 'iconv-lite';
import { formatDecimal, isCurrency } from '../domain/money';
import type { Adder } from './bill-rows';
import type { BillRow, Totals } from './bill-rows';
import { COLUMNS } from './bill-types';
import type { BillFileDefects, Column } from './bill-types';
import type { BusinessZone } from './business-zone';
import type { Dialect } from './books';

/** How a dialect writes its bills. */
interface Writing {
  names: Record<Column, string>;
  types: Record<BillRow['kind'], string>;
  status(row: BillRow): string;
  amount(minor: number, currency: string): string;
  time(zone: BusinessZone, instant: string): string;
  backticks: boolean;
  /** Names of the columns of the sums; null: they are not in the file. */
  summary: string[] | null;
}

const WRITINGS: Record<Dialect, Writing> = {
  'mock-a': {
    names: {
      time: '交易时间',
      account: '商户号',
      type: '交易类型',
      channelTradeNo: '平台订单号',
      outTradeNo: '商户订单号',
      channelRefundNo: '平台退款单号',
      outRefundNo: '商户退款单号',
      currency: '币种',
      amount: '金额',
      fee: '手续费',
      status: '状态',
      subject: '商品名称',
    },
    types: {
      payment: 'PAYMENT',
      refund: 'REFUND',
      reversal: 'REVERSAL',
      reinstatement: 'REINSTATEMENT',
      refund_return: 'REFUND_RETURN',
      adjustment: 'ADJUSTMENT',
      suspense: 'SUSPENSE',
      unknown: 'ADVANCE_PAYBACK',
    },
    status: ({ kind, status }) => {
      const ofRefund = kind === 'refund';
      if (status === 'processing') return ofRefund ? 'REFUND_PROCESSING' : 'WAIT_BUYER_PAY';
      if (status === 'failed') return ofRefund ? 'REFUND_FAIL' : 'TRADE_CLOSED';
      return ofRefund ? 'REFUND_SUCCESS' : 'TRADE_SUCCESS';
    },
    amount: (minor, currency) =>
      isCurrency(currency) ? formatDecimal(minor, currency) : String(minor),
    time: (zone, instant) => zone.timeOf(instant),
    backticks: true,
    summary: ['汇总币种', '收款笔数', '收款金额', '退款笔数', '退款金额', '手续费金额'],
  },
  'mock-b': {
    names: {
      time: 'success_time',
      account: 'mchid',
      type: 'trade_type',
      channelTradeNo: 'transaction_id',
      outTradeNo: 'out_trade_no',
      channelRefundNo: 'refund_id',
      outRefundNo: 'out_refund_no',
      currency: 'currency',
      amount: 'amount',
      fee: 'fee',
      status: 'trade_state',
      subject: 'description',
    },
    types: {
      payment: 'PAY',
      refund: 'REFUND',
      reversal: 'REVERSAL',
      reinstatement: 'REINSTATEMENT',
      refund_return: 'REFUND_RETURN',
      adjustment: 'ADJUSTMENT',
      suspense: 'SUSPENSE',
      unknown: 'ADVANCE_PAYBACK',
    },
    status: ({ status }) =>
      status === 'processing' ? 'PROCESSING' : status === 'failed' ? 'CLOSED' : 'SUCCESS',
    amount: (minor) => String(minor),
    time: (zone, instant) => zone.timeWithOffsetOf(instant),
    backticks: false,
    summary: null,
  },
};

/** Text handed on at a time. */
const CHUNK_CHARS = 64 * 1024;

/**
 * Writes a bill as the bytes of its file, unpacked, chunk by chunk. `adder` knows afterwards what
 * its rows add up to.
 */
export function* billBytes(
  dialect: Dialect,
  accountId: string,
  zone: BusinessZone,
  rows: Iterable<BillRow>,
  defects: BillFileDefects & { charset: 'utf-8' | 'gbk' | 'utf-16le' },
  adder: Adder,
): Generator<Buffer> {
  const writing = WRITINGS[dialect];
  const mark = (defects.backticks ?? writing.backticks) ? '`' : '';
  const lineEnd = defects.lineEnd === 'crlf' ? '\r\n' : '\n';
  const toBytes = (text: string): Buffer =>
    defects.charset === 'utf-8' ? Buffer.from(text, 'utf8') : encode(text, defects.charset);
  const columns = columnsOf(writing, defects);

  if (defects.charset === 'utf-16le') yield Buffer.from([0xff, 0xfe]);
  else if (defects.bom) yield Buffer.from([0xef, 0xbb, 0xbf]);
  yield toBytes(columns.map(({ name }) => quoted(mark + name, 'auto')).join(','));
  if (defects.brokenByte) yield Buffer.from([0xff]);
  if (defects.bombBytes) yield* filler(defects.bombBytes, toBytes(lineEnd));

  let text = '';
  const hasRows = !defects.headerOnly && !defects.empty;
  for (const row of hasRows ? rows : []) {
    adder.add(row);
    text += lineEnd;
    for (const [at, { column }] of columns.entries()) {
      const cell = mark + (column === null ? 'x' : cellOf(writing, zone, accountId, row, column));
      text += (at === 0 ? '' : ',') + quoted(cell, row.quotes ?? 'auto');
    }
    if (text.length < CHUNK_CHARS) continue;
    yield toBytes(text);
    text = '';
  }
  for (const line of defects.rawLines ?? []) text += lineEnd + line;
  if (defects.hugeCellBytes) text += `${lineEnd}${mark}${'x'.repeat(defects.hugeCellBytes)}`;
  const withSums = writing.summary && defects.totals !== false && !defects.headerOnly;
  if (writing.summary && withSums) {
    const cells = (line: string[]) => lineEnd + line.map((cell) => mark + cell).join(',');
    text += cells(writing.summary);
    const totals = statedTotals(adder.totals(), defects);
    for (const one of totals.length > 0 ? totals : [zero('CNY')]) {
      const amount = (minor: number): string => writing.amount(minor, one.currency);
      text += cells([
        one.currency,
        String(one.payments),
        amount(one.paymentsMinor),
        String(one.refunds),
        amount(one.refundsMinor),
        amount(one.feesMinor),
      ]);
    }
  }
  yield toBytes(text + (defects.finalNewline === false ? '' : lineEnd));
}

/** The sums as the channel states them: those of the rows, and what the defect adds. */
export function statedTotals(totals: Totals[], { totalsOff }: BillFileDefects): Totals[] {
  if (!totalsOff) return totals;
  const known = totals.some((one) => one.currency === totalsOff.currency);
  return (known ? totals : [...totals, zero(totalsOff.currency)]).map((one) =>
    one.currency !== totalsOff.currency
      ? one
      : {
          currency: one.currency,
          payments: one.payments + (totalsOff.payments ?? 0),
          paymentsMinor: one.paymentsMinor + (totalsOff.paymentsMinor ?? 0),
          refunds: one.refunds + (totalsOff.refunds ?? 0),
          refundsMinor: one.refundsMinor + (totalsOff.refundsMinor ?? 0),
          feesMinor: one.feesMinor + (totalsOff.feesMinor ?? 0),
        },
  );
}

function zero(currency: string): Totals {
  return { currency, payments: 0, paymentsMinor: 0, refunds: 0, refundsMinor: 0, feesMinor: 0 };
}

function columnsOf(
  writing: Writing,
  defects: BillFileDefects,
): { name: string; column: Column | null }[] {
  const own = COLUMNS.filter((column) => !defects.dropColumns?.includes(column)).map((column) => ({
    name: defects.renameColumns?.[column] ?? writing.names[column],
    column: column as Column | null,
  }));
  if (defects.reverseColumns) own.reverse();
  return [...(defects.addColumns ?? []).map((name) => ({ name, column: null })), ...own];
}

function cellOf(
  writing: Writing,
  zone: BusinessZone,
  accountId: string,
  row: BillRow,
  column: Column,
): string {
  const given = row.cells?.[column];
  if (given !== undefined) return given;
  switch (column) {
    case 'time':
      return writing.time(zone, row.occurredAt);
    case 'account':
      return accountId;
    case 'type':
      return writing.types[row.kind];
    case 'channelTradeNo':
    case 'outTradeNo':
    case 'channelRefundNo':
    case 'outRefundNo':
      return row[column] ?? '';
    case 'currency':
    case 'subject':
      return row[column];
    case 'amount':
      return writing.amount(row.amountMinor, row.currency);
    case 'fee':
      return row.feeMinor === null ? '' : writing.amount(row.feeMinor, row.currency);
    case 'status':
      return writing.status(row);
  }
}

function quoted(cell: string, quotes: 'auto' | 'never' | 'always'): string {
  const wanted = quotes === 'always' || (quotes === 'auto' && /[",\r\n]/.test(cell));
  return wanted ? `"${cell.replaceAll('"', '""')}"` : cell;
}

function* filler(bytes: number, lineEnd: Buffer): Generator<Buffer> {
  const line = Buffer.concat([lineEnd, Buffer.alloc(1_000, 'x')]);
  const chunk = Buffer.concat(Array.from({ length: 64 }, () => line));
  for (let left = bytes; left > 0; left -= chunk.length) yield chunk;
}
