import type http from 'node:http';
import { createPool, exchange } from './http-exchange';
import type { HttpRequest, LostExchange } from './http-exchange';

export type { HttpRequest } from './http-exchange';

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
  | LostExchange;

/** Sends one request; never throws for what a network or a server can do. */
export type HttpClient = (request: HttpRequest) => Promise<HttpExchange>;

/** No answer of a payment call is near this size; a bigger one is an error page or an attack. */
export const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * An HTTP client with its own bounded pool, so one channel never waits for the connections of
 * another. It follows no redirects, sends each request once, and reads at most 64 KiB of an answer.
 */
export function createHttpClient(options: { maxSockets: number }): HttpClient {
  const pool = createPool(options.maxSockets);
  return (request) =>
    exchange<HttpExchange>(pool, request, (response, outgoing, settle, lost) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_ANSWER_BYTES) {
          lost('answer_too_big', false);
          outgoing.destroy();
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
}
