import http from 'node:http';
import https from 'node:https';

/** How a request ended that got no usable answer. `never_left`: surely no byte of it went out. */
export interface LostExchange {
  result: 'never_left' | 'unknown';
  reason: string;
  /** The channel itself seems sick. */
  trouble: boolean;
}

export interface HttpRequest {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body: Buffer;
  signal?: AbortSignal;
}

/** A bounded pool of connections of one client. */
export interface ConnectionPool {
  plain: http.Agent;
  secure: https.Agent;
}

/**
 * Idle connections are dropped before the five seconds after which Node's own and many other
 * servers drop theirs: a request written to a connection that is being closed ends as "unknown".
 */
const IDLE_SOCKET_MS = 4_000;

export function createPool(maxSockets: number): ConnectionPool {
  const options = {
    keepAlive: true,
    maxSockets,
    maxFreeSockets: maxSockets,
    timeout: IDLE_SOCKET_MS,
  };
  return { plain: new http.Agent(options), secure: new https.Agent(options) };
}

/** What reads the answer of an exchange: settles it, or says that it was lost. */
export type AnswerReader<Answer> = (
  response: http.IncomingMessage,
  outgoing: http.ClientRequest,
  settle: (answer: Answer) => void,
  lost: (reason: string, trouble: boolean) => void,
) => void;

/**
 * Sends one request, once, and hands its answer to the reader. The request's signal counts until
 * the reader settles. Never rejects for what a network or a server can do; follows no redirect (a
 * signed request must not wander to another host).
 */
export async function exchange<Answer>(
  pool: ConnectionPool,
  request: HttpRequest,
  readAnswer: AnswerReader<Answer>,
): Promise<Answer | LostExchange> {
  // Lets the pool hear of connections that the other end has closed meanwhile: a request written
  // to one of those would be "unknown" although nobody read it.
  await new Promise((resolve) => setImmediate(resolve));
  return new Promise<Answer | LostExchange>((resolve) => {
    const tls = request.url.startsWith('https:');
    // True from the first moment on a connection that was open already.
    let connected = false;
    let hasSocket = false;
    let settled = false;
    const settle = (answer: Answer | LostExchange) => {
      if (settled) return;
      settled = true;
      request.signal?.removeEventListener('abort', onAbort);
      resolve(answer);
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
        agent: tls ? pool.secure : pool.plain,
        headers: { ...request.headers, 'content-length': String(request.body.length) },
      });
    } catch (error) {
      return lost(`bad_request: ${(error as Error).message}`, false);
    }
    request.signal?.addEventListener('abort', onAbort, { once: true });

    const sent = outgoing;
    sent.on('socket', (socket) => {
      hasSocket = true;
      // Not `reusedSocket`: it is not set when the pool hands a freed connection straight on.
      if (!socket.connecting) connected = true;
      else socket.once(tls ? 'secureConnect' : 'connect', () => (connected = true));
    });
    sent.on('error', (error: NodeJS.ErrnoException) =>
      lost(`connection: ${error.code ?? error.message}`, true),
    );
    sent.on('response', (response) => readAnswer(response, sent, settle, lost));
    // The body goes out with `end`, which waits for the connection; nothing is written before.
    sent.end(request.body);
  });
}
