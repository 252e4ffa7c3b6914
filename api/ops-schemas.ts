import { z } from '@hono/zod-openapi';
import { ACT_KINDS } from '../domain/operator-acts';
import { amountMinor, identifier, orderStatus, refundNumber } from './schemas';

/** What the operators' routes take; what they give is in ops-answers.ts. */
const ROW_ID = /^[1-9][0-9]{0,14}$/;

/** Our rows' own numbers: text, as every identifier is. */
const rowId = z.string().regex(ROW_ID, { error: 'must be a number, as a JSON string' });

const written = (max: number) => z.string().trim().min(1).max(max);

const actor = {
  name: written(64).openapi({ description: 'Who acts; the key is known.', example: 'Lin' }),
  reason: written(1000).openapi({ example: 'the payer sent the receipt' }),
};

/** An act that can move money: without a number of its own it is refused. */
const numbered = { act_no: identifier };
/** The case that was open when it was decided, with its version then; absent: there was none. */
const caseNamed = { case_id: rowId, case_version: z.int().min(1) };
const caseIfAny = { case_id: rowId.optional(), case_version: z.int().min(1).optional() };

const bothOrNone = (body: { case_id?: unknown; case_version?: unknown }) =>
  (body.case_id === undefined) === (body.case_version === undefined);
const BOTH_OR_NONE = { error: 'case_id and case_version go together', path: ['case_version'] };

export const newAct = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('accept_money'),
      ...numbered,
      ...caseNamed,
      capture_id: rowId,
      ...actor,
    }),
    z
      .strictObject({
        kind: z.literal('refund_money'),
        ...numbered,
        ...caseIfAny,
        capture_id: rowId,
        amount: amountMinor.optional().openapi({ description: 'Absent: whatever is left.' }),
        ...actor,
      })
      .refine(bothOrNone, BOTH_OR_NONE),
    z
      .strictObject({
        kind: z.literal('resend_refund'),
        ...numbered,
        ...caseIfAny,
        refund_no: refundNumber,
        ...actor,
      })
      .refine(bothOrNone, BOTH_OR_NONE),
    z.strictObject({
      kind: z.literal('close_case'),
      ...numbered,
      ...caseNamed,
      evidence: written(2000).optional(),
      ...actor,
    }),
    z.strictObject({ kind: z.literal('note'), act_no: identifier.optional(), ...actor }),
    z.strictObject({ kind: z.literal('query_now'), act_no: identifier.optional(), ...actor }),
    z.strictObject({
      kind: z.literal('resend_callback'),
      act_no: identifier.optional(),
      callback_id: rowId,
      ...actor,
    }),
    z.strictObject({ kind: z.literal('restart_run'), act_no: identifier.optional(), ...actor }),
  ])
  .openapi('NewAct');
export type NewActBody = z.infer<typeof newAct>;

/** Acts about a case that belongs to no order. */
export const newCaseAct = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('close_case'),
      ...numbered,
      case_version: z.int().min(1),
      evidence: written(2000).optional(),
      ...actor,
    }),
    z.strictObject({ kind: z.literal('note'), act_no: identifier.optional(), ...actor }),
  ])
  .openapi('NewCaseAct');
export type NewCaseActBody = z.infer<typeof newCaseAct>;

export const confirmation = z
  .strictObject({
    name: actor.name,
    reason: written(2000).openapi({ example: 'seen the bank statement of 12 May' }),
  })
  .openapi('Confirmation');

export const actParams = z.strictObject({ act_no: identifier });
export const caseParams = z.strictObject({ case_id: rowId });
export const opsOrderParams = z.strictObject({ merchant_id: identifier, order_id: identifier });

const page = {
  limit: z
    .string()
    .regex(/^(?:[1-9][0-9]?|100)$/, { error: 'must be a number from 1 to 100' })
    .optional(),
  cursor: z
    .string()
    .regex(ROW_ID, { error: 'must be the next_cursor of an earlier page' })
    .optional(),
};

export const casesQuery = z.strictObject({
  status: z.enum(['open', 'closed']).optional().openapi({ description: 'Default: open.' }),
  kind: z
    .string()
    .regex(/^[a-z_]{1,64}$/)
    .optional(),
  merchant_id: identifier.optional(),
  ...page,
});

export const actsQuery = z.strictObject({
  merchant_id: identifier.optional(),
  order_id: identifier.optional(),
  status: z.enum(['waiting_second', 'accepted', 'done', 'refused']).optional(),
  kind: z.enum(ACT_KINDS).optional(),
  ...page,
});

export const timelineQuery = z.strictObject({
  limit: z
    .string()
    .regex(/^(?:[1-9][0-9]{0,2}|1000)$/, { error: 'must be a number from 1 to 1000' })
    .optional(),
  cursor: z
    .string()
    .max(128)
    .optional()
    .openapi({ description: 'next_cursor of the page before.' }),
});

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

/** A day of the calendar: no 31 February. */
function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

export const searchQuery = z
  .strictObject({
    q: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .openapi({ description: 'A number of an order, attempt, capture or refund, exactly.' }),
    amount: z
      .string()
      .regex(/^[1-9][0-9]{0,15}$/, { error: 'must be an integer of minor units' })
      .refine((text) => Number.isSafeInteger(Number(text)), { error: 'is too large' })
      .optional(),
    day: z
      .string()
      .regex(/^\d{4}-\d{2}-\d{2}$/, { error: 'must be a date such as 2026-05-12' })
      .refine(isDay, { error: 'must be a date such as 2026-05-12' })
      .optional()
      .openapi({ description: 'With amount.' }),
    zone: z
      .string()
      .max(64)
      .regex(/^[A-Za-z][A-Za-z0-9_+/-]*$/)
      .refine(isZone, { error: 'must be a time zone such as Asia/Shanghai' })
      .optional()
      .openapi({ description: 'Of the day; default UTC.' }),
    status: orderStatus.optional(),
  })
  .refine((query) => (query.amount === undefined) === (query.day === undefined), {
    error: 'amount and day go together',
    path: ['day'],
  })
  .refine((query) => query.q ?? query.amount ?? query.status, {
    error: 'give q, or amount and day, or status',
    path: ['q'],
  });
