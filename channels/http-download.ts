import type http from 'node:http';
import { MAX_ANSWER_BYTES } from './http-client';
import type { HttpExchange } from './http-client';
import { createPool, exchange } from './http-exchange';
import type { HttpRequest, LostExchange } from './http-exchange';

/** Sends one request; the answer's body is still to be read. */
export type HttpDownload = (request: HttpRequest) => Promise<DownloadExchange>;

export type DownloadExchange =
  | {
      result: 'answer';
      status: number;
      headers: http.IncomingHttpHeaders;
      /**
       * The body as it comes, read at the reader's pace and once.
       * @throws DownloadError when it does not come whole
       */
      body: AsyncIterable<Buffer>;
    }
  | LostExchange;

/** A body that did not come whole. `aborted`: we ended it ourselves. */
export class DownloadError extends Error {
  override name = 'DownloadError';
  constructor(
    readonly why: 'cut_off' | 'idle' | 'aborted',
    message: string,
  ) {
    super(message);
  }
}

/** A channel that sends nothing for this long while we wait has gone away. */
const IDLE_MS = 30_000;
/** Bills of one channel downloaded at a time: its own few connections, never those of payments. */
const MAX_DOWNLOADS = 2;

/**
 * An HTTP client for big bodies, with a bounded pool of its own. Whatever its size, a body takes
 * the memory of a chunk: it is read from the socket only as fast as it is consumed. The request's
 * signal ends the download too.
 */
export function createHttpDownload(options: { idleMs?: number } = {}): HttpDownload {
  const pool = createPool(MAX_DOWNLOADS);
  const idleMs = options.idleMs ?? IDLE_MS;
  return (request) =>
    exchange<DownloadExchange>(pool, request, (response, _outgoing, settle) => {
      // The reader hears of it; before there is one, an error must not end the process.
      response.on('error', () => undefined);
      settle({
        result: 'answer',
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: chunksOf(response, idleMs, request.signal),
      });
    });
}

async function* chunksOf(
  response: http.IncomingMessage,
  idleMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  let ended: DownloadError | undefined;
  let bytes = 0;
  const end = (error: DownloadError) => {
    ended ??= error;
    response.destroy();
  };
  const onAbort = () => end(new DownloadError('aborted', 'the download was ended'));
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    for (;;) {
      // Only the waiting counts: a slow reader is no idle channel.
      const idle = setTimeout(() => {
        end(new DownloadError('idle', `nothing came for ${idleMs} ms after ${bytes} bytes`));
      }, idleMs);
      let next: IteratorResult<Buffer>;
      try {
        next = await chunks.next();
      } catch (error) {
        const message = `the connection was lost after ${bytes} bytes: ${(error as Error).message}`;
        throw ended ?? new DownloadError('cut_off', message);
      } finally {
        clearTimeout(idle);
      }
      if (ended) throw ended;
      if (next.done) break;
      bytes += next.value.length;
      yield next.value;
    }
    if (!response.complete) {
      throw new DownloadError('cut_off', `the connection was lost after ${bytes} bytes`);
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
    response.destroy();
  }
}

/** Reads a body that is an answer rather than a file, at most 64 KiB of it, as any call's answer. */
export async function readSmallBody(
  download: Extract<DownloadExchange, { result: 'answer' }>,
): Promise<HttpExchange> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of download.body) {
      size += chunk.length;
      if (size > MAX_ANSWER_BYTES) {
        return { result: 'unknown', reason: 'answer_too_big', trouble: false };
      }
      chunks.push(chunk);
    }
  } catch (error) {
    if (!(error instanceof DownloadError)) throw error;
    const reason = error.why === 'aborted' ? 'time_limit' : 'answer_cut_off';
    return { result: 'unknown', reason, trouble: true };
  }
  const { status, headers } = download;
  return { result: 'answer', status, headers, body: Buffer.concat(chunks) };
}
