import { aCallbackOrder, writeMockCallback } from '../channels/mock-callback-writer';
import { addDays, dayAt } from '../../domain/business-day';
import { reconciliationWorkflowId } from '../../workflows/ids';
import { zoneAtHour } from '../support/reconciliations';
import type { Answer } from './api-harness';
import { ACCOUNTS, aNewOrder } from './api-harness';
import type { Saga } from './saga-harness';
import { NOTIFY_SECRET, startSaga } from './saga-harness';
import { insertNotification } from '../../db/notifications';
import { formatDecimal } from '../../domain/money';
import { DeskClient } from './desk-client';
import { startMerchantServer } from '../support/merchant-server';
import type { MerchantServer } from '../support/merchant-server';

/**
 * "Called twice, called in parallel: still right?" asked of every write there is. The list of writes
 * is the app's own; a write that has no plan here fails the first test. Two apps share the work.
 */
interface Prepared {
  send(headers?: Record<string, string>): Promise<Answer>;
  /** Looks until the effect is there; then how often it is there. Exactly one is right. */
  effects(): Promise<Record<string, number>>;
}

let saga: Saga;
let merchant: MerchantServer;
let operatorKey: string;
let clicks = 0;
const timeZone = zoneAtHour(6);
beforeAll(async () => {
  saga = await startSaga();
  merchant = await startMerchantServer(NOTIFY_SECRET);
  operatorKey = await saga.keyWith(['operator']);
  // Six in the morning: the bill of yesterday may still come.
  await saga.control.configure({ timeZone });
  await saga.pool.query(`update channels set time_zone = $1::text`, [timeZone]);
}, 120_000);
afterAll(async () => {
  await saga?.close();
  await merchant?.close();
});

/** How an operator's write is sent: as a program does, or as a form of the desk. */
type Write = (
  path: string,
  body: Record<string, unknown>,
  headers?: Record<string, string>,
) => Promise<Answer>;

