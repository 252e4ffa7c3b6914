import { z } from 'zod';

/**
 * What the control interface takes, as schemas (the server checks with them) and types (tests
 * write against them). Every object is strict: a misspelt fault must not pass for "no fault".
 */

const dialect = z.enum(['mock-a', 'mock-b']);
const milliseconds = z.number().int().min(0).max(86_400_000);
const amount = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const tag = z.string().regex(/^[A-Za-z0-9_-]+$/);
const zone = z.string().refine(isZone, 'no such time zone');
const digits = z.string().regex(/^[0-9]{1,32}$/);

/** How a callback differs from the plain, correctly signed one. */
export const callbackOverridesSchema = z.strictObject({
  /** Another status word, in the dialect's own spelling: `TRADE_CLOSED`, `FROZEN`, … */
  word: z.string().optional(),
  /** Other amount and currency; `amountText` (mock-a) or a raw number goes out as written. */
  amountMinor: amount.optional(),
  amountText: z.string().optional(),
  currency: z.string().optional(),
  outTradeNo: z.string().optional(),
  outRefundNo: z.string().optional(),
  channelTradeNo: z.string().optional(),
  accountId: z.string().optional(),
  appId: z.string().optional(),
  subject: z.string().optional(),
  /**
   * Any field by the dialect's name (mock-b: dotted for nested ones, `amount.total`); null takes
   * the field out. Applied last, before signing.
   */
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
  /** `new`: another notification id than the notice's own; else this very id. */
  notifyId: z.string().optional(),
  /** Sent in parallel; each freshly signed, all with the same notification id. */
  copies: z.number().int().min(1).max(1000).optional(),
  /** `unknown`: a key nobody shares, with its own serial (mock-b). */
  key: z.enum(['current', 'previous', 'unknown']).optional(),
  /** `other_body`: a valid signature of other content. Other text is sent as the signature. */
  signature: z
    .union([
      z.enum(['valid', 'absent', 'empty', 'null', 'truncated', 'other_body']),
      z.strictObject({ text: z.string() }),
    ])
    .optional(),
  /** Sign type as sent (`none`, `MD5`); null leaves it out. The signature stays HMAC-SHA256. */
  signType: z.string().nullable().optional(),
  /** Added to the signed timestamp, in seconds. */
  timestampShiftSeconds: z.number().int().optional(),
  /** The signed timestamp as sent (`abc`, milliseconds); null leaves it out. */
  timestamp: z.string().nullable().optional(),
  /** mock-a: encoding of the values, and where the charset is named. */
  charset: z.enum(['utf-8', 'gbk']).optional(),
  charsetIn: z.enum(['field', 'header', 'both', 'neither']).optional(),
  contentType: z.string().nullable().optional(),
  /**
   * The whole content as text, then signed as usual (duplicate keys, wrong types, …). mock-b: in
   * place of the JSON that is encrypted; mock-a: the form without `sign` and `sign_type`.
   */
  resourceText: z.string().optional(),
  /** Base64 of the whole body as sent; mock-b signs it, in mock-a it carries what it carries. */
  bodyBase64: z.string().optional(),
  /** mock-b: `transaction_id` as a bare JSON number. */
  bareTradeNo: z.boolean().optional(),
  /** Another URL than the configured one (another channel's, an unknown channel's). */
  url: z.string().optional(),
});
export type CallbackOverrides = z.infer<typeof callbackOverridesSchema>;

export const sendCallbackSchema = callbackOverridesSchema.extend({
  /** Needed when the trade is not in the books; the callback is then made of the overrides. */
  dialect: dialect.optional(),
  /** The trade it is about; unknown to the books is allowed (B85). */
  outTradeNo: z.string(),
  /** With it the callback is about this refund. */
  outRefundNo: z.string().optional(),
});
export type SendCallback = z.input<typeof sendCallbackSchema>;

