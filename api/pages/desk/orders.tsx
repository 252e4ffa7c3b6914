import { actOnOrder, listActsRoute } from '../../routes/ops-acts';
import { readOpsOrder } from '../../routes/ops-orders';
import { opsTimelineRoute } from '../../routes/timeline';
import { actBody } from './act-bodies';
import { OrderActs } from './act-forms';
import { ActList, ActNotice } from './act-view';
import { noticeOf } from './acts';
import { caseOf, showCase } from './cases';
import type { Desk, DeskApp, DeskContext, Refused } from './frame';
import { DESK } from './guard';
import { money } from './money';
import { keepName, nameOf } from './names';
import { Attempts, Captures, Fulfilment, OrderFacts, Refunds } from './order-view';
import { orderPath, RefusedNote, RunLink, Status, Table, Text, Time } from './parts';
import type { Act, ActList as Acts, OpsOrder, Timeline } from './shapes';
import { callbacksIn, TimelineView } from './timeline';

const ACTS_MAX = '20';

type Ref = { merchant_id: string; order_id: string };

export function addOrders(app: DeskApp, desk: Desk): void {
  app.get('/orders/:merchant_id/:order_id', (c) => showOrder(desk, c, c.req.param()));

  app.post('/orders/:merchant_id/:order_id/acts', async (c) => {
    const params = c.req.param();
    const form = c.get('form');
    try {
      const act = await desk.ask<Act>(c, actOnOrder, {
        params,
        body: actBody(form, await currencyOf(c, params)),
      });
      keepName(c, form['name'], desk.deps.publicUrl());
      const done = `?act=${encodeURIComponent(act.act_no)}`;
      const caseId = caseOf(form);
      const home =
        caseId === undefined
          ? orderPath(params.merchant_id, params.order_id)
          : `${DESK}/cases/${caseId}`;
      return c.redirect(home + done, 303);
    } catch (error) {
      const refused = { problem: desk.refusalOf(error), form };
      const caseId = caseOf(form);
      return caseId === undefined
        ? showOrder(desk, c, params, refused)
        : showCase(desk, c, caseId, refused);
    }
  });

  /** Of the capture that the form names; only an amount that was typed needs it. */
  async function currencyOf(c: DeskContext, params: Ref): Promise<string | undefined> {
    const { amount, capture_id: captureId } = c.get('form');
    if (amount === undefined) return undefined;
    const order = await desk.ask<OpsOrder>(c, readOpsOrder, { params });
    return order.captures.find((one) => one.capture_id === captureId)?.currency;
  }
}

async function showOrder(desk: Desk, c: DeskContext, ref: Ref, refused?: Refused) {
  const params = { merchant_id: ref.merchant_id, order_id: ref.order_id };
  const cursor = c.req.method === 'GET' ? c.req.query('cursor') : undefined;
  const order = await desk.ask<OpsOrder>(c, readOpsOrder, { params });
  const timeline = await desk.ask<Timeline>(c, opsTimelineRoute, {
    params,
    query: cursor === undefined ? {} : { cursor },
  });
  const { acts } = await desk.ask<Acts>(c, listActsRoute, {
    query: { ...params, limit: ACTS_MAX },
  });
  const session = c.get('session');
  const path = orderPath(order.merchant_id, order.order_id);
  const openCase = order.cases.find(({ status }) => status === 'open');
  const frame = {
    action: `${path}/acts`,
    csrf: session.csrfToken,
    name: nameOf(c),
    refused,
  };
  return desk.show(c, {
    title: `Order ${order.order_id}`,
    at: '/search',
    status: refused?.problem.status ?? 200,
    children: (
      <>
        <RefusedNote of={refused} />
        <ActNotice act={await noticeOf(desk, c)} />
        <OrderFacts order={order} />
        <p>
          <RunLink url={order.run_url} />
        </p>
        {order.cases.length > 0 && (
          <section aria-labelledby="cases">
            <h2 id="cases">Cases</h2>
            <Table
              caption="Cases of this order"
              heads={['Case', 'Status', 'Kind', 'Summary', 'Opened']}
              rows={order.cases.map((one) => [
                <a href={`${DESK}/cases/${one.case_id}`}>Case {one.case_id}</a>,
                <Status of={one.status} />,
                <Text of={one.kind} />,
                <Text of={one.summary} />,
                <Time at={one.opened_at} />,
              ])}
            />
          </section>
        )}
        <section aria-labelledby="money">
          <h2 id="money">Money</h2>
          <p>
            Captured {money(order.captured_minor, order.currency)}, refunded{' '}
            {money(order.refunded_minor, order.currency)}, taken back by the channel{' '}
            {money(order.reversed_minor, order.currency)}.
          </p>
          <Captures of={order.captures} />
          <Attempts order={order} />
          <Refunds order={order} />
        </section>
        <Fulfilment order={order} />
        <section aria-labelledby="acts">
          <h2 id="acts">Act on the order</h2>
          <OrderActs
            frame={frame}
            order={order}
            openCase={openCase}
            callbacks={callbacksIn(timeline.entries)}
          />
        </section>
        <section aria-labelledby="done">
          <h2 id="done">What was done by hand</h2>
          <ActList acts={acts} session={session} name={nameOf(c)} />
        </section>
        <section aria-labelledby="timeline">
          <h2 id="timeline">Timeline</h2>
          <TimelineView entries={timeline.entries} />
          {timeline.next_cursor !== null && (
            <p>
              <a
                class="button"
                href={`${path}?cursor=${encodeURIComponent(timeline.next_cursor)}#timeline`}
              >
                What happened next
              </a>
            </p>
          )}
        </section>
      </>
    ),
  });
}
