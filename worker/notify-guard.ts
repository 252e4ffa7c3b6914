import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

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
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  PRIVATE.addSubnet(net, bits, 'ipv4');
}
for (const [net, bits] of [
  ['::', 128],
  ['::1', 128],
  // IPv4 translated into IPv6 (NAT64, 6to4) would be another way to a private address.
  ['64:ff9b::', 96],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  PRIVATE.addSubnet(net, bits, 'ipv6');
}

/**
 * Whether a merchant's address may be told: http(s), and every address its name stands for is public,
 * unless its host (or `host:port`) is allowed by configuration.
 */
export async function mayNotify(url: URL, allowed: readonly string[]): Promise<boolean> {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return false;
  if (allowed.includes(url.hostname) || allowed.includes(url.host)) return true;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const addresses = isIP(host) ? [{ address: host }] : await lookup(host, { all: true });
  return addresses.every(
    ({ address }) =>
      // Mapped IPv4 too; the block list itself would take every IPv4 address for a mapped one.
      !/^::ffff:/i.test(address) && !PRIVATE.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'),
  );
}