/** What a fault does to one of the five calls, or to a callback. PROTOCOL.md has a table of uses. */
export const faultActionSchema = z.strictObject({
  delayBeforeEffectMs: milliseconds.optional(),
  /** `none`: nothing is done (default for the answers `refuse` and `no_such_order`). */
  effect: z.enum(['normal', 'none']).optional(),
  /** The payer pays during the call: after a create's effect, before a close's or query's. */
  captureNow: z.boolean().optional(),
  delayBeforeAnswerMs: z.union([milliseconds, z.tuple([milliseconds, milliseconds])]).optional(),
  /** Answer only once the callbacks of this trade were delivered a first time (at most 10 s). */
  answerAfterCallback: z.boolean().optional(),
  answer: z
    .enum([
      'drop',
      'http',
      'html',
      'empty',
      'cut_off',
      'odd_fields',
      'word',
      'refuse',
      'no_such_order',
      'already_paid',
      'already_processed',
      'ok',
      'replay',
    ])
    .optional(),
  /** HTTP status of `http` (default 500), `html`, `empty`, `cut_off`, `odd_fields`, `replay`. */
  status: z.number().int().min(200).max(599).optional(),
  retryAfterSeconds: z.number().int().min(0).optional(),
  /** Code of `refuse`. */
  code: z.string().optional(),
  /** Status word of `word`. */
  word: z.string().optional(),
  /** Field left out by `odd_fields`; default: the channel's own number. */
  missingField: z.string().optional(),
  bareTradeNo: z.boolean().optional(),
  /** On create: the channel's number for the new trade. */
  channelTradeNo: digits.optional(),
  /**
   * On refund. `hold`: accepted, processing until `finishRefund`. `now`: executed before the
   * answer. `refuse`: stored as refused. `fail_later`: accepted, then refused.
   * `not_enough_balance`: refused repeatably, nothing stored. `abnormal`: a person must act.
   */
  refund: z
    .enum(['hold', 'now', 'refuse', 'fail_later', 'not_enough_balance', 'abnormal'])
    .optional(),
  refundAfterMs: milliseconds.optional(),
  /** Callbacks only: never sent, kept for `releaseCallbacks`, late, more than once, changed. */
  drop: z.boolean().optional(),
  hold: z.boolean().optional(),
  delayMs: z.union([milliseconds, z.tuple([milliseconds, milliseconds])]).optional(),
  copies: z.number().int().min(1).max(1000).optional(),
  callback: callbackOverridesSchema.optional(),
});
export type FaultAction = z.infer<typeof faultActionSchema>;

export const faultRuleSchema = z.strictObject({
  match: z.strictObject({
    dialect: dialect.optional(),
    operation: z.enum([
      'create',
      'query',
      'close',
      'refund',
      'refund_query',
      'callback',
      'bill',
      'bill_file',
      'any',
    ]),
    outTradeNo: z.string().optional(),
    outRefundNo: z.string().optional(),
    tag: tag.optional(),
    /** Callbacks only: about a payment or a refund. */
    kind: z.enum(['payment', 'refund']).optional(),
  }),
  /** How often it acts; absent: for ever. For callbacks each delivery, resends too, is one. */
  times: z.number().int().min(1).optional(),
  /** How many fitting calls pass before it acts. */
  skip: z.number().int().min(0).optional(),
  /** 0 to 1, rolled for every fitting call by a die seeded with `seed` (default 1). */
  probability: z.number().min(0).max(1).optional(),
  seed: z.number().int().optional(),
  do: faultActionSchema,
});
export type FaultRule = z.infer<typeof faultRuleSchema>;

export const settingsSchema = z.strictObject({
  /** Added to every call. */
  latencyMs: milliseconds,
  /** Queries per second and dialect, then 429 with Retry-After: 1; null: no limit. */
  queryRateLimitPerSecond: z.number().int().min(1).nullable(),
  /** Where callbacks go; several addresses are taken in turn. Empty: none are sent. */
  callbackUrls: z.strictObject({
    'mock-a': z.array(z.url()),
    'mock-b': z.array(z.url()),
  }),
  /** Waits before each resend until acknowledged; its length bounds the resends. */
  callbackLadderMs: z.array(milliseconds).max(50),
  callbackTimeoutMs: milliseconds,
  /** How long an accepted refund takes. */
  refundAfterMs: milliseconds,
  /** Whether a callback tells of a close by the merchant, and of one by expiry. */
  closeCallbacks: z.boolean(),
  expiryCallbacks: z.boolean(),
  /**
   * Added to the instants of captures, refunds and reversals (never to message timestamps), so that
   * a payer can pay "yesterday".
   */
  businessClockOffsetMs: z
    .number()
    .int()
    .min(-366 * 86_400_000)
    .max(366 * 86_400_000),
  /** IANA zone of the business date, of both dialects or of each. */
  timeZone: z.union([zone, z.strictObject({ 'mock-a': zone, 'mock-b': zone })]),
  /** What mock-a writes its bills in. */
  billCharset: z.enum(['utf-8', 'gbk']),
  /** What the channel keeps of a payment and gives back with a refund, half up. */
  feeBasisPoints: z.number().int().min(0).max(10_000),
  /** Payers who pay by themselves, for load runs; null: nobody does. */
  autoApprove: z
    .strictObject({
      afterMs: milliseconds,
      probability: z.number().min(0).max(1).optional(),
      seed: z.number().int().optional(),
      dialect: dialect.optional(),
      tag: tag.optional(),
    })
    .nullable(),
});
export type Settings = z.infer<typeof settingsSchema>;

