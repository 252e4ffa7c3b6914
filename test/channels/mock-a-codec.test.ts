import { anAttempt } from '../../channels/conformance-harness';
import type { HttpClient, HttpRequest } from '../../channels/http-client';
import { createHttpDownload } from '../../channels/http-download';
import { createMockA } from '../../channels/mock-a';
import { dialectA } from '../../mock-channel/dialect-a';
import { aRow, anAccount } from './mock-callback-writer';

const account = anAccount('mock-a');

/** The adapter with the channel's own codec at the other end, without a network between them. */
function aDirectLine(change: (content: Record<string, unknown>) => object = (same) => same) {
  const requests: HttpRequest[] = [];
  const http: HttpClient = (request) => {
    requests.push(request);
    const incoming = { method: 'POST', path: '/gateway', headers: {}, body: request.body };
    const reading = dialectA.readRequest(account, incoming, new Date());
    if (!reading.ok || reading.call.operation !== 'create') throw new Error('not understood');
    const { outTradeNo, amountMinor, currency, subject } = reading.call.order;
    const trade = { outTradeNo, amountMinor, currency, subject, channelTradeNo: '4200' };
    const content = dialectA.tradeContent(
      account,
      { ...trade, status: 'open' } as Parameters<typeof dialectA.tradeContent>[1],
      null,
    );
    const text = dialectA.answerText(change(content) as Record<string, unknown>);
    const { headers, body } = dialectA.signAnswer(account, Buffer.from(text));
    return Promise.resolve({ result: 'answer', status: 200, headers, body });
  };
  const channel = createMockA(
    aRow(account),
    { current: account.keys.current },
    { http, download: createHttpDownload(), now: () => new Date() },
  );
  return { channel, requests };
}

describe('the codec of mock-a', () => {
  it('B43: carries each of 0.01 … 100.00 to the channel and back', async () => {
    const { channel } = aDirectLine();
    let mismatches = 0;
    for (let amountMinor = 1; amountMinor <= 10_000; amountMinor += 1) {
      const answer = await channel.createPayment(anAttempt({ amountMinor }));
      const fact = answer.outcome === 'answered' ? answer.fact : undefined;
      if (fact?.amountMinor !== amountMinor) mismatches += 1;
    }
    expect(mismatches).toBe(0);
  });

  it.each([
    ['JPY', 2_000, '2000'],
    ['KWD', 1_234, '1.234'],
    ['CNY', 1_999, '19.99'],
    ['CNY', 9_007_199_254_740_991, '90071992547409.91'],
  ])('B41: writes %s %d as %s', async (currency, amountMinor, text) => {
    const { channel, requests } = aDirectLine();
    const answer = await channel.createPayment(anAttempt({ currency, amountMinor }));
    expect(answer).toMatchObject({ fact: { amountMinor, currency } });
    expect(new URLSearchParams(String(requests[0]?.body)).get('total_amount')).toBe(text);
  });

  it.each<[string, (content: Record<string, unknown>) => object]>([
    ['another number', (content) => ({ ...content, out_trade_no: 'OTHER' })],
    ['an amount with too many decimals', (content) => ({ ...content, total_amount: '100.001' })],
    ['an amount as words', (content) => ({ ...content, total_amount: 'a hundred' })],
    ['no currency', (content) => ({ ...content, currency: undefined })],
    ['no status', (content) => ({ ...content, trade_status: undefined })],
    ['a refusal under a success status', () => ({ code: '40004', sub_code: 'TRADE_NOT_EXIST' })],
  ])('B17: an answer with %s proves nothing', async (_, change) => {
    const { channel } = aDirectLine(change);
    expect(await channel.createPayment(anAttempt())).toMatchObject({ outcome: 'unknown' });
  });

  it('B17: an unknown field does no harm', async () => {
    const { channel } = aDirectLine((content) => ({ ...content, brand_new: ['x'] }));
    expect(await channel.createPayment(anAttempt())).toMatchObject({ outcome: 'answered' });
  });
});
