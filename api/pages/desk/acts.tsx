import { ACT_KINDS } from '../../../domain/operator-acts';
import { confirmRoute, listActsRoute, readActRoute } from '../../routes/ops-acts';
import { ACT_WORDS, actWords } from './act-bodies';
import { ActFacts, ActNotice, actPath, ConfirmForm } from './act-view';
import type { Desk, DeskApp, DeskContext, Refused } from './frame';
import { keepName, nameOf } from './names';
import { DESK } from './guard';
import { Money, Choice, More, OrderLink, Status, Table, Text, Time, words } from './parts';
import type { Act, ActList } from './shapes';

const STATUSES = ['waiting_second', 'accepted', 'done', 'refused'] as const;

/** What operators did, and what waits for a second one. */
export function addActs(app: DeskApp, desk: Desk): void {
  app.get('/acts', async (c) => {
    const { status = 'waiting_second', kind, cursor } = c.req.query();
    const query = { ...(status && { status }), ...(kind && { kind }) };
    const list = await desk.ask<ActList>(c, listActsRoute, {
      query: { ...query, ...(cursor && { cursor }) },
    });
    return desk.show(c, {
      title: 'Acts',
      at: '/acts',
      children: (
        <>
          <p>
            An act that moves much money, or lets money out of sight, waits until another operator
            confirms it.
          </p>
          <form method="get" class="filters">
            <Choice
              id="status"
              name="status"
              label="Status"
              value={status}
              options={[['', 'any'], ...STATUSES.map((one) => [one, words(one)] as const)]}
            />
            <Choice
              id="kind"
              name="kind"
              label="Act"
              value={kind}
              options={[['', 'any'], ...ACT_KINDS.map((one) => [one, ACT_WORDS[one]] as const)]}
            />
            <button class="button">Show</button>
          </form>
          <Table
            caption="Acts, newest first"
            heads={['Act', 'Status', 'Order', 'Amount', 'By', 'When', 'Reason']}
            rows={list.acts.map((act) => [
              <a href={actPath(act.act_no)}>{actWords(act.kind)}</a>,
              <Status of={act.status} />,
              <OrderLink merchantId={act.merchant_id} orderId={act.order_id} />,
              <Money of={act.amount} in={act.currency} />,
              <Text of={act.by.name} />,
              <Time at={act.created_at} />,
              <Text of={act.reason} />,
            ])}
            empty="No such acts."
          />
          <More path="/acts" query={query} cursor={list.next_cursor} label="Older acts" />
        </>
      ),
    });
  });

  app.get('/acts/:act_no', (c) => showAct(c, c.req.param('act_no')));

  app.post('/acts/:act_no/confirm', async (c) => {
    const actNo = c.req.param('act_no');
    const form = c.get('form');
    try {
      const { name, reason } = form;
      await desk.ask(c, confirmRoute, { params: { act_no: actNo }, body: { name, reason } });
      keepName(c, name, desk.deps.publicUrl());
      return c.redirect(`${actPath(actNo)}?act=${encodeURIComponent(actNo)}`, 303);
    } catch (error) {
      const problem = desk.refusalOf(error);
      return showAct(c, actNo, { problem, form: { ...form, form: `confirm-${actNo}` } });
    }
  });

  async function showAct(c: DeskContext, actNo: string, refused?: Refused) {
    const act = await desk.ask<Act>(c, readActRoute, { params: { act_no: actNo } });
    const session = c.get('session');
    return desk.show(c, {
      title: `Act ${act.act_no}`,
      at: '/acts',
      status: refused?.problem.status ?? 200,
      children: (
        <>
          {c.req.query('act') !== undefined && <ActNotice act={act} />}
          <ActFacts act={act} />
          <ConfirmForm act={act} session={session} name={nameOf(c)} refused={refused} />
          <p>
            <a href={`${DESK}/acts`}>Acts that wait for a second person</a>
          </p>
        </>
      ),
    });
  }
}

/** The act that led to this page, when one did. */
export async function noticeOf(desk: Desk, c: DeskContext): Promise<Act | undefined> {
  const actNo = c.req.query('act');
  if (actNo === undefined) return undefined;
  // A number that somebody made up is no reason to show no page.
  return desk.ask<Act>(c, readActRoute, { params: { act_no: actNo } }).catch((error: unknown) => {
    desk.refusalOf(error);
    return undefined;
  });
}
