import { isIP } from 'node:net';
import { z } from '@hono/zod-openapi';
import { CURRENCIES, isAmountMinor, isCurrency, MAX_AMOUNT_MINOR } from '../domain/money';
import { addDays, isDay } from '../domain/business-day';
import { isIdentifier } from '../domain/orders';
import { InexactNumber } from './json-body';

/**
 * What the API takes and gives, each shape once: requests are checked by these schemas and the
 * OpenAPI document is made of them. An issue with `params: { status: 422 }` is a value of the right
 * kind that is not allowed; every other issue is 400.
 */
const NOT_ALLOWED = { status: 422 };

const IDENTIFIER_RULE =
  'must be 1 to 64 of A-Z a-z 0-9 _ . - (the first a letter or digit), as a JSON string';

/** `order_id`, `request_no`, `refund_no` and channel names. */
export const identifier = z
  .string({ error: IDENTIFIER_RULE })
  .refine(isIdentifier, { error: IDENTIFIER_RULE })
  .openapi({ pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$', example: 'order-1001' });

const AMOUNT_RULE = `must be an integer of minor units (1999 for 19.99 CNY) from 1 to ${MAX_AMOUNT_MINOR}`;

/** A number that is no amount is 422; anything but a number is 400. */
export const amountMinor = z
  .custom<number>((value) => typeof value === 'number' || value instanceof InexactNumber, {
    error: AMOUNT_RULE,
  })
  .refine(isAmountMinor, { error: AMOUNT_RULE, params: NOT_ALLOWED })
  .openapi({
    type: 'integer',
    minimum: 1,
    maximum: MAX_AMOUNT_MINOR,
    description: 'Minor units of the currency: 1999 is 19.99 CNY, 2000 is 2000 JPY.',
    example: 1999,
  });

export const currency = z
  .string({ error: 'must be an ISO 4217 code such as "CNY", as a JSON string' })
  .refine(isCurrency, {
    error: 'must be an upper-case ISO 4217 code we know, such as "CNY"',
    params: NOT_ALLOWED,
  })
  .openapi({ enum: [...CURRENCIES], example: 'CNY' });

function text(max: number): z.ZodString {
  return z.string().min(1).max(max);
}

const METADATA_MAX_BYTES = 4096;

/** Whether JSON text and back would keep the value: no fraction or digit may be lost. */
function isKept(value: unknown): boolean {
  if (value instanceof InexactNumber) return false;
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every(isKept);
}

const metadata = z
  .custom<Record<string, unknown>>(
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      !(value instanceof InexactNumber),
    { error: 'must be a JSON object' },
  )
  .refine(isKept, {
    error: 'holds a fraction or a number beyond 2^53: send it as a string',
    params: NOT_ALLOWED,
  })
  .refine(
    (value) => !isKept(value) || Buffer.byteLength(JSON.stringify(value)) <= METADATA_MAX_BYTES,
    {
      error: `may have at most ${METADATA_MAX_BYTES} bytes as JSON`,
      params: NOT_ALLOWED,
    },
  )
  .openapi({
    type: 'object',
    additionalProperties: true,
    description: 'At most 4 KB, kept as given.',
  });

const webUrl = z
  .string()
  .max(2048)
  .refine(isWebUrl, { error: 'must be an absolute http or https URL' });

/** 7 days. */
const EXPIRES_IN_MAX_S = 604_800;
const EXPIRES_IN_DEFAULT_S = 1_800;

/** @param expiresInMinS shortest life of an order; 60 unless a test shortens it */
export function newOrderSchema(expiresInMinS: number) {
  const rule = `must be an integer of seconds from ${expiresInMinS} to ${EXPIRES_IN_MAX_S}`;
  return z
    .strictObject({
      order_id: identifier,
      amount: amountMinor,
      currency,
      subject: text(256),
      expires_in: z
        .custom<number>((value) => typeof value === 'number' || value instanceof InexactNumber, {
          error: rule,
        })
        .refine(
          (value) => Number.isInteger(value) && value >= expiresInMinS && value <= EXPIRES_IN_MAX_S,
          { error: rule, params: NOT_ALLOWED },
        )
        .default(EXPIRES_IN_DEFAULT_S)
        .openapi({
          type: 'integer',
          minimum: expiresInMinS,
          maximum: EXPIRES_IN_MAX_S,
          description: 'Seconds until the order takes no more money.',
        }),
      metadata: metadata.default({}),
      return_url: webUrl
        .optional()
        .openapi({ description: 'Where the payer’s page leads back to.' }),
    })
    .openapi('NewOrder');
}
export type NewOrderBody = z.infer<ReturnType<typeof newOrderSchema>>;

export const newPayment = z
  .strictObject({
    channel: identifier.openapi({ example: 'mock-a' }),
    request_no: identifier.optional(),
    method: z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,32}$/)
      .optional(),
    return_url: webUrl.optional(),
    client_ip: z
      .string()
      .refine((value) => isIP(value) !== 0, { error: 'must be an IPv4 or IPv6 address' })
      .optional(),
    payer: z
      .record(z.string().max(64), z.string().max(256))
      .refine((value) => Object.keys(value).length <= 20, { error: 'may have at most 20 members' })
      .optional(),
    amount: amountMinor.optional(),
    currency: currency.optional(),
  })
  .openapi('NewPayment');
export type NewPaymentBody = z.infer<typeof newPayment>;

export const cancelBody = z.strictObject({}).openapi('CancelOrder');

