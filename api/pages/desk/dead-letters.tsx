import {
  listNotificationsRoute,
  readNotificationRoute,
  resendNotificationRoute,
} from '../../routes/ops-notifications';
import { notificationStatus } from '../../schemas';
import type { Desk, DeskApp, DeskContext, Refused } from './frame';
import { DESK } from './guard';
import {
  Choice,
  Data,
  Facts,
  Field,
  More,
  Note,
  OrderLink,
  ProblemNote,
  Status,
  Table,
  Text,
  Time,
} from './parts';
import type { NotificationDetail, NotificationList } from './shapes';

/** Events that a shop could not be told, and the word of a person to tell them after all. */
export function addDeadLetters(app: DeskApp, desk: Desk): void {
  app.get('/dead-letters', async (c) => {
    const { status = 'dead', merchant_id: merchantId, cursor } = c.req.query();
    const query = { status, ...(merchantId && { merchant_id: merchantId.trim() }) };
    const list = await desk.ask<NotificationList>(c, listNotificationsRoute, {
      query: { ...query, ...(cursor && { cursor }) },
    });
    return desk.show(c, {
      title: 'Dead letters',
      at: '/dead-letters',
      children: (
        <>
          <form method="get" class="filters">
            <Choice
              id="status"
              name="status"
              label="Delivery"
              value={status}
              options={notificationStatus.options.map((one) => [one, WORDS[one]] as const)}
            />
            <Field
              id="merchant_id"
              name="merchant_id"
              label="Merchant"
              value={merchantId}
              maxlength={64}
            />
            <button class="button">Show</button>
          </form>
          <Table
            caption="Events, the oldest first"
            heads={['Event', 'Delivery', 'Order', 'Tries', 'Last error', 'Written']}
            rows={list.notifications.map((one) => [
              <a href={`${DESK}/dead-letters/${one.notification_id}`}>
                {one.type} <span class="hidden">number {one.notification_id}</span>
              </a>,
              <Status of={one.status} />,
              <OrderLink merchantId={one.merchant_id} orderId={one.order_id} />,
              one.tries,
              <Text of={one.last_error} />,
              <Time at={one.created_at} />,
            ])}
            empty="No such events."
          />
          <More path="/dead-letters" query={query} cursor={list.next_cursor} label="Newer events" />
        </>
      ),
    });
  });

  app.get('/dead-letters/:id', (c) => showEvent(c, c.req.param('id')));

  app.post('/dead-letters/:id/resend', async (c) => {
    const id = c.req.param('id');
    const form = c.get('form');
    try {
      await desk.ask(c, resendNotificationRoute, {
        params: { notification_id: id },
        body: { reason: form['reason'] },
      });
      return c.redirect(`${DESK}/dead-letters/${id}?resent=yes`, 303);
    } catch (error) {
      return showEvent(c, id, { problem: desk.refusalOf(error), form });
    }
  });

  async function showEvent(c: DeskContext, id: string, refused?: Refused) {
    const event = await desk.ask<NotificationDetail>(c, readNotificationRoute, {
      params: { notification_id: id },
    });
    return desk.show(c, {
      title: `Event ${event.notification_id}`,
      at: '/dead-letters',
      status: refused?.problem.status ?? 200,
      children: (
        <>
          {refused && <ProblemNote problem={refused.problem} />}
          {c.req.query('resent') !== undefined && (
            <Note tone="good">
              <p>
                {event.status === 'sent'
                  ? 'The shop has it.'
                  : 'It is sent now, with the whole ladder before it. Load the page again.'}
              </p>
            </Note>
          )}
          <EventFacts event={event} />
          {event.status !== 'sent' && (
            <ResendForm id={id} csrf={c.get('session').csrfToken} refused={refused} />
          )}
          <h2>Every try</h2>
          <Table
            caption="Tries to deliver it, the oldest first"
            heads={['When', 'Answer', 'Error', 'Took']}
            rows={event.tries_log.map((one) => [
              <Time at={one.tried_at} />,
              one.status ?? '–',
              <Text of={one.error} />,
              `${one.duration_ms} ms`,
            ])}
            empty="It was never tried."
          />
          <h2>Sent again by hand</h2>
          <Table
            caption="Resends, the oldest first"
            heads={['When', 'It was', 'Key', 'Reason']}
            rows={event.resends.map((one) => [
              <Time at={one.at} />,
              <Status of={one.from_status} />,
              <Text of={one.actor} />,
              <Text of={one.reason} />,
            ])}
            empty="Never."
          />
          <h2>What the shop is told</h2>
          <Data of={event.data} />
        </>
      ),
    });
  }
}

const WORDS = {
  dead: 'given up (dead letters)',
  pending: 'waits for its next try',
  kept: 'kept: no address',
  sent: 'sent',
};

function EventFacts({ event }: { event: NotificationDetail }) {
  return (
    <Facts
      of={[
        ['Event', event.type],
        ['Delivery', <Status of={event.status} />],
        ['Order', <OrderLink merchantId={event.merchant_id} orderId={event.order_id} />],
        ['Number on the order', event.seq],
        ['Webhook id', <Text of={event.webhook_id} />],
        ['Last error', <Text of={event.last_error} />],
        ['Next try', <Time at={event.next_try_at} />],
        ['Sent', <Time at={event.sent_at} />],
      ]}
    />
  );
}

function ResendForm({
  id,
  csrf,
  refused,
}: {
  id: string;
  csrf: string;
  refused: Refused | undefined;
}) {
  return (
    <form method="post" action={`${DESK}/dead-letters/${id}/resend`} class="card narrow">
      <input type="hidden" name="csrf" value={csrf} />
      <Field
        id="reason"
        name="reason"
        label="Reason"
        value={refused?.form['reason']}
        maxlength={256}
        required
        hint="Such as: their server is back. Sent twice it is one resend; the shop gets the same webhook id."
      />
      <button type="submit" class="button">
        Send it now
      </button>
    </form>
  );
}
