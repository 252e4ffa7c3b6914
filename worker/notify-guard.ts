import { lookup } from 'node:dns';
import type { LookupAddress, LookupAllOptions } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { BlockList, isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { readRetryAfter } from '../channels/http-answer';
import type { MerchantAnswer, PostToMerchant } from '../activities/deps';

/**
 * Addresses inside our own network, which a merchant must not make us call. Source: IANA IPv4 and
 * IPv6 Special-Purpose Address Registries.
 */
const PRIVATE = new BlockList();
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  PRIVATE.addSubnet(net, bits, 'ipv4');
}
for (const [net, bits] of [
  // Also `::1`, and IPv4 written as IPv6 without a word that says so.
  ['::', 96],
  // IPv4 translated into IPv6 (NAT64, 6to4, Teredo) would be another way to a private address.
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2001::', 32],
  ['2002::', 16],
  ['100::', 64],
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  PRIVATE.addSubnet(net, bits, 'ipv6');
}

/** A merchant's address that is refused; the message says which and why. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefused';
}

type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface PostOptions {
  /** Hosts (and `host:port`s) that may be called although they are private addresses. */
  privateAllowed: readonly string[];
  /** How names are resolved; the system's way unless a test says otherwise. */
  resolve?: Resolve;
  /** Which addresses may be called; those outside our own network unless a test says otherwise. */
  isPublic?: (address: string) => boolean;
}

/** Sockets to one merchant at most; more deliveries to it wait, and no other merchant waits with them. */
const SOCKETS_PER_HOST_MAX = 32;
/** Idle sockets are kept shorter than servers usually keep theirs, so that few calls meet a closed one. */
const SOCKET_IDLE_MS = 2_000;

/**
 * How a merchant's server is called. The name is resolved once, for this very connection, every
 * address it stands for is checked, and the socket is opened to one of the addresses checked: a name
 * that answers differently a moment later changes nothing. Redirects are not followed.
 */
export function createMerchantPost(options: PostOptions): PostToMerchant {
  const agentOptions = {
    keepAlive: true,
    maxSockets: SOCKETS_PER_HOST_MAX,
    timeout: SOCKET_IDLE_MS,
  };
  const agents = { http: new http.Agent(agentOptions), https: new https.Agent(agentOptions) };
  const resolve = options.resolve ?? lookup;
  const requirePublic = requiring(options.isPublic ?? isPublicAddress);
  const guarded = guardedLookup(resolve, requirePublic);

  return async (url, request) => {
    if (url.protocol !== 'https:' && url.protocol !== 'http:')
      throw new AddressRefusedError(`${url.protocol} is no web address`);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const isAllowed = isNamed(url, options.privateAllowed);
    // No lookup happens for an address in figures.
    if (!isAllowed && isIP(host) !== 0) requirePublic(host, host);
    const signal = AbortSignal.any([
      AbortSignal.timeout(request.timeoutMs),
      ...(request.signal ? [request.signal] : []),
    ]);
    const send = () =>
      exchange(url, request, {
        agent: url.protocol === 'https:' ? agents.https : agents.http,
        signal,
        ...(isAllowed ? { lookup: resolve as LookupFunction } : { lookup: guarded }),
      });
    try {
      return await send();
    } catch (error) {
      // The merchant closed an idle socket just as we used it: nothing was read of this request, and
      // what is sent twice carries the same id.
      if (!(error instanceof ReusedSocketError)) throw error;
      return await send();
    }
  };
}

class ReusedSocketError extends Error {}

function isNamed(url: URL, allowed: readonly string[]): boolean {
  return allowed.includes(url.hostname) || allowed.includes(url.host);
}

/** Whether an address in figures is outside our own network. */
export function isPublicAddress(address: string): boolean {
  return (
    isIP(address) !== 0 &&
    // Mapped IPv4 too; the block list itself would take every IPv4 address for a mapped one.
    !/^::ffff:/i.test(address) &&
    !PRIVATE.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  );
}

/** @throws AddressRefusedError when it is inside our own network */
type RequirePublic = (address: string, host: string) => void;

function requiring(isPublic: (address: string) => boolean): RequirePublic {
  return (address, host) => {
    if (isPublic(address)) return;
    throw new AddressRefusedError(
      address === host
        ? `${host} is not a public address`
        : `${host} stands for ${address}, which is not a public address`,
    );
  };
}

function guardedLookup(resolve: Resolve, requirePublic: RequirePublic): LookupFunction {
  return (hostname, lookupOptions, callback) => {
    resolve(hostname, { ...lookupOptions, all: true } as LookupAllOptions, (error, addresses) => {
      if (error) return callback(error, '', 0);
      try {
        for (const { address } of addresses) requirePublic(address, hostname);
      } catch (refused) {
        return callback(refused as NodeJS.ErrnoException, '', 0);
      }
      const [first] = addresses;
      if (!first) return callback(new Error(`${hostname} has no address`), '', 0);
      if (lookupOptions.all) return callback(null, addresses);
      callback(null, first.address, first.family);
    });
  };
}

/** Of an answer's body no more is read: it is for the log. */
const BODY_BYTES_MAX = 4_096;

function exchange(
  url: URL,
  { headers, body }: { headers: Record<string, string>; body: string },
  options: Pick<https.RequestOptions, 'agent' | 'signal' | 'lookup'>,
): Promise<MerchantAnswer> {
  return new Promise((resolve, reject) => {
    const call = url.protocol === 'https:' ? https.request : http.request;
    const sent = call(url, {
      ...options,
      method: 'POST',
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    });
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (options.signal?.aborted) return reject(options.signal.reason as Error);
      const wasClosed = sent.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '');
      reject(wasClosed ? new ReusedSocketError() : error);
    });
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const done = () =>
        resolve({
          status: response.statusCode ?? 0,
          retryAfterMs: readRetryAfter(response.headers['retry-after'], new Date()),
          body: Buffer.concat(chunks).toString('utf8').slice(0, BODY_BYTES_MAX),
        });
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes < BODY_BYTES_MAX) return;
        // The status is known; an endless body must not hold the delivery.
        done();
        response.destroy();
      });
      response.on('end', done);
      response.on('error', done);
    });
    sent.end(body);
  });
}