export const newRefund = z
  .strictObject({
    refund_no: identifier,
    amount: amountMinor.optional().openapi({ description: 'Absent: whatever is left.' }),
    reason: z.string().max(256).default(''),
  })
  .openapi('NewRefund');
export type NewRefundBody = z.infer<typeof newRefund>;

export const orderParams = z.strictObject({ order_id: identifier });
/** A merchant's refund_no, or a name that the system gave: of a capture, an act, a channel's refund. */
export const refundNumber = z
  .string()
  .regex(
    /^(auto|external):[A-Za-z0-9]{1,64}$|^act:[A-Za-z0-9][A-Za-z0-9_.-]{0,63}:[0-9]{1,19}$|^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    { error: IDENTIFIER_RULE },
  );
export const refundParams = z.strictObject({ order_id: identifier, refund_no: refundNumber });

/** Longer polls than this would outlive the patience of proxies. */
const WAIT_MAX_S = 30;

export const orderQuery = z.strictObject({
  wait: z
    .string()
    .regex(/^(?:[0-9]|[12][0-9]|30)s$/, {
      error: `must be a number of seconds from 0s to ${WAIT_MAX_S}s, such as 20s`,
    })
    .optional()
    .openapi({ example: '20s', description: 'Answer when the order changes, or after this long.' }),
  version: z
    .string()
    .regex(/^[0-9]{1,15}$/, { error: 'must be the version of an earlier answer' })
    .optional()
    .openapi({ description: 'With wait: the version already known (default: the one now).' }),
});

const DAY_RULE = 'must be a date of the calendar, written YYYY-MM-DD';

/** A business date, in the channel's own zone. */
export const day = z
  .string({ error: DAY_RULE })
  .refine(isDay, { error: DAY_RULE })
  .openapi({ format: 'date', example: '2026-05-01' });

const isGiven = (value: unknown) => value !== undefined;

export const newReconciliation = z
  .strictObject({
    channel: identifier.optional().openapi({ example: 'mock-a' }),
    day: day.optional(),
    dry_run: z.boolean().optional().openapi({
      description: 'Compare and report only: nobody is asked, no case is opened.',
    }),
    merchant_id: identifier.optional(),
    order_id: identifier.optional(),
  })
  .refine(
    ({ channel, day, dry_run, merchant_id, order_id }) => {
      const ofDay = [channel, day].every(isGiven);
      const ofOrder = [merchant_id, order_id].every(isGiven);
      return (
        (ofDay && !isGiven(merchant_id) && !isGiven(order_id)) ||
        (ofOrder && ![channel, day, dry_run].some(isGiven))
      );
    },
    { error: 'give channel and day (and dry_run), or merchant_id and order_id' },
  )
  .openapi('NewReconciliation', {
    description: '`channel` and `day`: that date. `merchant_id` and `order_id`: that order, now.',
  });
export type NewReconciliationBody = z.infer<typeof newReconciliation>;

export const reconciliationParams = z.strictObject({ day });

const reportFormat = z
  .enum(['json', 'csv'])
  .optional()
  .openapi({ description: 'Default: what the Accept header says, else JSON.' });

export const reconciliationQuery = z.strictObject({
  channel: identifier.optional().openapi({ description: 'Default: every channel.' }),
  format: reportFormat,
});

/** A year of reports, and a day for zones that are ahead. */
const RANGE_MAX_DAYS = 366;

export const reconciliationListQuery = z
  .strictObject({ from: day, to: day, channel: identifier.optional() })
  .refine(({ from, to }) => from <= to && to <= addDays(from, RANGE_MAX_DAYS), {
    error: `to must not be before from, nor more than ${RANGE_MAX_DAYS} days after it`,
    params: NOT_ALLOWED,
  });

export const orderStatus = z.enum(['created', 'paying', 'paid', 'closed', 'review']);

export const listQuery = z.strictObject({
  status: orderStatus.optional(),
  limit: z
    .string()
    .regex(/^(?:[1-9][0-9]?|100)$/, { error: 'must be a number from 1 to 100' })
    .optional(),
  cursor: z
    .string()
    .max(512)
    .optional()
    .openapi({ description: 'next_cursor of the page before.' }),
});

export const eventsQuery = z.strictObject({
  after: z
    .string()
    .max(512)
    .optional()
    .openapi({ description: 'next_after of the page before; absent: from the first event on.' }),
  limit: z
    .string()
    .regex(/^(?:[1-9][0-9]{0,2}|1000)$/, { error: 'must be a number from 1 to 1000' })
    .optional(),
});

const NOTIFICATION_ID = /^[1-9][0-9]{0,14}$/;

export const notificationParams = z.strictObject({
  notification_id: z.string().regex(NOTIFICATION_ID, { error: 'must be a number' }),
});

export const notificationStatus = z.enum(['pending', 'sent', 'dead', 'kept']);

export const notificationsQuery = z.strictObject({
  status: notificationStatus.optional().openapi({ description: 'Default: dead.' }),
  merchant_id: identifier.optional(),
  limit: z
    .string()
    .regex(/^(?:[1-9][0-9]?|100)$/, { error: 'must be a number from 1 to 100' })
    .optional(),
  cursor: z
    .string()
    .regex(NOTIFICATION_ID, { error: 'must be the next_cursor of an earlier page' })
    .optional(),
});

export const resendBody = z
  .strictObject({ reason: text(256).openapi({ example: 'their server is back' }) })
  .openapi('ResendNotification');

function isWebUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol } = new URL(value);
  return protocol === 'https:' || protocol === 'http:';
}
