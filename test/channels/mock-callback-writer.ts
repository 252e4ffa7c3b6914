import type { CallbackOrder, WrittenCallback } from '../../channels/conformance-harness';
import type { PaymentChannel } from '../../channels/contract';
import { createHttpClient } from '../../channels/http-client';
import { createHttpDownload } from '../../channels/http-download';
import { createMockA } from '../../channels/mock-a';
import { createMockB } from '../../channels/mock-b';
import type { ChannelRow } from '../../domain/channel-policy';
import { formatDecimal } from '../../domain/money';
import type { CallbackOverrides } from '../../mock-channel/control-types';
import type { Account, Content } from '../../mock-channel/dialect';
import { dialectA } from '../../mock-channel/dialect-a';
import { dialectB } from '../../mock-channel/dialect-b';

export type MockDialect = 'mock-a' | 'mock-b';

/** The merchant's account at one dialect, and the channel row and adapter that go with it. */
export function anAccount(dialect: MockDialect, name = 'ours'): Account {
  return {
    dialect,
    accountId: `${name}-account`,
    appId: `${name}-app`,
    keys: { current: `${name} current key`, previous: `${name} previous key` },
  };
}

export function aRow(account: Account, overrides: Partial<ChannelRow> = {}): ChannelRow {
  return {
    channel: account.dialect,
    adapter: account.dialect,
    accountId: account.accountId,
    appId: account.appId,
    gatewayUrl: 'http://127.0.0.1:1',
    timeZone: 'Asia/Shanghai',
    payEnabled: true,
    refundEnabled: true,
    secretRefs: { current: 'env:CURRENT', previous: 'env:PREVIOUS' },
    policy: {},
    ...overrides,
  };
}

/** The bare adapter for an account, bound to a server's address. */
export function anAdapter(
  account: Account,
  gatewayUrl = 'http://127.0.0.1:1',
  overrides: Partial<ChannelRow> = {},
): PaymentChannel {
  const create = account.dialect === 'mock-a' ? createMockA : createMockB;
  const secrets: Record<string, string> = { current: account.keys.current };
  if (account.keys.previous !== null) secrets.previous = account.keys.previous;
  return create(aRow(account, { gatewayUrl, ...overrides }), secrets, {
    http: createHttpClient({ maxSockets: 10 }),
    download: createHttpDownload({ idleMs: 1_000 }),
    now: () => new Date(),
  });
}

const WORDS: Record<MockDialect, Record<'payment' | 'refund', Record<string, string>>> = {
  'mock-a': {
    payment: { pending: 'WAIT_BUYER_PAY', paid: 'TRADE_SUCCESS', closed: 'TRADE_CLOSED' },
    refund: { processing: 'REFUND_PROCESSING', succeeded: 'REFUND_SUCCESS' },
  },
  'mock-b': {
    payment: { pending: 'NOTPAY', paid: 'SUCCESS', closed: 'CLOSED' },
    refund: { processing: 'PROCESSING', succeeded: 'SUCCESS' },
  },
};

/** Writes a callback with the mock channel's own code, so reader and writer share nothing. */
export function writeMockCallback(
  account: Account,
  order: CallbackOrder,
  overrides: CallbackOverrides = {},
): WrittenCallback {
  const { dialect } = account;
  const kind = order.outRefundNo === undefined ? 'payment' : 'refund';
  const word = order.frozen ? 'FROZEN' : (WORDS[dialect][kind][order.state] ?? order.state);
  const content = dialect === 'mock-a' ? contentA(account, order) : contentB(account, order);
  const statusField = {
    'mock-a': [`trade_status`, `refund_status`],
    'mock-b': [`trade_state`, `status`],
  }[dialect][kind === 'payment' ? 0 : 1] as string;
  const format = dialect === 'mock-a' ? dialectA : dialectB;
  const message = format.buildCallback(
    account,
    {
      noticeId: 'notice-1',
      dialect,
      outTradeNo: order.outTradeNo,
      outRefundNo: order.outRefundNo ?? null,
      subject: '测试订单',
      kind,
      word,
      currency: order.currency,
      content: format.setWord(content, kind, word),
    },
    {
      timestamp: order.timestamp,
      key: order.key,
      signature: order.signature,
      signType: order.signatureType,
      ...(order.withoutStatus && { fields: { [statusField]: null } }),
      ...overrides,
    },
    new Date(),
  );
  return { rawBody: message.body, headers: message.headers };
}

function contentA(account: Account, order: CallbackOrder): Content {
  const common = {
    app_id: account.appId,
    seller_id: account.accountId,
    out_trade_no: order.outTradeNo,
    trade_no: order.channelTradeNo,
    currency: order.currency,
  };
  const amount = formatDecimal(order.amountMinor, order.currency);
  if (order.outRefundNo === undefined) {
    const paid = { payer_total: amount, gmt_payment: '2026-05-01T07:59:00.000Z' };
    return { ...common, total_amount: amount, subject: '测试订单', ...paid };
  }
  const refund = { out_refund_no: order.outRefundNo, refund_no: '5000000000000000000000000001' };
  return { ...common, ...refund, refund_amount: amount };
}

function contentB(account: Account, order: CallbackOrder): Content {
  const numbers = {
    mchid: account.accountId,
    out_trade_no: order.outTradeNo,
    transaction_id: order.channelTradeNo,
  };
  const { amountMinor, currency } = order;
  if (order.outRefundNo === undefined) {
    return {
      ...numbers,
      appid: account.appId,
      description: '测试订单',
      amount: { total: amountMinor, currency, payer_total: amountMinor },
      success_time: '2026-05-01T07:59:00.000Z',
    };
  }
  return {
    ...numbers,
    refund_id: '5000000000000000000000000001',
    out_refund_no: order.outRefundNo,
    amount: { refund: amountMinor, total: amountMinor, currency },
  };
}

/** A right payment callback of now. */
export function aCallbackOrder(overrides: Partial<CallbackOrder> = {}): CallbackOrder {
  return {
    outTradeNo: 'OUT0000000000000000000000001',
    channelTradeNo: '4200000000000000000000000001',
    amountMinor: 10_000,
    currency: 'CNY',
    state: 'paid',
    timestamp: String(Math.floor(Date.now() / 1_000)),
    ...overrides,
  };
}
