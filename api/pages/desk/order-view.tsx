import { money } from './money';
import { Money, Data, Facts, OrderLink, Status, Table, Text, Time, words } from './parts';
import type { HeldCapture, OpsOrder } from './shapes';

export function OrderFacts({ order }: { order: OpsOrder }) {
  return (
    <>
      <Facts
        of={[
          ['Order', <OrderLink merchantId={order.merchant_id} orderId={order.order_id} />],
          ['Subject', <Text of={order.subject} />],
          ['Amount', money(order.amount, order.currency)],
          [
            'Status',
            <>
              <Status of={order.status} />{' '}
              {order.status_reason !== null && <Text of={words(order.status_reason)} />}
              {order.closing && ' being closed'}
            </>,
          ],
          ['Refunds', <Status of={order.refund_status} />],
          ['Fulfilment', <Status of={order.fulfilment_status} />],
          ['Created', <Time at={order.created_at} />],
          ['Deadline', <Time at={order.expires_at} />],
          ['Paid', <Time at={order.paid_at} />],
          ['Closed', <Time at={order.closed_at} />],
        ]}
      />
      {Object.keys(order.metadata).length > 0 && (
        <details>
          <summary>What the shop wrote down with it</summary>
          <Data of={order.metadata} />
        </details>
      )}
    </>
  );
}

export function Captures({ of: captures }: { of: readonly HeldCapture[] }) {
  return (
    <Table
      caption="Captures: what the channel took"
      heads={['Capture', 'Amount', 'Status', 'Is', 'Left', 'Held by the case', 'Refunded', 'At']}
      rows={captures.map((one) => [
        one.capture_id,
        <Money of={one.amount} in={one.currency} />,
        <Status of={one.status} />,
        one.settles ? 'pays the order' : words(one.kind),
        <Money of={one.rest} in={one.currency} />,
        <Money of={one.held} in={one.currency} />,
        `${money(one.refunded, one.currency)}${one.reserved > 0 ? `, ${money(one.reserved, one.currency)} on its way` : ''}`,
        <>
          <bdi>{one.channel}</bdi> <bdi>{one.channel_trade_no}</bdi>
        </>,
      ])}
      empty="The channel has taken nothing."
    />
  );
}

export function Attempts({ order }: { order: OpsOrder }) {
  return (
    <Table
      caption="Attempts to pay"
      heads={[
        'Request',
        'Status',
        'Channel',
        'Amount',
        'Our number',
        'Channel’s number',
        'Created',
      ]}
      rows={order.attempts.map((one) => [
        <Text of={one.request_no} />,
        <>
          <Status of={one.status} />{' '}
          {one.status_reason !== null && <Text of={words(one.status_reason)} />}
        </>,
        <Text of={one.channel} />,
        <Money of={one.amount} in={one.currency} />,
        <Text of={one.out_trade_no} />,
        <Text of={one.channel_trade_no} />,
        <Time at={one.created_at} />,
      ])}
      empty="Nobody has tried to pay it."
    />
  );
}

export function Refunds({ order }: { order: OpsOrder }) {
  return (
    <Table
      caption="Refunds"
      heads={[
        'Refund',
        'Status',
        'Amount',
        'By',
        'Reason',
        'Our number',
        'Channel’s number',
        'Created',
      ]}
      rows={order.refunds.map((one) => [
        <Text of={one.refund_no} />,
        <>
          <Status of={one.status} />{' '}
          {one.status_reason !== null && <Text of={words(one.status_reason)} />}
        </>,
        <Money of={one.amount} in={one.currency} />,
        one.origin,
        <Text of={one.reason} />,
        <Text of={one.out_refund_no} />,
        <Text of={one.channel_refund_no} />,
        <Time at={one.created_at} />,
      ])}
      empty="No refunds."
    />
  );
}

export function Fulfilment({ order }: { order: OpsOrder }) {
  if (order.fulfilment_steps.length === 0) return null;
  return (
    <section aria-labelledby="fulfilment">
      <h2 id="fulfilment">What the shop delivers</h2>
      {order.fulfilment_failure !== null && (
        <p>It was stopped and undone: {words(order.fulfilment_failure)}.</p>
      )}
      <Table
        caption="Steps of fulfilment"
        heads={['Step', 'Status', 'Tries', 'Undone in', 'Last error', 'Finished']}
        rows={order.fulfilment_steps.map((step) => [
          <>
            {step.step_no}. <bdi>{step.name}</bdi>
          </>,
          <Status of={step.status} />,
          step.tries,
          step.undo_tries,
          <Text of={step.last_error} />,
          <Time at={step.finished_at} />,
        ])}
      />
    </section>
  );
}