const plans: Record<string, (write: Write) => Promise<Prepared>> = {
  'POST /v1/orders': async () => {
    const body = aNewOrder();
    return {
      send: (headers) => saga.post('/v1/orders', body, headers),
      effects: async () => ({
        orders: await count('orders', body.order_id),
        creations: await count('order_events', body.order_id, `cause = 'created'`),
      }),
    };
  },
  'POST /v1/orders/:order_id/payments': async () => {
    const orderId = await saga.anOrder();
    const body = { channel: 'mock-a', request_no: 'k-1' };
    return {
      send: (headers) => saga.post(`/v1/orders/${orderId}/payments`, body, headers),
      effects: async () => ({
        records: await count('pay_records', orderId),
        trades: (await saga.booksOf(orderId)).trades,
      }),
    };
  },
  'POST /v1/orders/:order_id/cancel': async () => {
    const orderId = await saga.anOrder();
    await saga.post(`/v1/orders/${orderId}/payments`, { channel: 'mock-a', request_no: 'k-1' });
    return {
      send: (headers) => saga.post(`/v1/orders/${orderId}/cancel`, {}, headers),
      effects: async () => {
        await until(async () => (await statusOf(orderId)) === 'closed');
        return {
          closings: await count(
            'order_events',
            orderId,
            `subject = 'order' and to_status = 'closed'`,
          ),
          told: await count('notifications', orderId, `event_type = 'order.closed'`),
        };
      },
    };
  },
  'POST /v1/orders/:order_id/refunds': async () => {
    const orderId = await saga.anOrder();
    await saga.payAndSettle(orderId);
    const body = { refund_no: 'R1', amount: 3_000 };
    return {
      send: (headers) => saga.post(`/v1/orders/${orderId}/refunds`, body, headers),
      effects: async () => {
        await until(async () => (await count('refunds', orderId, `status = 'succeeded'`)) > 0);
        return {
          refunds: await count('refunds', orderId),
          executed: (await saga.booksOf(orderId)).refunded / 3_000,
        };
      },
    };
  },
  'POST /pay/:token': async () => {
    const orderId = await saga.anOrder();
    const link = (await saga.ask('GET', `/v1/orders/${orderId}`)).body.pay_url as string;
    return {
      send: () =>
        saga.ask('POST', new URL(link).pathname, {
          key: null,
          raw: new URLSearchParams({ choice: 'page-1-mock-a mock-a' }).toString(),
          headers: {
            accept: 'application/json',
            'content-type': 'application/x-www-form-urlencoded',
          },
        }),
      effects: async () => ({
        records: await count('pay_records', orderId),
        trades: (await saga.booksOf(orderId)).trades,
      }),
    };
  },
  'POST /ops/reconciliations': async (write) => {
    // Yesterday's bill is not there yet: the run stays open and waits for it.
    const day = addDays(dayAt(new Date(), timeZone), -1);
    await saga.control.holdBill({ dialect: 'mock-b', day });
    const id = reconciliationWorkflowId({ channel: 'mock-b', day }, saga.taskQueue);
    const handle = saga.client.workflow.getHandle(id);
    await handle.terminate('of the test before').catch(() => undefined);
    const before = (await runsOf(id)).length;
    return {
      send: (headers) => write('/ops/reconciliations', { channel: 'mock-b', day }, headers),
      effects: async () => {
        await until(async () => (await runsOf(id)).length > before);
        let rows: unknown[] = [];
        await until(async () => {
          const found = await saga.pool.query(
            `select from reconciliation_runs where channel = 'mock-b' and business_date = $1::date`,
            [day],
          );
          rows = found.rows;
          return rows.length > 0;
        });
        const runs = await runsOf(id);
        return {
          runs: rows.length,
          started: runs.length - before,
          open: runs.filter((status) => status === 'RUNNING').length,
        };
      },
    };
  },
  'POST /ops/orders/:merchant_id/:order_id/acts': async (write) => {
    const { orderId, body } = await anOrderUnderReview();
    return {
      send: (headers) => write(`/ops/orders/${saga.merchantId}/${orderId}/acts`, body, headers),
      effects: async () => {
        await until(async () => (await saga.booksOf(orderId)).refunded > 0);
        return {
          acts: await count('operator_acts', orderId),
          refunds: await count('refunds', orderId),
          executed: (await saga.booksOf(orderId)).refunded / 1_000,
        };
      },
    };
  },
  'POST /ops/acts/:act_no/confirm': async (write) => {
    const { orderId, body, held } = await anOrderUnderReview();
    const closing = {
      ...{ act_no: body.act_no, name: 'Lin', reason: 'a test', kind: 'close_case' },
      ...{ case_id: body.case_id, case_version: body.case_version, evidence: 'a bank slip' },
    };
    const first = await saga.keyWith(['operator']);
    await saga.ask('POST', `/ops/orders/${saga.merchantId}/${orderId}/acts`, {
      key: first,
      body: closing,
    });
    return {
      send: (headers) =>
        write(`/ops/acts/${body.act_no}/confirm`, { name: 'Mo', reason: 'seen' }, headers),
      effects: async () => {
        await until(async () => (await statusOf(orderId)) === 'closed');
        return {
          closings: await count(
            'order_events',
            orderId,
            `cause = 'close_case' and subject = 'case'`,
          ),
          captures: held.length,
          acts: await count('operator_acts', orderId, `status = 'done'`),
        };
      },
    };
  },
  'POST /ops/cases/:case_id/acts': async (write) => {
    const { rows } = await saga.pool.query<{ case_id: number }>(
      `insert into cases (channel, subject_no, kind, summary)
       values ('mock-a', $1, 'misdirected', 'a number of nobody') returning case_id`,
      [`N${++clicks}`],
    );
    const caseId = rows[0]!.case_id;
    const body = {
      ...{ act_no: `orphan-${caseId}`, kind: 'close_case', case_version: 1 },
      ...{ name: 'Lin', reason: 'another system' },
    };
    return {
      send: (headers) => write(`/ops/cases/${caseId}/acts`, body, headers),
      effects: async () => {
        const found = await saga.pool.query<{ version: number; acts: number }>(
          `select k.version, (select count(*)::int from operator_acts a where a.case_id = k.case_id)
             as acts from cases k where case_id = $1 and status = 'closed'`,
          [caseId],
        );
        return { closed: found.rows.length, acts: found.rows[0]?.acts ?? 0 };
      },
    };
  },
  'POST /ops/notifications/:notification_id/resend': async (write) => {
    const orderId = await saga.anOrder();
    const ref = { merchantId: saga.merchantId, orderId };
    // Written while the merchant has no address, so it is kept.
    await saga.pool.query(`update merchants set notify_url = null where merchant_id = $1`, [
      saga.merchantId,
    ]);
    await insertNotification(saga.pool, ref, 'order.closed', '');
    await saga.pool.query(
      `update merchants set notify_url = $2, notify_secret_ref = 'env:NOTIFY_SECRET'
       where merchant_id = $1`,
      [saga.merchantId, merchant.url],
    );
    const { rows } = await saga.pool.query<{ id: number }>(
      `select notification_id as id from notifications where order_id = $1`,
      [orderId],
    );
    return {
      send: (headers) =>
        write(
          `/ops/notifications/${rows[0]!.id}/resend`,
          { reason: 'their server is back' },
          headers,
        ),
      effects: async () => {
        await until(async () => (await count('notifications', orderId, `status = 'sent'`)) > 0);
        const resends = await saga.pool.query(
          `select 1 from notification_resends where notification_id = $1`,
          [rows[0]!.id],
        );
        return { told: merchant.effects(orderId).length, resends: resends.rows.length };
      },
    };
  },
  'POST /callbacks/:channel': async () => {
    const orderId = await saga.anOrder();
    const paying = await saga.post(`/v1/orders/${orderId}/payments`, {
      channel: 'mock-a',
      request_no: 'k-1',
    });
    const outTradeNo: string = paying.body.out_trade_no;
    await saga.control.approve({ outTradeNo, dialect: 'mock-a' });
    const captured = (await saga.control.books()).find(
      (entry) => entry.type === 'captured' && entry.outTradeNo === outTradeNo,
    );
    if (captured?.type !== 'captured') throw new Error('the channel captured nothing');
    const { rawBody, headers } = writeMockCallback(
      ACCOUNTS['mock-a'],
      aCallbackOrder({ outTradeNo, channelTradeNo: captured.channelTradeNo }),
    );
    return {
      send: () =>
        saga.ask('POST', '/callbacks/mock-a', {
          key: null,
          raw: new Uint8Array(rawBody),
          headers: headers as Record<string, string>,
        }),
      effects: async () => {
        await until(async () => (await statusOf(orderId)) === 'paid');
        return {
          captures: await count('captures', orderId),
          payments: await count(
            'order_events',
            orderId,
            `subject = 'order' and to_status = 'paid'`,
          ),
          told: await count('notifications', orderId, `event_type = 'order.paid'`),
          stored: await count('channel_callbacks', orderId),
        };
      },
    };
  },
};

