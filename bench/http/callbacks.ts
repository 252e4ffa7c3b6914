import { randomUUID } from 'node:crypto';
import type { Account, Notice } from '../../mock-channel/dialect';
import { dialectA } from '../../mock-channel/dialect-a';
import { noticeFor } from '../../mock-channel/notices';
import { inParallel } from '../../test/support/in-parallel';
import type { Saga } from '../../test/support/saga';
import { HttpClient } from '../saga/http-client';
import type { ShopOrders } from '../saga/orders';

const AT_ONCE = 16;

/**
 * The channel's side of callbacks, as load: payments that the channel has taken and not told of, told
 * at the bench's own rate, each as often as wanted, freshly signed every time.
 */
export class CallbackLoad {
  private readonly http = new HttpClient();
  private readonly account: Account;
  private readonly notices: Notice[] = [];

  constructor(
    private readonly saga: Saga,
    private readonly shop: ShopOrders,
  ) {
    this.account = {
      dialect: 'mock-a',
      accountId: '2088000000000001',
      appId: 'app-a-1',
      keys: { current: String(saga.env['MOCK_A_KEY']), previous: null },
    };
  }

  /** Payments there are to tell of. */
  get size(): number {
    return this.notices.length;
  }

  /** Orders with an attempt at the channel that its payer has paid; the channel keeps quiet. */
  async prepare(count: number): Promise<void> {
    const ids = Array.from({ length: count }, () => this.shop.nextId());
    await inParallel(ids, AT_ONCE, (orderId) => this.shop.open(orderId));
    await this.take(ids);
  }

  /** Has the payers of these orders pay. */
  async take(orderIds: readonly string[]): Promise<void> {
    const rows = await this.saga.rows<{ out_trade_no: string }>(
      `select out_trade_no from pay_records
       where merchant_id = $1::text and order_id = any($2::text[])`,
      this.saga.merchantId,
      orderIds,
    );
    await inParallel(rows, AT_ONCE, async ({ out_trade_no: outTradeNo }) => {
      const capture = await this.saga.mock.capture({ outTradeNo, callback: false });
      const trade = await this.saga.mock.trade(outTradeNo);
      this.notices.push(
        noticeFor(dialectA, this.account, { kind: 'payment', trade, capture }, randomUUID()),
      );
    });
  }

  /** Sends one callback about the payment with this index. */
  async send(index: number): Promise<void> {
    const notice = this.notices[index % this.notices.length];
    if (!notice) throw new Error('there is nothing to tell of');
    const { body, headers } = dialectA.buildCallback(this.account, notice, {}, new Date());
    await this.http.expect([200], this.url, body, headers);
  }

  close(): void {
    this.http.close();
  }

  private get url(): string {
    return `${this.saga.apis[0]?.url}/callbacks/mock-a`;
  }
}
