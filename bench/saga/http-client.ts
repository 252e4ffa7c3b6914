import { Agent, request } from 'node:http';

export interface HttpAnswer {
  status: number;
  body: string;
}

/** A call that takes longer is a failure of the system under test, not of the load. */
const TIMEOUT_MS = 30_000;

/**
 * A client for load: kept connections and no more machinery than Node's own, whose cost is small
 * beside what it measures.
 */
export class HttpClient {
  private readonly agent: Agent;

  /** @param connectionsMax open at most; further calls wait for one */
  constructor(connectionsMax = 1_024) {
    this.agent = new Agent({ keepAlive: true, maxSockets: connectionsMax, scheduling: 'lifo' });
  }

  /** Resolves with any answer; rejects when there is none. */
  post(
    url: string,
    body: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        url,
        {
          method: 'POST',
          agent: this.agent,
          timeout: TIMEOUT_MS,
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.once('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
          response.once('error', reject);
        },
      );
      sent.once('timeout', () => sent.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
      sent.once('error', reject);
      sent.end(body);
    });
  }

  /** A call that must be answered with one of these. @throws Error with the status and the body */
  async expect(
    statuses: readonly number[],
    ...call: Parameters<HttpClient['post']>
  ): Promise<HttpAnswer> {
    const answer = await this.post(...call);
    if (statuses.includes(answer.status)) return answer;
    // The code of a problem names the kind; ids in the rest would make every failure a kind of its own.
    const code = /"code":"([a-z_]+)"/.exec(answer.body)?.[1];
    throw new Error(`answered ${answer.status}${code === undefined ? '' : ` ${code}`}`);
  }

  close(): void {
    this.agent.destroy();
  }
}
