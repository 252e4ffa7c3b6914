import type { z } from '@hono/zod-openapi';
import { Problem } from './problems';

/** The place where a page ended, as text that callers hand back and need not understand. */
export function encodeCursor(place: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/**
 * The place that a caller handed back.
 * @param said what it must be, for the problem's detail
 * @throws Problem invalid_request when it is none that we gave out
 */
export function decodeCursor<Place>(text: string, shape: z.ZodType<Place>, said: string): Place {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    value = undefined;
  }
  const place = shape.safeParse(value);
  if (place.success) return place.data;
  throw new Problem('invalid_request', said);
}

/** What a page's cursor must be. */
export const OF_EARLIER_PAGE = 'query.cursor: must be the next_cursor of an earlier page';
