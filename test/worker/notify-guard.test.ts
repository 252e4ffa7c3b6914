import type { LookupAddress } from 'node:dns';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMerchantPost, isPublicAddress } from '../../worker/notify-guard';
import type { PostOptions } from '../../worker/notify-guard';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

describe('calls to addresses that a merchant may name', () => {
  let server: Server;
  let port: number;
  let connections = 0;
  let hosts: (string | undefined)[] = [];
  let answer: Answer;
  beforeAll(async () => {
    server = createServer((request, response) => {
      hosts.push(request.headers.host);
      request.resume().on('end', () => answer(request, response));
    });
    server.on('connection', () => connections++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  beforeEach(() => {
    [connections, hosts] = [0, []];
    answer = (_request, response) => void response.writeHead(204).end();
  });

  const post = (url: string, said: Partial<PostOptions> = {}, timeoutMs = 1_000) =>
    createMerchantPost({ privateAllowed: [], ...said })(new URL(url), {
      headers: { 'content-type': 'application/json' },
      body: '{}',
      timeoutMs,
    });

  /** A name server that answers each question with the next of these. */
  const nameServer = (...answers: string[][]) => {
    const asked: string[] = [];
    const resolve: PostOptions['resolve'] = (hostname, _options, callback) => {
      const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? [];
      asked.push(hostname);
      callback(
        null,
        addresses.map((address): LookupAddress => ({
          address,
          family: address.includes(':') ? 6 : 4,
        })),
      );
    };
    return { asked, resolve };
  };

  it.each([
    'http://127.0.0.1/x',
    'http://127.9.9.9:8080/x',
    'http://[::1]/x',
    'http://[::7f00:1]/x',
    'http://[::ffff:127.0.0.1]/x',
    'http://[64:ff9b::a9fe:a9fe]/x',
    'http://[64:ff9b:1::1]/x',
    'http://[2001:0:1::1]/x',
    'http://10.1.2.3/x',
    'http://172.31.0.1/x',
    'http://192.168.1.1/x',
    'http://169.254.169.254/latest/meta-data',
    'http://100.64.0.1/x',
    'http://0.0.0.0/x',
    'http://[fd00::1]/x',
    'http://[fe80::1]/x',
    'http://localhost/x',
    'http://2130706433/x',
    'ftp://example.com/x',
    'file:///etc/passwd',
  ])('refuses %s', async (address) => {
    await expect(post(address)).rejects.toMatchObject({ name: 'AddressRefused' });
  });

  it.each(['93.184.216.34', '2606:2800:220:1::1', '8.8.8.8'])(
    'has nothing against %s',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  it('allows a private host that the configuration names, and only that', async () => {
    const url = `http://127.0.0.1:${port}/x`;
    expect(await post(url, { privateAllowed: ['127.0.0.1'] })).toMatchObject({ status: 204 });
    expect(await post(url, { privateAllowed: [`127.0.0.1:${port}`] })).toMatchObject({
      status: 204,
    });
    await expect(post(url, { privateAllowed: ['127.0.0.1:9'] })).rejects.toThrow(
      '127.0.0.1 is not a public address',
    );
  });

  it('refuses a name of which one address is private, before any connection', async () => {
    const { resolve } = nameServer(['93.184.216.34', '127.0.0.1']);
    await expect(post(`http://shop.example:${port}/x`, { resolve })).rejects.toThrow(
      'shop.example stands for 127.0.0.1, which is not a public address',
    );
    expect(connections).toBe(0);
  });

  it('connects to the very address it checked: a name that turns private a moment later gains nothing', async () => {
    const { resolve, asked } = nameServer(['127.0.0.1'], ['127.0.0.2']);
    const isPublic = (address: string) => address === '127.0.0.1';
    const send = () => post(`http://shop.example:${port}/x`, { resolve, isPublic });
    expect(await send()).toMatchObject({ status: 204 });
    // One question per connection: there is no second answer that could differ from the checked one.
    expect(asked).toEqual(['shop.example']);
    await expect(send()).rejects.toMatchObject({ name: 'AddressRefused' });
    expect(connections).toBe(1);
  });

  it('names the host that the merchant gave', async () => {
    const { resolve } = nameServer(['127.0.0.1']);
    await post(`http://shop.example:${port}/x`, { resolve, privateAllowed: ['shop.example'] });
    expect(hosts).toEqual([`shop.example:${port}`]);
  });

  it('follows no redirect', async () => {
    answer = (_request, response) =>
      void response.writeHead(307, { location: `http://127.0.0.1:${port}/inside` }).end();
    const { status } = await post(`http://127.0.0.1:${port}/x`, { privateAllowed: ['127.0.0.1'] });
    expect([status, hosts.length]).toEqual([307, 1]);
  });

  it('reads Retry-After and no more of a body than its beginning', async () => {
    answer = (_request, response) => {
      response.writeHead(503, { 'retry-after': '7' });
      const timer = setInterval(() => response.write('x'.repeat(10_000)), 5);
      response.on('close', () => clearInterval(timer));
    };
    const said = await post(`http://127.0.0.1:${port}/x`, { privateAllowed: ['127.0.0.1'] });
    expect(said).toMatchObject({ status: 503, retryAfterMs: 7_000 });
    expect(said.body.length).toBe(4_096);
  });

  it('ends a call that takes too long', async () => {
    answer = () => undefined;
    await expect(
      post(`http://127.0.0.1:${port}/x`, { privateAllowed: ['127.0.0.1'] }, 100),
    ).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('sends again at once when an idle connection was closed under it', async () => {
    const call = createMerchantPost({ privateAllowed: ['127.0.0.1'] });
    const send = () =>
      call(new URL(`http://127.0.0.1:${port}/x`), { headers: {}, body: '{}', timeoutMs: 1_000 });
    await send();
    let isFirst = true;
    answer = (request, response) => {
      if (!isFirst) return void response.writeHead(204).end();
      isFirst = false;
      request.socket.destroy();
    };
    expect(await send()).toMatchObject({ status: 204 });
    expect([connections, hosts.length]).toEqual([2, 3]);
  });
});
