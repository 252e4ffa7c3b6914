import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as SecureAgent, request as httpsRequest } from 'node:https';
import type { WireMessage } from './dialect';

export interface PostAnswer {
  /** Null: no answer came; `error` says why. */
  httpStatus: number | null;
  contentType: string | null;
  body: string;
  error: string | null;
}

/** More than any acknowledgement needs; the rest of a longer answer is not kept. */
const MAX_ANSWER_CHARACTERS = 4096;

/** Posts exactly the given bytes and headers over kept connections. Never throws. */
export class PostClient {
  private readonly plain = new Agent({ keepAlive: true, maxSockets: 256 });
  private readonly secure = new SecureAgent({ keepAlive: true, maxSockets: 256 });

  async post(url: string, message: WireMessage, timeoutMs: number): Promise<PostAnswer> {
    try {
      return await this.send(new URL(url), message, timeoutMs, true);
    } catch (error) {
      const reason = error instanceof Error ? error.message || error.name : String(error);
      return { httpStatus: null, contentType: null, body: '', error: reason };
    }
  }

  close(): void {
    this.plain.destroy();
    this.secure.destroy();
  }

  private send(
    url: URL,
    message: WireMessage,
    timeoutMs: number,
    mayRepeat: boolean,
  ): Promise<PostAnswer> {
    const secure = url.protocol === 'https:';
    return new Promise((resolve, reject) => {
      const request = (secure ? httpsRequest : httpRequest)(url, {
        method: 'POST',
        agent: secure ? this.secure : this.plain,
        headers: { ...message.headers, 'content-length': message.body.length },
        signal: AbortSignal.timeout(timeoutMs),
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        // The server closed a kept connection just as it was used again: nobody read the request,
        // and a resend counted for that would be a false one.
        if (mayRepeat && request.reusedSocket && error.code === 'ECONNRESET') {
          this.send(url, message, timeoutMs, false).then(resolve, reject);
        } else reject(error);
      });
      request.on('response', (response: IncomingMessage) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          if (body.length < MAX_ANSWER_CHARACTERS) body += chunk;
        });
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            httpStatus: response.statusCode ?? null,
            contentType: response.headers['content-type'] ?? null,
            body: body.slice(0, MAX_ANSWER_CHARACTERS),
            error: null,
          }),
        );
      });
      request.end(message.body);
    });
  }
}