export const settingsChangeSchema = settingsSchema
  .partial()
  .extend({ callbackUrls: settingsSchema.shape.callbackUrls.partial().optional() });
export type SettingsChange = z.input<typeof settingsChangeSchema>;

export const tradeTargetSchema = z.strictObject({
  outTradeNo: z.string(),
  dialect: dialect.optional(),
});
export type TradeTarget = z.infer<typeof tradeTargetSchema>;

export const captureSchema = tradeTargetSchema.extend({
  /** Default: the trade's. */
  amountMinor: amount.optional(),
  currency: z.string().optional(),
  /** Default: the trade's own number for a first capture, a fresh one for any further. */
  channelTradeNo: digits.optional(),
  /** What the payer paid after coupons; default: the whole amount. */
  payerTotalMinor: amount.optional(),
  /** When the payer paid; default: the business clock. */
  at: z.iso.datetime().optional(),
  /** Whether a callback tells of it; default true. */
  callback: z.boolean().optional(),
});
export type CaptureOrder = z.infer<typeof captureSchema>;

export const reversalSchema = tradeTargetSchema.extend({
  channelTradeNo: digits.optional(),
  /** Default: all that is left to reverse (or to reinstate). */
  amountMinor: amount.optional(),
  callback: z.boolean().optional(),
});
export type Reversal = z.infer<typeof reversalSchema>;

export const finishRefundSchema = z.strictObject({
  outRefundNo: z.string(),
  dialect: dialect.optional(),
  /** `return`: the money of a refund that succeeded comes back to the merchant. */
  result: z.enum(['succeed', 'fail', 'abnormal', 'return']),
  /** Why, with `fail`; default `REFUND_REFUSED`. */
  code: z.string().optional(),
  callback: z.boolean().optional(),
});
export type FinishRefund = z.infer<typeof finishRefundSchema>;

export const replayCallbackSchema = z.strictObject({
  deliveryId: z.string(),
  url: z.string().optional(),
  copies: z.number().int().min(1).max(1000).optional(),
});
export type ReplayCallback = z.infer<typeof replayCallbackSchema>;

export const resendCallbackSchema = z.strictObject({
  /** One notice, or every notice of a trade in the order they arose. */
  noticeId: z.string().optional(),
  outTradeNo: z.string().optional(),
  /** Under another notification id. */
  newNotifyId: z.boolean().optional(),
});
export type ResendCallback = z.infer<typeof resendCallbackSchema>;

export const releaseCallbacksSchema = z.strictObject({
  /** `fifo`, `lifo`, or notice ids in the order wanted; each waits for the answer to the last. */
  order: z.union([z.enum(['fifo', 'lifo', 'parallel']), z.array(z.string())]),
  /** Only those of this trade. */
  outTradeNo: z.string().optional(),
});
export type ReleaseCallbacks = z.infer<typeof releaseCallbacksSchema>;

export const refuseConnectionsSchema = z.strictObject({
  dialect,
  /** Accept again by itself after this long; absent: until `acceptConnections`. */
  forMs: milliseconds.optional(),
});

export const summaryRequestSchema = z.strictObject({
  outTradeNos: z.array(z.string()).optional(),
  tag: tag.optional(),
  dialect: dialect.optional(),
});
export type SummaryRequest = z.infer<typeof summaryRequestSchema>;

/** One try to deliver a callback, as sent and as answered. */
export interface Delivery {
  deliveryId: string;
  noticeId: string;
  dialect: 'mock-a' | 'mock-b';
  outTradeNo: string;
  kind: 'payment' | 'refund';
  word: string;
  attempt: number;
  cause: 'natural' | 'fault_copy' | 'control' | 'replay';
  url: string;
  sentAt: string;
  requestHeaders: Record<string, string>;
  requestBodyBase64: string;
  /** Null: no answer came; `error` says why. */
  httpStatus: number | null;
  contentType: string | null;
  body: string;
  error: string | null;
  acknowledged: boolean;
}

export interface HeldCallback {
  noticeId: string;
  dialect: 'mock-a' | 'mock-b';
  outTradeNo: string;
  kind: 'payment' | 'refund';
  word: string;
}

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
