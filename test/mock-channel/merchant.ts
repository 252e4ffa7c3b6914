import { createHash, createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { encode } from 'iconv-lite';

/**
 * A merchant written from mock-channel/PROTOCOL.md alone, for the channel's own tests: it shares no
 * code with the channel, so a mistake in one does not hide in the other.
 */

export const KEY_A = 'merchant-a-key-current';
export const KEY_A_OLD = 'merchant-a-key-previous';
export const KEY_B = 'merchant-b-key-current';
export const KEY_B_OLD = 'merchant-b-key-previous';

export const ACCOUNTS = {
  a: { accountId: 'seller-1', appId: 'app-1', keys: { current: KEY_A, previous: KEY_A_OLD } },
  b: { accountId: 'mch-1', appId: 'wx-1', keys: { current: KEY_B, previous: KEY_B_OLD } },
};

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Whether the answer's own signature holds. */
  signed: boolean;
  // Answers of either dialect, looked into freely by the tests.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  json: any;
}

const hmac = (key: string, data: string | Buffer): string =>
  createHmac('sha256', key).update(data).digest('hex');

let numbers = 0;

/** A number of ours that no other test uses. */
export function aNumber(prefix = 'P'): string {
  numbers += 1;
  return `${prefix}${randomBytes(6).toString('hex')}${numbers}`;
}

export const inHalfAnHour = (): string => new Date(Date.now() + 1_800_000).toISOString();

/** One mock-a request; `spoil` changes the signed form before it goes out. */
export async function callA(
  url: string,
  method: string,
  fields: Record<string, string>,
  spoil: { key?: string; charset?: 'gbk'; set?: Record<string, string>; drop?: string[] } = {},
): Promise<Answer> {
  const all: Record<string, string> = {
    app_id: ACCOUNTS.a.appId,
    seller_id: ACCOUNTS.a.accountId,
    method,
    timestamp: String(Math.floor(Date.now() / 1000)),
    ...(spoil.charset ? { charset: spoil.charset } : {}),
    ...fields,
  };
  const toBytes = (text: string): Buffer => encode(text, spoil.charset ?? 'utf8');
  const signed = Buffer.concat(
    Object.keys(all)
      .sort()
      .flatMap((name, index) => [
        Buffer.from(`${index === 0 ? '' : '&'}${name}=`),
        toBytes(all[name] ?? ''),
      ]),
  );
  const sent: Record<string, string> = {
    ...all,
    sign_type: 'HMAC-SHA256',
    sign: hmac(spoil.key ?? KEY_A, signed),
    ...spoil.set,
  };
  for (const name of spoil.drop ?? []) delete sent[name];
  const body = Object.entries(sent)
    .map(([name, value]) => `${name}=${escapeBytes(toBytes(value))}`)
    .join('&');
  const response = await fetch(`${url}/gateway`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    body,
  });
  const text = await response.text();
  const signedAnswer = response.headers.get('x-mock-a-sign') === hmac(KEY_A, text);
  return answerOf(response, text, signedAnswer);
}

export function createA(
  url: string,
  outTradeNo: string,
  changes: Record<string, string> = {},
): Promise<Answer> {
  return callA(url, 'trade.create', {
    out_trade_no: outTradeNo,
    total_amount: '100.00',
    currency: 'CNY',
    subject: 'a thing',
    time_expire: inHalfAnHour(),
    ...changes,
  });
}

export function refundA(url: string, outTradeNo: string, outRefundNo: string, amount: string) {
  return callA(url, 'refund.create', {
    out_trade_no: outTradeNo,
    out_refund_no: outRefundNo,
    refund_amount: amount,
    currency: 'CNY',
  });
}

/** One mock-b request. */
export async function callB(
  url: string,
  method: 'GET' | 'POST',
  path: string,
  content?: unknown,
  spoil: { key?: string; serial?: string; timestamp?: string } = {},
): Promise<Answer> {
  const key = spoil.key ?? KEY_B;
  const body = content === undefined ? '' : JSON.stringify(content);
  const nonce = randomBytes(8).toString('hex');
  const timestamp = spoil.timestamp ?? String(Math.floor(Date.now() / 1000));
  const signature = hmac(key, `${method}\n${path}\n${timestamp}\n${nonce}\n${body}\n`);
  const serial = spoil.serial ?? serialOf(key);
  const response = await fetch(url + path, {
    method,
    headers: {
      'content-type': 'application/json',
      authorization:
        `MOCKPAY-HMAC-SHA256 mchid="${ACCOUNTS.b.accountId}",serial="${serial}",` +
        `timestamp="${timestamp}",nonce="${nonce}",signature="${signature}"`,
    },
    body: method === 'GET' ? undefined : body,
  });
  const text = await response.text();
  const header = (name: string): string => response.headers.get(`mockpay-${name}`) ?? '';
  const expected = hmac(KEY_B, `${header('timestamp')}\n${header('nonce')}\n${text}\n`);
  return answerOf(response, text, header('signature') === expected);
}

export function createB(
  url: string,
  outTradeNo: string,
  changes: Record<string, unknown> = {},
): Promise<Answer> {
  return callB(url, 'POST', '/v3/pay/transactions', {
    appid: ACCOUNTS.b.appId,
    mchid: ACCOUNTS.b.accountId,
    out_trade_no: outTradeNo,
    description: 'a thing',
    time_expire: inHalfAnHour(),
    amount: { total: 10_000, currency: 'CNY' },
    ...changes,
  });
}

export function queryB(url: string, outTradeNo: string): Promise<Answer> {
  return callB(url, 'GET', `/v3/pay/transactions/out-trade-no/${outTradeNo}?mchid=mch-1`);
}

export function serialOf(key: string): string {
  return createHash('sha256').update(`serial:${key}`).digest('hex').slice(0, 16);
}

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  at: number;
}

/** A server of the merchant that receives callbacks and answers as told. */
export class CallbackReceiver {
  readonly received: Received[] = [];
  /** The answer to the nth callback (from 1); default: acknowledged as the path's dialect wants. */
  answer: (count: number, path: string) => { status: number; contentType: string; body: string } = (
    _count,
    path,
  ) => acknowledgement(path);
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const path = request.url ?? '';
        this.received.push({
          path,
          headers: request.headers,
          body: Buffer.concat(chunks),
          at: Date.now(),
        });
        const { status, contentType, body } = this.answer(this.received.length, path);
        response.writeHead(status, { 'content-type': contentType }).end(body);
      });
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  reset(): void {
    this.received.length = 0;
    this.answer = (_count, path) => acknowledgement(path);
  }
}

export function acknowledgement(path: string) {
  return path.startsWith('/a')
    ? { status: 200, contentType: 'text/plain', body: 'success' }
    : { status: 200, contentType: 'application/json', body: '{"code":"SUCCESS","message":"OK"}' };
}

/** Waits for a condition, at most five seconds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 5000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`not within 5 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function escapeBytes(bytes: Buffer): string {
  return [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}

function answerOf(response: Response, text: string, signed: boolean): Answer {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, signed, json };
}
