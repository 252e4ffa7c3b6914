import { randomBytes } from 'node:crypto';
import { insertApiKey } from '../../db/merchants';
import type { Answer, Saga } from './saga';
import { waitFor } from './wait';

/** Two operators with keys of their own, at a saga's API. */
export class Operators {
  /** Keys of a merchant of their own: operators see the orders of all. */
  readonly keys = { lin: newKey(), mo: newKey() };
  private acts = 0;

  private constructor(private readonly saga: Saga) {}

  static async of(saga: Saga): Promise<Operators> {
    const operators = new Operators(saga);
    for (const [name, apiKey] of Object.entries(operators.keys)) {
      await insertApiKey(saga.pool, {
        keyId: `${name}-${saga.merchantId}`,
        merchantId: saga.merchantId,
        apiKey,
        scopes: ['operator'],
      });
    }
    return operators;
  }

  call(
    method: string,
    path: string,
    body?: unknown,
    by: keyof Operators['keys'] = 'lin',
  ): Promise<Answer> {
    return this.saga.call(method, path, body, { apiKey: this.keys[by] });
  }

  pathOf(orderId: string): string {
    return `/ops/orders/${this.saga.merchantId}/${orderId}`;
  }

  /** An act on the order; a number, a name and a reason are given unless said. */
  act(
    orderId: string,
    body: Record<string, unknown>,
    by: keyof Operators['keys'] = 'lin',
  ): Promise<Answer> {
    return this.call(
      'POST',
      `${this.pathOf(orderId)}/acts`,
      { act_no: this.nextNo(), name: by, reason: 'the payer wrote', ...body },
      by,
    );
  }

  /** An act on the order's case as it stands: one that has news meanwhile is read again, as a person would. */
  decide(orderId: string, body: Record<string, unknown>): Promise<Answer> {
    return waitFor(`${orderId} is decided on its latest picture`, async () => {
      const { named } = await this.openCase(orderId);
      const answer = await this.act(orderId, { ...body, ...named });
      return answer.body.code === 'case_version_outdated' ? undefined : answer;
    });
  }

  confirm(actNo: string, by: keyof Operators['keys'] = 'mo'): Promise<Answer> {
    const body = { name: by, reason: 'seen it too' };
    return this.call('POST', `/ops/acts/${actNo}/confirm`, body, by);
  }

  nextNo(): string {
    return `${this.saga.merchantId}-act-${++this.acts}`;
  }

  /** The order's open case, as the routes show it; waits until there is one. */
  async openCase(orderId: string) {
    const caseId = await waitFor(`a case of ${orderId}`, async () => {
      const order = await this.call('GET', this.pathOf(orderId));
      return order.body.cases.find((one: { status: string }) => one.status === 'open')?.case_id;
    });
    const { body } = await this.call('GET', `/ops/cases/${caseId}`);
    return {
      ...body,
      /** What a decision about it names. */
      named: { case_id: body.case_id, case_version: body.version },
    };
  }

  /** An order of 100.00 for which another amount came: under review, its money held. */
  async mismatch(received = 9_000, fields: Parameters<Saga['createOrder']>[0] = {}) {
    const { saga } = this;
    const orderId = await saga.createOrder(fields);
    await saga.pay(orderId);
    const outTradeNo = await saga.outTradeNo(orderId);
    await saga.mock.capture({ outTradeNo, amountMinor: received });
    await saga.untilOrder(orderId, 'review');
    const held = await this.openCase(orderId);
    return { orderId, outTradeNo, held, captureId: held.captures[0].capture_id as string };
  }

  /** Of every case of the order, the oldest first. */
  async caseStatus(orderId: string): Promise<string[]> {
    const rows = await this.saga.rows<{ status: string }>(
      `select status from cases where merchant_id = $1::text and order_id = $2::text
       order by case_id`,
      this.saga.merchantId,
      orderId,
    );
    return rows.map(({ status }) => status);
  }
}

function newKey(): string {
  return `psk_${randomBytes(32).toString('base64url')}`;
}
