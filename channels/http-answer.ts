import type http from 'node:http';
import type { ChannelAnswer } from './contract';
import type { HttpExchange } from './http-client';

/** An HTTP answer whose body may carry the channel's own words. */
export interface ReadableAnswer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

/** The outcomes that say nothing about the number asked for; members of every ChannelAnswer. */
export type NoAnswer = Extract<ChannelAnswer<never>, { outcome: 'never_left' | 'unknown' }>;

/**
 * Sorts out what HTTP alone decides: calls that never left, lost answers, 429, 5xx and redirects.
 * What remains, 2xx and 4xx, is for the adapter to read; only its signature makes it definite.
 *
 * 429 is "unknown" and no trouble: the channel lives, and a gateway in front of it may count calls
 * after passing them on.
 */
export function sortByHttp(
  exchange: HttpExchange,
  now: Date,
): { readable: ReadableAnswer } | { noAnswer: NoAnswer } {
  if (exchange.result !== 'answer') {
    const { result, reason, trouble } = exchange;
    return { noAnswer: { outcome: result, reason, retryAfterMs: null, trouble } };
  }
  const { status, headers } = exchange;
  if (status === 429 || status >= 500) {
    const retryAfterMs = readRetryAfter(headers['retry-after'], now);
    const reason = status === 429 ? 'rate_limited' : `http_${status}`;
    return { noAnswer: { outcome: 'unknown', reason, retryAfterMs, trouble: status >= 500 } };
  }
  const hasWords = (status >= 200 && status < 300) || (status >= 400 && status < 500);
  if (!hasWords) return { noAnswer: unreadable(`http_${status}`) };
  return { readable: exchange };
}

/** An answer came, but nothing in it may be believed; a query has to tell. */
export function unreadable(reason: string): NoAnswer {
  return { outcome: 'unknown', reason, retryAfterMs: null, trouble: false };
}

/**
 * Milliseconds from a Retry-After header, whole seconds or an HTTP date; null when absent or odd.
 * Source: RFC 9110, section 10.2.3.
 */
export function readRetryAfter(header: string | undefined, now: Date): number | null {
  if (header === undefined) return null;
  if (/^[0-9]{1,8}$/.test(header.trim())) return Number(header.trim()) * 1_000;
  if (!/^[A-Z][a-z]{2}, /.test(header)) return null;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - now.getTime());
}
