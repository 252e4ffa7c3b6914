import { actOnCase, listCasesRoute, readCaseRoute } from '../../routes/ops-cases';
import { readOpsOrder } from '../../routes/ops-orders';
import { opsTimelineRoute } from '../../routes/timeline';
import { actBody } from './act-bodies';
import { CloseForm, NoteForm, OrderActs } from './act-forms';
import type { FormFrame } from './act-forms';
import { ActList, ActNotice } from './act-view';
import { noticeOf } from './acts';
import type { Desk, DeskApp, DeskContext, Form, Refused } from './frame';
import { DESK } from './guard';
import { keepName, nameOf } from './names';
import { Captures } from './order-view';
import {
  Choice,
  Data,
  Facts,
  Field,
  More,
  OrderLink,
  orderPath,
  RefusedNote,
  RunLink,
  Status,
  Table,
  Text,
  Time,
  words,
} from './parts';
import { callbacksIn } from './timeline';
import type { Act, CaseDetail, CaseList, OpsOrder, Timeline } from './shapes';

/** What waits for a person, and one case with everything that a decision needs. */
export function addCases(app: DeskApp, desk: Desk): void {
  app.get('/cases', async (c) => {
    const { status = 'open', kind, merchant_id: merchantId, cursor } = c.req.query();
    const query = {
      status,
      ...(kind && { kind: kind.trim().replaceAll(' ', '_') }),
      ...(merchantId && { merchant_id: merchantId.trim() }),
    };
    const list = await desk.ask<CaseList>(c, listCasesRoute, {
      query: { ...query, ...(cursor && { cursor }) },
    });
    return desk.show(c, {
      title: 'Cases',
      at: '/cases',
      children: (
        <>
          <form method="get" class="filters">
            <Choice
              id="status"
              name="status"
              label="Status"
              value={status}
              options={[
                ['open', 'open'],
                ['closed', 'closed'],
              ]}
            />
            <Field id="kind" name="kind" label="Kind" value={kind} maxlength={64} />
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
            caption={`Cases that are ${status}, newest first`}
            heads={['Case', 'Kind', 'Summary', 'Order', 'Order is', 'Opened']}
            rows={list.cases.map((one) => [
              <a href={`${DESK}/cases/${one.case_id}`}>Case {one.case_id}</a>,
              <Text of={words(one.kind)} />,
              <Text of={one.summary} />,
              <OrderLink merchantId={one.merchant_id} orderId={one.order_id} />,
              <Status of={one.order_status} />,
              <Time at={one.opened_at} />,
            ])}
            empty="No such cases: nothing waits for a person."
          />
          <More path="/cases" query={query} cursor={list.next_cursor} label="Older cases" />
        </>
      ),
    });
  });

  app.get('/cases/:case_id', (c) => showCase(desk, c, c.req.param('case_id')));

  // For a case that belongs to no order; an order's is decided by acts on the order.
  app.post('/cases/:case_id/acts', async (c) => {
    const caseId = c.req.param('case_id');
    const form = c.get('form');
    try {
      const act = await desk.ask<Act>(c, actOnCase, {
        params: { case_id: caseId },
        body: actBody(form, undefined),
      });
      keepName(c, form['name'], desk.deps.publicUrl());
      return c.redirect(`${DESK}/cases/${caseId}?act=${encodeURIComponent(act.act_no)}`, 303);
    } catch (error) {
      return showCase(desk, c, caseId, { problem: desk.refusalOf(error), form });
    }
  });
}

/** The case on whose page a form was, to come back to. */
export function caseOf({ on_case: caseId }: Form): string | undefined {
  return caseId !== undefined && /^[1-9]\d{0,14}$/.test(caseId) ? caseId : undefined;
}

export async function showCase(desk: Desk, c: DeskContext, caseId: string, refused?: Refused) {
  const found = await desk.ask<CaseDetail>(c, readCaseRoute, { params: { case_id: caseId } });
  const { merchant_id: merchantId, order_id: orderId } = found;
  const session = c.get('session');
  const isOfOrder = merchantId !== null && orderId !== null;
  const frame: FormFrame = {
    action: isOfOrder
      ? `${orderPath(merchantId, orderId)}/acts`
      : `${DESK}/cases/${found.case_id}/acts`,
    csrf: session.csrfToken,
    name: nameOf(c),
    onCase: found.case_id,
    refused,
  };
  const isOpen = found.status === 'open';
  return desk.show(c, {
    title: `Case ${found.case_id}`,
    at: '/cases',
    status: refused?.problem.status ?? 200,
    children: (
      <>
        <RefusedNote of={refused} />
        <ActNotice act={await noticeOf(desk, c)} />
        <p class="lead">
          <Text of={found.summary} />
        </p>
        <Facts
          of={[
            ['Status', <Status of={found.status} />],
            ['Kind', <Text of={words(found.kind)} />],
            ['Order', <OrderLink merchantId={merchantId} orderId={orderId} />],
            ['Order is', <Status of={found.order_status} />],
            ['Channel', <Text of={found.channel} />],
            ['About number', <Text of={found.subject_no} />],
            ['Version', found.version],
            ['Opened', <Time at={found.opened_at} />],
            ['Closed', <Time at={found.closed_at} />],
          ]}
        />
        <p>
          <RunLink url={found.run_url} />
        </p>
        <section aria-labelledby="money">
          <h2 id="money">Money</h2>
          <Captures of={found.captures} />
        </section>
        <section aria-labelledby="evidence">
          <h2 id="evidence">Evidence</h2>
          <ol class="evidence">
            {found.evidence.map((one) => (
              <li>
                <Data of={one} />
              </li>
            ))}
          </ol>
          {found.decision !== null && (
            <>
              <h3>Decision</h3>
              <Data of={found.decision} />
            </>
          )}
        </section>
        {isOpen && (
          <section aria-labelledby="decide">
            <h2 id="decide">Decide</h2>
            {isOfOrder ? (
              <OrderActs
                frame={frame}
                order={await orderOf(desk, c, merchantId, orderId)}
                openCase={found}
                callbacks={await callbacksOf(desk, c, merchantId, orderId)}
              />
            ) : (
              <>
                <CloseForm frame={frame} version={found.version} named={undefined} />
                <NoteForm frame={frame} />
              </>
            )}
          </section>
        )}
        <section aria-labelledby="done">
          <h2 id="done">What was done about it</h2>
          <ActList acts={found.acts} session={session} name={nameOf(c)} />
        </section>
      </>
    ),
  });
}

function orderOf(desk: Desk, c: DeskContext, merchantId: string, orderId: string) {
  const params = { merchant_id: merchantId, order_id: orderId };
  return desk.ask<OpsOrder>(c, readOpsOrder, { params });
}

async function callbacksOf(desk: Desk, c: DeskContext, merchantId: string, orderId: string) {
  const params = { merchant_id: merchantId, order_id: orderId };
  const { entries } = await desk.ask<Timeline>(c, opsTimelineRoute, { params });
  return callbacksIn(entries);
}