/** Forms of the desk, and the write of the API that each is a face of. */
const FORMS: Record<string, string> = {
  'POST /ops/ui/orders/:merchant_id/:order_id/acts': 'POST /ops/orders/:merchant_id/:order_id/acts',
  'POST /ops/ui/cases/:case_id/acts': 'POST /ops/cases/:case_id/acts',
  'POST /ops/ui/acts/:act_no/confirm': 'POST /ops/acts/:act_no/confirm',
  'POST /ops/ui/dead-letters/:id/resend': 'POST /ops/notifications/:notification_id/resend',
  'POST /ops/ui/reconciliation': 'POST /ops/reconciliations',
};
/** Open and end sessions, of which each is one of its own: nothing of an order. */
const SESSIONS = ['POST /ops/ui/login', 'POST /ops/ui/logout'];

async function count(table: string, orderId: string, where = 'true'): Promise<number> {
  const { rows } = await saga.pool.query<{ count: number }>(
    `select count(*) from ${table} where merchant_id = $1 and order_id = $2 and ${where}`,
    [saga.merchantId, orderId],
  );
  return rows[0]!.count;
}

async function runsOf(workflowId: string): Promise<string[]> {
  const statuses = [];
  const query = `WorkflowId = '${workflowId}'`;
  for await (const run of saga.client.workflow.list({ query })) statuses.push(run.status.name);
  return statuses;
}

async function statusOf(orderId: string): Promise<string> {
  return (await saga.ask('GET', `/v1/orders/${orderId}`)).body.status;
}

