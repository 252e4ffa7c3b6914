import http from 'node:http';
import https from 'node:https';

/**
 * One HTTP exchange with a channel, told apart by what may have happened at the other end.
 *
 * node:http instead of the built-in fetch, because the difference between "surely never left" and
 * "unknown" decides about money, and only the socket knows it: with node:http the request is
 * written after the `connect` (TLS: `secureConnect`) event of the very socket it uses, so an error
 * or an abort before that event proves that no byte of the request left. fetch reports one
 * `TypeError: fetch failed` for both sides of that line, has no way to bound its connection pool
 * without another package, and may put a request on a connection again by itself.
 */
export type HttpExchange =
  | { result: 'answer'; status: number; headers: http.IncomingHttpHeaders; body: Buffer }
  | { result: 'never_left'; reason: string; trouble: boolean }
  | { result: 'unknown'; reason: string; trouble: boolean };

export interface HttpRequest {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body: Buffer;
  signal?: AbortSignal;
}

/** Sends one request; never throws for what a network or a server can do. */
export type HttpClient = (request: HttpRequest) => Promise<HttpExchange>;

/** No answer of a payment call is near this size; a bigger one is an error page or an attack. */
const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * Idle connections are dropped before the five seconds after which Node's own and many other
 * servers drop theirs: a request written to a connection that is being closed ends as "unknown".
 */
const IDLE_SOCKET_MS = 4_000;

/**
 * An HTTP client with its own bounded pool, so one channel never waits for the connections of
 * another. It follows no redirects (a signed request must not wander to another host), sends each
 * request once, and reads at most 64 KiB of an answer.
 */
export function createHttpClient(options: { maxSockets: number }): HttpClient {
  const agentOptions = {
    keepAlive: true,
    maxSockets: options.maxSockets,
    maxFreeSockets: options.maxSockets,
    timeout: IDLE_SOCKET_MS,
  };
  const plain = new http.Agent(agentOptions);
  const secure = new https.Agent(agentOptions);

  return async (request) => {
    // Lets the pool hear of connections that the other end has closed meanwhile: a request written
    // to one of those would be "unknown" although nobody read it.
    await new Promise((resolve) => setImmediate(resolve));
    return new Promise<HttpExchange>((resolve) => {
      const tls = request.url.startsWith('https:');
      // True from the first moment on a connection that was open already.
      let connected = false;
      let hasSocket = false;
      let settled = false;
      const settle = (exchange: HttpExchange) => {
        if (settled) return;
        settled = true;
        request.signal?.removeEventListener('abort', onAbort);
        resolve(exchange);
      };
      const lost = (reason: string, trouble: boolean) =>
        settle({ result: connected ? 'unknown' : 'never_left', reason, trouble });
      // Our own time limit. A call still waiting for a place in the pool says nothing about the
      // channel; one that is connecting or waiting for its answer does.
      const onAbort = () => {
        lost('time_limit', hasSocket);
        outgoing?.destroy();
      };

      let outgoing: http.ClientRequest | undefined;
      if (request.signal?.aborted) return lost('time_limit', false);
      try {
        outgoing = (tls ? https : http).request(request.url, {
          method: request.method,
          agent: tls ? secure : plain,
          headers: { ...request.headers, 'content-length': String(request.body.length) },
        });
      } catch (error) {
        return lost(`bad_request: ${(error as Error).message}`, false);
      }
      request.signal?.addEventListener('abort', onAbort, { once: true });

      outgoing.on('socket', (socket) => {
        hasSocket = true;
        // Not `reusedSocket`: it is not set when the pool hands a freed connection straight on.
        if (!socket.connecting) connected = true;
        else socket.once(tls ? 'secureConnect' : 'connect', () => (connected = true));
      });
      outgoing.on('error', (error: NodeJS.ErrnoException) =>
        lost(`connection: ${error.code ?? error.message}`, true),
      );
      outgoing.on('response', (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_ANSWER_BYTES) {
            lost('answer_too_big', false);
            outgoing?.destroy();
          } else chunks.push(chunk);
        });
        response.on('error', () => lost('answer_cut_off', true));
        response.on('close', () => {
          if (!response.complete) return lost('answer_cut_off', true);
          settle({
            result: 'answer',
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          });
        });
      });
      // The body goes out with `end`, which waits for the connection; nothing is written before.
      outgoing.end(request.body);
    });
  };
}
