import http from 'node:http';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { createHttpClient } from '../../channels/http-client';
import type { HttpRequest } from '../../channels/http-client';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

async function listen(server: net.Server): Promise<number> {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

/** A server that treats each connection as told, below HTTP. */
const listenRaw = (onSocket: (socket: net.Socket) => void) =>
  listen(net.createServer((socket) => onSocket(socket.on('error', () => undefined))));

/** Reads what comes, then writes this text and ends the connection. */
const answerWith = (text: string) => (socket: net.Socket) => {
  socket.once('data', () => socket.end(text));
};

function aRequest(port: number, overrides: Partial<HttpRequest> = {}): HttpRequest {
  const body = Buffer.from('x');
  return { method: 'POST', url: `http://127.0.0.1:${port}/`, headers: {}, body, ...overrides };
}

const send = createHttpClient({ maxSockets: 2 });

describe('one HTTP exchange', () => {
  it('never left: nobody listens', async () => {
    const port = await listenRaw(() => undefined);
    await closers.pop()?.();
    expect(await send(aRequest(port))).toEqual({
      result: 'never_left',
      reason: 'connection: ECONNREFUSED',
      trouble: true,
    });
  });

  it('never left: the name has no address', async () => {
    const exchange = await send(aRequest(1, { url: 'http://no-such-host.invalid/' }));
    expect(exchange).toMatchObject({ result: 'never_left', trouble: true });
  });

  it('never left: the time limit had passed before', async () => {
    const arrived = jest.fn();
    const port = await listenRaw(arrived);
    const exchange = await send(aRequest(port, { signal: AbortSignal.abort() }));
    expect(exchange).toMatchObject({ result: 'never_left', reason: 'time_limit' });
    expect(arrived).not.toHaveBeenCalled();
  });

  it('never left: the time limit passed while it waited for a connection of the pool', async () => {
    const bodies: string[] = [];
    const port = await listenRaw((socket) =>
      socket.on('data', (data) => bodies.push(String(data))),
    );
    const single = createHttpClient({ maxSockets: 1 });
    const first = new AbortController();
    const inFlight = single(aRequest(port, { signal: first.signal, body: Buffer.from('first') }));
    const signal = AbortSignal.timeout(50);
    const second = await single(aRequest(port, { signal, body: Buffer.from('second') }));
    expect(second).toEqual({ result: 'never_left', reason: 'time_limit', trouble: false });
    first.abort();
    expect(await inFlight).toMatchObject({ result: 'unknown', reason: 'time_limit' });
    expect(bodies.join('')).not.toContain('second');
  });

  it('never left, but trouble: the connection is never completed', async () => {
    const port = await listenRaw(() => undefined);
    const signal = AbortSignal.timeout(100);
    const exchange = await send(aRequest(port, { url: `https://127.0.0.1:${port}/`, signal }));
    expect(exchange).toEqual({ result: 'never_left', reason: 'time_limit', trouble: true });
  });

  it('never left: the other end does not speak TLS', async () => {
    const port = await listenRaw(answerWith('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const exchange = await send(aRequest(port, { url: `https://127.0.0.1:${port}/` }));
    expect(exchange).toMatchObject({ result: 'never_left', trouble: true });
  });

  it.each<[string, (socket: net.Socket) => void]>([
    ['reset on arrival', (socket) => socket.once('data', () => socket.resetAndDestroy())],
    ['closed without an answer', (socket) => socket.once('data', () => socket.end())],
    ['cut off in the headers', answerWith('HTTP/1.1 200 OK\r\nContent-Le')],
    ['cut off in the body', answerWith('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1234')],
    ['no HTTP at all', answerWith('220 mail.example ESMTP\r\n')],
  ])('unknown, and trouble: %s', async (_, onSocket) => {
    const port = await listenRaw(onSocket);
    expect(await send(aRequest(port))).toMatchObject({ result: 'unknown', trouble: true });
  });

  it('unknown, and trouble: no answer within the time limit', async () => {
    const port = await listenRaw(() => undefined);
    const exchange = await send(aRequest(port, { signal: AbortSignal.timeout(50) }));
    expect(exchange).toEqual({ result: 'unknown', reason: 'time_limit', trouble: true });
  });

  it('unknown: a kept connection is lost under the second request', async () => {
    let requests = 0;
    const port = await listenRaw((socket) =>
      socket.on('data', () => {
        requests += 1;
        if (requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        else socket.resetAndDestroy();
      }),
    );
    expect(await send(aRequest(port))).toMatchObject({ result: 'answer', status: 200 });
    expect(await send(aRequest(port))).toMatchObject({ result: 'unknown' });
    expect(requests).toBe(2);
  });

  it('unknown: a call that was handed the connection of the one before it is lost', async () => {
    let requests = 0;
    const port = await listenRaw((socket) =>
      socket.on('data', () => {
        requests += 1;
        if (requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        else socket.resetAndDestroy();
      }),
    );
    const single = createHttpClient({ maxSockets: 1 });
    const [first, second] = await Promise.all([single(aRequest(port)), single(aRequest(port))]);
    expect(first).toMatchObject({ result: 'answer' });
    expect(second).toMatchObject({ result: 'unknown', trouble: true });
    expect(requests).toBe(2);
  });

  it('reads no more than 64 KiB of an answer', async () => {
    const port = await listen(
      http.createServer((_, response) => response.end(Buffer.alloc(65_537))),
    );
    expect(await send(aRequest(port))).toEqual({
      result: 'unknown',
      reason: 'answer_too_big',
      trouble: false,
    });
    const fits = await listen(
      http.createServer((_, response) => response.end(Buffer.alloc(65_536))),
    );
    expect(await send(aRequest(fits))).toMatchObject({ result: 'answer' });
  });

  it('follows no redirect', async () => {
    const paths: string[] = [];
    const server = http.createServer((request, response) => {
      paths.push(request.url ?? '');
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    expect(await send(aRequest(await listen(server)))).toMatchObject({ status: 307 });
    expect(paths).toEqual(['/']);
  });

  it('keeps to its bound of connections', async () => {
    let open = 0;
    let most = 0;
    const server = http.createServer((_, response) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open -= 1;
        response.end('ok');
      }, 10);
    });
    const port = await listen(server);
    const exchanges = await Promise.all(Array.from({ length: 10 }, () => send(aRequest(port))));
    expect(exchanges.every(({ result }) => result === 'answer')).toBe(true);
    expect(most).toBe(2);
  });
});
