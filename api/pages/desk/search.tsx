import { CURRENCIES } from '../../../domain/money';
import { searchRoute } from '../../routes/ops-orders';
import { orderStatus } from '../../schemas';
import type { Desk, DeskApp, Form } from './frame';
import { typedAmount } from './money';
import {
  Money,
  Choice,
  Field,
  Note,
  OrderLink,
  ProblemNote,
  RunLink,
  Status,
  Table,
  Time,
  words,
} from './parts';
import type { FoundOrders } from './shapes';
import type { Problem } from '../../problems';

const CURRENCY = 'CNY';

/** Orders of every merchant, by whatever a payer or a channel wrote on a receipt. */
export function addSearch(app: DeskApp, desk: Desk): void {
  app.get('/search', async (c) => {
    const said = Object.fromEntries(
      Object.entries(c.req.query()).map(([name, value]) => [name, value.trim()]),
    );
    let found: FoundOrders | undefined;
    let problem: Problem | undefined;
    try {
      const query = queryOf(said);
      if (query) found = await desk.ask<FoundOrders>(c, searchRoute, { query });
    } catch (error) {
      problem = desk.refusalOf(error);
    }
    return desk.show(c, {
      title: 'Search',
      at: '/search',
      status: problem?.status ?? 200,
      children: (
        <>
          {problem && <ProblemNote problem={problem} />}
          <SearchForm said={said} />
          {found && <Found found={found} />}
        </>
      ),
    });
  });
}

/** What the API's search takes; undefined when nothing was asked. */
function queryOf({ q, amount, currency, day, zone, status }: Form) {
  if (!q && !amount && !day && !status) return undefined;
  return {
    ...(q && { q }),
    ...(amount && { amount: String(typedAmount(amount, currency || CURRENCY)) }),
    ...(day && { day }),
    ...(day && zone && { zone }),
    ...(status && { status }),
  };
}

function SearchForm({ said }: { said: Form }) {
  return (
    <form method="get" class="card">
      <Field
        id="q"
        name="q"
        label="A number"
        value={said['q']}
        maxlength={128}
        autocomplete="off"
        hint="Of the order, an attempt, a capture or a refund; ours, the shop’s or the channel’s; exactly."
      />
      <fieldset class="filters">
        <legend>Or an amount on a day</legend>
        <Field
          id="amount"
          name="amount"
          label="Amount"
          value={said['amount']}
          inputmode="decimal"
          maxlength={24}
          autocomplete="off"
        />
        <Choice
          id="currency"
          name="currency"
          label="Currency"
          value={said['currency'] || CURRENCY}
          options={CURRENCIES.map((code) => [code, code] as const)}
        />
        <Field id="day" name="day" label="Day" type="date" value={said['day']} />
        <Field
          id="zone"
          name="zone"
          label="Time zone"
          value={said['zone']}
          maxlength={64}
          hint="Such as Asia/Shanghai; UTC if empty."
        />
      </fieldset>
      <Choice
        id="status"
        name="status"
        label="Status"
        value={said['status']}
        options={[['', 'any'], ...orderStatus.options.map((one) => [one, one] as const)]}
      />
      <button class="button">Search</button>
    </form>
  );
}

function Found({ found }: { found: FoundOrders }) {
  return (
    <section aria-labelledby="found">
      <h2 id="found">Orders found</h2>
      {found.truncated && (
        <Note tone="warn">
          <p>There are more: these are the newest {found.orders.length}. Ask for less.</p>
        </Note>
      )}
      <Table
        caption="Orders, newest first"
        heads={['Order', 'Status', 'Refunds', 'Amount', 'Found by', 'Created', 'Run']}
        rows={found.orders.map((one) => [
          <OrderLink merchantId={one.merchant_id} orderId={one.order_id} />,
          <Status of={one.status} />,
          <Status of={one.refund_status} />,
          <Money of={one.amount} in={one.currency} />,
          one.matched.map(words).join(', '),
          <Time at={one.created_at} />,
          <RunLink url={one.run_url} />,
        ])}
        empty="No order has it."
      />
    </section>
  );
}