async function until(isThere: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await isThere())) {
    if (Date.now() > deadline) throw new Error('it does not come about in 20 s');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function expectOneEffect(effects: Record<string, number>): void {
  expect(effects).toEqual(Object.fromEntries(Object.keys(effects).map((name) => [name, 1])));
}

test('every write the app knows has a plan here, and every plan a write', () => {
  const writes = saga.api.app.routes
    .filter(({ method }) => !['GET', 'HEAD', 'OPTIONS'].includes(method))
    // What stands before a whole folder answers nothing itself.
    .filter(({ path }) => !path.endsWith('/*'))
    .map(({ method, path }) => `${method} ${path}`);
  const planned = [...Object.keys(plans), ...Object.keys(FORMS), ...SESSIONS];
  expect([...new Set(writes)].sort()).toEqual(planned.sort());
  const table = saga.api.routes.filter(({ method }) => method !== 'get');
  // The rest of the app's writes are the inbox and the payer's page.
  expect(table).toHaveLength(Object.keys(plans).length - 2);
});

const byApi: Write = (path, body, headers) =>
  saga.ask('POST', path, { key: operatorKey, body, ...(headers ? { headers } : {}) });

/** The same write by the form of the desk, which asks for money as people write it. */
function byForm(desk: DeskClient): Write {
  return (path, { amount, ...body }) =>
    desk.post(
      path
        .replace('/ops/notifications/', '/dead-letters/')
        .replace('/ops/reconciliations', '/reconciliation')
        .replace('/ops/', '/'),
      {
        ...Object.fromEntries(Object.entries(body).map(([name, value]) => [name, String(value)])),
        ...(typeof amount === 'number' ? { amount: formatDecimal(amount, 'CNY') } : {}),
      },
    );
}

/** An order for which another amount came, and an act that gives 10.00 of it back. */
async function anOrderUnderReview() {
  const orderId = await saga.anOrder();
  const paying = await saga.post(`/v1/orders/${orderId}/payments`, {
    channel: 'mock-a',
    request_no: 'k-1',
  });
  await saga.control.capture({
    outTradeNo: paying.body.out_trade_no,
    dialect: 'mock-a',
    amountMinor: 9_000,
  });
  await until(async () => (await statusOf(orderId)) === 'review');
  const order = await saga.ask('GET', `/ops/orders/${saga.merchantId}/${orderId}`, {
    key: operatorKey,
  });
  const [open] = order.body.cases;
  const body = {
    act_no: `act-${orderId}`,
    kind: 'refund_money',
    case_id: open.case_id,
    case_version: open.version,
    capture_id: order.body.captures[0].capture_id,
    amount: 1_000,
    name: 'Lin',
    reason: 'a test',
  };
  return { orderId, body, held: order.body.captures as object[] };
}

describe.each(Object.keys(plans))('%s', (name) => {
  const kinds: [string, () => Record<string, string> | undefined][] = [
    ['under its business number', () => undefined],
    ['under an Idempotency-Key', () => ({ 'idempotency-key': `click-${++clicks}` })],
  ];

  test.each(kinds)('sent twice %s has one effect', async (_kind, makeHeaders) => {
    const headers = makeHeaders();
    const { send, effects } = await plans[name]!(byApi);
    const [first, second] = [await send(headers), await send(headers)];
    for (const { status } of [first, second]) expect([200, 201, 202]).toContain(status);
    expectOneEffect(await effects());
    const late = await send(headers);
    expect(late.status).toBe(200);
    expectOneEffect(await effects());
  });

  test.each(kinds)(
    'sent 20 times at once %s has one effect and no 5xx',
    async (_kind, makeHeaders) => {
      const headers = makeHeaders();
      const { send, effects } = await plans[name]!(byApi);
      const answers = await Promise.all(Array.from({ length: 20 }, () => send(headers)));
      for (const { status } of answers) expect([200, 201, 202, 409]).toContain(status);
      expect(answers.some(({ status }) => status < 300)).toBe(true);
      expectOneEffect(await effects());
    },
  );
});

describe.each(Object.keys(FORMS))('%s', (name) => {
  test.each([
    ['twice', false],
    ['20 times at once', true],
  ])('sent %s has one effect', async (_, atOnce) => {
    const write = byForm(await DeskClient.loggedIn(saga, operatorKey));
    const { send, effects } = await plans[FORMS[name]!]!(write);
    const answers = atOnce
      ? await Promise.all(Array.from({ length: 20 }, () => send()))
      : [await send(), await send()];
    // Done, and the page of it comes next; or refused in words because the same is under way.
    for (const { status } of answers) expect(atOnce ? [303, 409] : [303]).toContain(status);
    expect(answers.map(({ status }) => status)).toContain(303);
    expectOneEffect(await effects());
  });
});

test('20 attempts under 20 numbers at once join one', async () => {
  const orderId = await saga.anOrder();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      saga.post(`/v1/orders/${orderId}/payments`, { channel: 'mock-a', request_no: `k-${i}` }),
    ),
  );
  for (const { status } of answers) expect([200, 201, 202, 409]).toContain(status);
  const numbers = answers.map(({ body }) => body.out_trade_no).filter(Boolean);
  expect(new Set(numbers).size).toBe(1);
  expect((await saga.booksOf(orderId)).trades).toBe(1);
});
