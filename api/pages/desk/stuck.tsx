import { stuckRoute } from '../../routes/ops-orders';
import { actWords } from './act-bodies';
import { actPath } from './act-view';
import type { Desk, DeskApp } from './frame';
import { Money, OrderLink, RunLink, Status, Table, Text, Time, words } from './parts';
import type { Stuck } from './shapes';

/** What should have gone on by now and has not. */
export function addStuck(app: DeskApp, desk: Desk): void {
  app.get('/stuck', async (c) => {
    const stuck = await desk.ask<Stuck>(c, stuckRoute);
    return desk.show(c, {
      title: 'Stuck',
      at: '/stuck',
      children: (
        <>
          <p>What should have gone on by now and has not: at most 50 of each, the oldest first.</p>
          <h2>Orders past due</h2>
          <Table
            caption="Orders with work that nobody has done for a minute"
            heads={['Order', 'Status', 'Waits for', 'Due', 'Its run', 'Look']}
            rows={stuck.orders.map((one) => [
              <OrderLink merchantId={one.merchant_id} orderId={one.order_id} />,
              <Status of={one.status} />,
              one.reasons.map(words).join(', '),
              <Time at={one.due_at} />,
              <Status of={one.run} />,
              <RunLink url={one.run_url} />,
            ])}
            empty="None: every order goes on."
          />
          <h2>Refunds that take long</h2>
          <Table
            caption="Refunds that wait for a person, or are older than a day"
            heads={['Refund', 'Status', 'Order', 'Amount', 'Channel', 'Created', 'Look']}
            rows={stuck.refunds.map((one) => [
              <Text of={one.refund_no} />,
              <Status of={one.status} />,
              <OrderLink merchantId={one.merchant_id} orderId={one.order_id} />,
              <Money of={one.amount} in={one.currency} />,
              <Text of={one.channel} />,
              <Time at={one.created_at} />,
              <RunLink url={one.run_url} what="refund" />,
            ])}
            empty="None."
          />
          <h2>Acts that are not done</h2>
          <Table
            caption="Acts that wait for a second person, or to be performed"
            heads={['Act', 'Status', 'Order', 'By', 'When']}
            rows={stuck.acts.map((act) => [
              <a href={actPath(act.act_no)}>{actWords(act.kind)}</a>,
              <Status of={act.status} />,
              <OrderLink merchantId={act.merchant_id} orderId={act.order_id} />,
              <Text of={act.by.name} />,
              <Time at={act.created_at} />,
            ])}
            empty="None."
          />
          <h2>Callbacks for numbers nobody knows</h2>
          <Table
            caption="Callbacks that match no attempt and no refund"
            heads={['Callback', 'Channel', 'Number', 'Copies', 'Received']}
            rows={stuck.callbacks.map((one) => [
              one.callback_id,
              <Text of={one.channel} />,
              <Text of={one.our_no} />,
              one.copies,
              <Time at={one.received_at} />,
            ])}
            empty="None."
          />
        </>
      ),
    });
  });
}
