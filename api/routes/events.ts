import { z } from '@hono/zod-openapi';
import { readFeed, readFeedEvent } from '../../db/event-feed';
import type { FeedEvent } from '../../db/event-feed';
import { eventBody, webhookIdOf } from '../../db/notifications';
import type { EventIdentity } from '../../db/notifications';
import { eventList } from '../answer-schemas';
import { decodeCursor, encodeCursor } from '../cursors';
import { Problem } from '../problems';
import { route } from '../route';
import type { RouteDeps } from '../route';
import { eventsQuery } from '../schemas';

const PAGE_DEFAULT = 100;

export const listEvents = route<object, z.infer<typeof eventsQuery>, undefined>({
  method: 'get',
  path: '/v1/events',
  scope: 'read',
  summary: 'Read every event, oldest first, whether it was delivered or not',
  query: eventsQuery,
  answers: { 200: { description: 'The events after the cursor.', schema: eventList } },
  refusals: [410],
  async act({ caller, query }, deps) {
    const limit = query.limit === undefined ? PAGE_DEFAULT : Number(query.limit);
    const afterNo =
      query.after === undefined ? 0 : await requirePlace(deps, caller.merchantId, query.after);
    const events = await readFeed(deps.pool, caller.merchantId, { afterNo, limit });
    const last = events.at(-1);
    return {
      status: 200,
      body: {
        events: events.map(eventView),
        next_after: last ? encodeCursor([last.eventNo, markOf(last)]) : (query.after ?? null),
        has_more: events.length === limit,
      },
    };
  },
});

function eventView(event: FeedEvent) {
  return { id: webhookIdOf(event), ...eventBody(event), delivery: event.status };
}

/** The place of the last event read, and which event that was. */
const cursorShape = z.tuple([z.number().int().min(1).max(Number.MAX_SAFE_INTEGER), z.string()]);

function markOf(event: EventIdentity): string {
  return webhookIdOf(event).slice(-12);
}

/**
 * The place a cursor stands for.
 * @throws Problem cursor_unknown when another event has that place now: the database was restored from
 * a backup, and what was numbered since is numbered anew
 */
async function requirePlace(deps: RouteDeps, merchantId: string, text: string): Promise<number> {
  const said = 'query.after: must be the next_after of an earlier page';
  const [eventNo, mark] = decodeCursor(text, cursorShape, said);
  const event = await readFeedEvent(deps.pool, merchantId, eventNo);
  if (event && markOf(event) === mark) return eventNo;
  throw new Problem(
    'cursor_unknown',
    'query.after: these events are not numbered that way any more; read from the start and drop what ' +
      'you have seen by its id',
  );
}
