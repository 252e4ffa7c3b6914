import { z } from 'zod';
import type { Totals } from './bill-rows';

/*
 * What the control interface takes about trade bills (PROTOCOL.md section 3), as schemas and types.
 * A bill is named by dialect and business date; what is set for it stays until it is reset.
 */

const dialect = z.enum(['mock-a', 'mock-b']);
const day = z.iso.date();
const minor = z.number().int();
const text = z.string().max(2_000);
const number = text.nullable();

export const ROW_KINDS = [
  'payment',
  'refund',
  'reversal',
  'reinstatement',
  'refund_return',
  'adjustment',
  'suspense',
  'unknown',
] as const;

/** The columns of a bill, by names that both dialects share. */
export const COLUMNS = [
  'time',
  'account',
  'type',
  'channelTradeNo',
  'outTradeNo',
  'channelRefundNo',
  'outRefundNo',
  'currency',
  'amount',
  'fee',
  'status',
  'subject',
] as const;
export type Column = (typeof COLUMNS)[number];
const column = z.enum(COLUMNS);

/** What a row says, where it is not what the books say. Null leaves the cell empty. */
const rowFields = z.strictObject({
  occurredAt: z.iso.datetime().optional(),
  outTradeNo: number.optional(),
  channelTradeNo: number.optional(),
  outRefundNo: number.optional(),
  channelRefundNo: number.optional(),
  amountMinor: minor.optional(),
  currency: text.optional(),
  /** Null: an empty cell. */
  feeMinor: minor.nullable().optional(),
  status: z.enum(['succeeded', 'processing', 'failed']).optional(),
  /** Text of cells as it is to stand in the file: `{amount: '￥1,234.56', type: 'ADVANCE'}`. */
  cells: z.partialRecord(column, text).optional(),
  /** Cells with commas or quotes are put in quotes; `never`: a comma then splits the cell. */
  quotes: z.enum(['auto', 'never', 'always']).optional(),
});

export const billRowChangeSchema = z.strictObject({
  /** Every row that has all of these. */
  match: z.strictObject({
    outTradeNo: z.string().optional(),
    outRefundNo: z.string().optional(),
    channelTradeNo: z.string().optional(),
    kind: z.enum(ROW_KINDS).optional(),
  }),
  /** `next_day`: it stands in the next day's bill instead. */
  do: z.enum(['drop', 'duplicate', 'next_day', 'change']),
  set: rowFields.optional(),
});
export type BillRowChange = z.infer<typeof billRowChangeSchema>;

export const billExtraRowSchema = rowFields.extend({ kind: z.enum(ROW_KINDS) });
export type BillExtraRow = z.infer<typeof billExtraRowSchema>;

export const billNotReadySchema = z.strictObject({
  /** How many questions it lasts; absent: until released. */
  times: z.number().int().min(1).optional(),
  /** The code of the refusal, as spelt; default `BILL_NOT_EXIST`, mock-b `NO_STATEMENT_EXIST`. */
  code: z.string().optional(),
  message: z.string().optional(),
  /** HTTP status of the refusal; default 404. */
  status: z.number().int().min(200).max(599).optional(),
  retryAfterSeconds: z.number().int().min(0).optional(),
  /** In place of a refusal: a file of zero bytes. */
  zeroBytes: z.boolean().optional(),
});
export type BillNotReady = z.infer<typeof billNotReadySchema>;

/** How the file differs from a right one. */
export const billFileSchema = z.strictObject({
  /** mock-a: default `settings.billCharset`. `utf-16le` has its mark, and is declared as UTF-8. */
  charset: z.enum(['utf-8', 'gbk', 'utf-16le']).optional(),
  /** mock-a: what the content type says; default the charset. */
  declaredCharset: z.string().optional(),
  /** A UTF-8 byte-order mark. */
  bom: z.boolean().optional(),
  /** A byte that no charset has, in the header. */
  brokenByte: z.boolean().optional(),
  lineEnd: z.enum(['lf', 'crlf']).optional(),
  finalNewline: z.boolean().optional(),
  /** Backticks before every cell; default: mock-a has them. */
  backticks: z.boolean().optional(),
  /** A header and nothing else. */
  headerOnly: z.boolean().optional(),
  /** No rows, sums of zero, whatever the books say. */
  empty: z.boolean().optional(),
  dropColumns: z.array(column).optional(),
  /** Columns with these names in front, filled with `x`. */
  addColumns: z.array(text).optional(),
  /** The columns backwards. */
  reverseColumns: z.boolean().optional(),
  renameColumns: z.partialRecord(column, text).optional(),
  /** Whether sums are stated; default true. */
  totals: z.boolean().optional(),
  /** Added to the sums stated of one currency. */
  totalsOff: z
    .strictObject({
      currency: z.string(),
      payments: minor.optional(),
      paymentsMinor: minor.optional(),
      refunds: minor.optional(),
      refundsMinor: minor.optional(),
      feesMinor: minor.optional(),
    })
    .optional(),
  /** mock-b: a SHA-256 that is another file's. */
  wrongHash: z.boolean().optional(),
  /** The day that the channel says it is of. */
  sayDay: z.string().optional(),
  /** The file ends after this share of its bytes; by a lost connection, or as if it were all. */
  cutOff: z
    .strictObject({
      share: z.number().min(0).max(1),
      how: z.enum(['connection', 'whole']),
      /** So many downloads; absent: every one. */
      times: z.number().int().min(1).optional(),
    })
    .optional(),
  /** This many bytes of filler lines after the header, packed almost to nothing in mock-b. */
  bombBytes: z.number().int().min(1).optional(),
  /** One row with a cell of this size. */
  hugeCellBytes: z.number().int().min(1).optional(),
  /** mock-b: plain text where a packed file is promised. */
  notPacked: z.boolean().optional(),
  /** Lines as they are, after the rows. */
  rawLines: z.array(text).optional(),
});
export type BillFileDefects = z.infer<typeof billFileSchema>;

export const generatedRowsSchema = z.strictObject({
  count: z.number().int().min(0).max(20_000_000),
  seed: z.number().int().min(0).max(999_999_999),
});
export type GeneratedRows = z.infer<typeof generatedRowsSchema>;

export const billKeySchema = z.strictObject({ dialect, day });
export type BillKey = z.infer<typeof billKeySchema>;

/** `rows` and `extraRows` add to those set before; the others replace, `file` field by field. */
export const billSetupSchema = billKeySchema.extend({
  /** Null: ready. */
  notReady: billNotReadySchema.nullable().optional(),
  file: billFileSchema.optional(),
  rows: z.array(billRowChangeSchema).optional(),
  extraRows: z.array(billExtraRowSchema).optional(),
  /** Null: none. */
  generated: generatedRowsSchema.nullable().optional(),
  /** All refunds stand as processing, whatever became of them. */
  refundsProcessing: z.boolean().optional(),
});
export type BillSetup = z.input<typeof billSetupSchema>;

/** A bill as it was made. */
export interface MadeBill {
  fileName: string;
  rows: number;
  /** Size and SHA-256 (hex) of the whole file, packed in mock-b. */
  bytes: number;
  sha256: string;
  /** What its rows add up to, before any `totalsOff`. */
  totals: Totals[];
}
