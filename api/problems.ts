/**
 * Every refusal the API gives, in one table: a stable code, its HTTP status and a short title. What
 * to change stands in each answer's `detail`. RFC 9457, `application/problem+json`.
 *
 * 400: the request cannot be read or has the wrong shape. 422: it can be read, and is not allowed.
 * 409: it clashes with the order's state. 503: the outcome is unknown; repeat under the same number.
 */
const PROBLEMS = {
  invalid_json: [400, 'The body is not one JSON object'],
  invalid_request: [400, 'The request has the wrong shape'],
  missing_request_no: [400, 'The attempt has no number'],
  invalid_idempotency_key: [400, 'The Idempotency-Key has the wrong form'],
  malformed_callback: [400, 'The callback cannot be read'],
  unauthenticated: [401, 'The API key is missing or not valid'],
  invalid_signature: [401, 'The callback is not signed by the channel'],
  insufficient_scope: [403, 'The API key may not do this'],
  foreign_form: [403, 'The form does not come from a page of the desk'],
  not_found: [404, 'There is no such thing'],
  order_not_found: [404, 'There is no such order'],
  refund_not_found: [404, 'There is no such refund'],
  channel_not_found: [404, 'There is no such channel'],
  act_not_found: [404, 'There is no such act'],
  case_not_found: [404, 'There is no such case'],
  callback_not_found: [404, 'There is no such callback'],
  notification_not_found: [404, 'There is no such notification'],
  method_not_allowed: [405, 'The route does not know this method'],
  request_in_progress: [409, 'The same request is still running'],
  order_exists: [409, 'The order exists with other content'],
  order_amount_differs: [409, 'The order is about another amount'],
  order_paid: [409, 'The order is paid'],
  order_closed: [409, 'The order is closed'],
  order_expired: [409, 'The order takes no new attempt'],
  order_in_review: [409, 'A person must decide about the order first'],
  order_refunded: [409, 'The order was paid and refunded'],
  attempt_open: [409, 'Another attempt is still open'],
  attempt_closing: [409, 'Another attempt is being closed'],
  channel_disabled: [409, 'The channel takes no payments now'],
  refunds_disabled: [409, 'The channel makes no refunds now'],
  case_version_outdated: [409, 'The case knows more than the decision was made on'],
  no_open_case: [409, 'There is no open case to decide'],
  case_of_order: [409, 'The case belongs to an order'],
  order_not_in_review: [409, 'The order does not wait for a decision'],
  capture_reversed: [409, 'The channel has taken the capture back'],
  nothing_left: [409, 'Nothing of the capture is left'],
  refund_not_waiting: [409, 'The refund does not wait for a person'],
  callback_not_settled: [409, 'The callback’s number is not known yet'],
  second_person_needed: [409, 'Another person must confirm the act'],
  act_not_waiting: [409, 'The act does not wait for a second person'],
  not_bookable: [409, 'The database does not allow the act'],
  no_address: [409, 'The merchant has no address to tell'],
  cursor_unknown: [410, 'The cursor speaks of events that are numbered anew'],
  body_too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The body has the wrong media type'],
  unacceptable_value: [422, 'A value is not allowed'],
  idempotency_key_reused: [422, 'The Idempotency-Key was used with other content'],
  request_no_reused: [422, 'The request_no was used with other content'],
  refund_no_reused: [422, 'The refund_no was used with other content'],
  day_not_ended: [422, 'The business date has not ended'],
  day_too_far_back: [422, 'The business date is too far back'],
  act_no_reused: [422, 'The act_no was used with other content'],
  capture_unknown: [422, 'The order has no such capture'],
  evidence_missing: [422, 'The case holds money: say what proves that it is not ours'],
  unknown_channel: [422, 'There is no such channel'],
  over_the_rest: [422, 'The refund is larger than what is left'],
  nothing_captured: [422, 'There is no payment to refund'],
  too_old: [422, 'The payment is too old to refund at its channel'],
  too_many: [422, 'The channel allows no more refunds of this payment'],
  internal_error: [500, 'Something is wrong on our side'],
  outcome_unknown: [503, 'The outcome is not known yet'],
  unavailable: [503, 'A part of the service is away'],
} as const satisfies Record<string, readonly [number, string]>;

export type ProblemCode = keyof typeof PROBLEMS;

/** Every code with its status and title, for the OpenAPI document. */
export const problemCodes = Object.entries(PROBLEMS).map(([code, [status, title]]) => ({
  code,
  status,
  title,
}));

export interface ProblemOptions {
  retryAfterMs?: number;
  /** More members of the answer, e.g. `errors` or `refundable_amount`. */
  extra?: Record<string, unknown>;
  headers?: Record<string, string>;
  cause?: unknown;
}

/** A refusal on its way to the caller. `detail` says what to change. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;

  constructor(
    readonly code: ProblemCode,
    readonly detail: string,
    readonly options: ProblemOptions = {},
  ) {
    super(`${code}: ${detail}`, { cause: options.cause });
    this.status = PROBLEMS[code][0];
  }

  toResponse(): Response {
    const headers = new Headers(this.options.headers);
    headers.set('content-type', 'application/problem+json');
    headers.set('cache-control', 'no-store');
    const { retryAfterMs } = this.options;
    if (retryAfterMs !== undefined) headers.set('retry-after', secondsOf(retryAfterMs));
    const body = {
      type: `urn:payment-saga:problem:${this.code}`,
      title: PROBLEMS[this.code][1],
      status: this.status,
      code: this.code,
      detail: this.detail,
      ...this.options.extra,
    };
    return new Response(JSON.stringify(body), { status: this.status, headers });
  }
}

/** Retry-After knows whole seconds only, and 0 would invite a storm. */
function secondsOf(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)));
}

/** The order is not there, or belongs to somebody else: the caller cannot tell which. */
export function orderNotFound(orderId: string): Problem {
  return new Problem('order_not_found', `no order ${orderId}: create it with POST /v1/orders`);
}
