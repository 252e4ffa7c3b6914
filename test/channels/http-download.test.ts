import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHttpClient } from '../../channels/http-client';
import { DownloadError, createHttpDownload } from '../../channels/http-download';
import type { DownloadExchange } from '../../channels/http-download';

const closers: (() => void)[] = [];
afterEach(() => closers.splice(0).forEach((close) => close()));

async function serve(answer: http.RequestListener): Promise<string> {
  const server = http.createServer(answer);
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const requestTo = (url: string, signal?: AbortSignal) =>
  ({ method: 'GET', url, headers: {}, body: Buffer.alloc(0), signal }) as const;

function bodyOf(exchange: DownloadExchange): AsyncIterable<Buffer> {
  if (exchange.result !== 'answer') throw new Error(JSON.stringify(exchange));
  return exchange.body;
}

async function sizeOf(body: AsyncIterable<Buffer>): Promise<number> {
  let size = 0;
  for await (const chunk of body) size += chunk.length;
  return size;
}

const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a download', () => {
  it('reads a body of any size', async () => {
    const url = await serve((_, response) => response.end(Buffer.alloc(5_000_000)));
    expect(await sizeOf(bodyOf(await createHttpDownload()(requestTo(url))))).toBe(5_000_000);
  });

  it('takes from the socket no more than is read', async () => {
    let sent = 0;
    const url = await serve((_, response) => {
      const send = () => {
        while (sent < 100_000_000) {
          sent += 100_000;
          if (!response.write(Buffer.alloc(100_000))) return void response.once('drain', send);
        }
        response.end();
      };
      send();
    });
    const chunks = bodyOf(await createHttpDownload()(requestTo(url)))[Symbol.asyncIterator]();
    await chunks.next();
    // Long enough for a loopback to send it all, were it taken.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(sent).toBeLessThan(20_000_000);
    await chunks.return?.();
  });

  it('is cut off when the connection is lost, and says so', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write(Buffer.alloc(500), () => response.destroy());
    });
    const error = await errorOf(sizeOf(bodyOf(await createHttpDownload()(requestTo(url)))));
    expect(error).toBeInstanceOf(DownloadError);
    expect(error).toMatchObject({ why: 'cut_off' });
  });

  it('ends when nothing comes for too long, but not when its reader is slow', async () => {
    const url = await serve((request, response) => {
      response.write('first');
      if (request.url === '/slow-reader') response.end('second');
    });
    const download = createHttpDownload({ idleMs: 100 });
    const error = await errorOf(sizeOf(bodyOf(await download(requestTo(url)))));
    expect(error).toMatchObject({ why: 'idle' });
    let size = 0;
    for await (const chunk of bodyOf(await download(requestTo(`${url}slow-reader`)))) {
      await new Promise((resolve) => setTimeout(resolve, 250));
      size += chunk.length;
    }
    expect(size).toBe('firstsecond'.length);
  });

  it('ends with its signal, before and after the answer', async () => {
    const url = await serve((_, response) => response.write('first'));
    const download = createHttpDownload();
    const ended = await download(requestTo(url, AbortSignal.abort()));
    expect(ended).toEqual({ result: 'never_left', reason: 'time_limit', trouble: false });
    const ending = new AbortController();
    const body = bodyOf(await download(requestTo(url, ending.signal)));
    const reading = errorOf(sizeOf(body));
    ending.abort();
    expect(await reading).toMatchObject({ why: 'aborted' });
  });

  it('never left when nobody listens, and follows no redirect', async () => {
    const url = await serve((_, response) => response.writeHead(302, { location: '/' }).end());
    expect(await createHttpDownload()(requestTo(url))).toMatchObject({ status: 302 });
    closers.splice(0).forEach((close) => close());
    expect(await createHttpDownload()(requestTo(url))).toMatchObject({
      result: 'never_left',
      trouble: true,
    });
  });

  it('takes few connections, and none of those of payments', async () => {
    let open = 0;
    let most = 0;
    const url = await serve((request, response) => {
      if (request.url === '/call') return void response.end('ok');
      most = Math.max(most, ++open);
      response.write('x');
      setTimeout(() => {
        open -= 1;
        response.end('x');
      }, 50);
    });
    const download = createHttpDownload();
    const call = createHttpClient({ maxSockets: 1 });
    const downloads = Array.from({ length: 6 }, async () =>
      sizeOf(bodyOf(await download(requestTo(url)))),
    );
    expect(await call(requestTo(`${url}call`))).toMatchObject({ result: 'answer' });
    expect(await Promise.all(downloads)).toEqual([2, 2, 2, 2, 2, 2]);
    expect(most).toBe(2);
  });
});
