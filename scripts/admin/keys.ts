import { randomBytes } from 'node:crypto';
import { insertKey, listKeys, lockMerchant, revokeKey } from '../../db/administration';
import { generateApiKey } from '../../db/merchants';
import type { Scope } from '../../db/merchants';
import { AdminRefusal, identifier, one, oneOf, table, UsageError } from './command';
import type { Command } from './command';

const SCOPES = ['pay', 'refund', 'read', 'operator'] as const satisfies readonly Scope[];

export const keyCommands: Record<string, Command> = {
  'key add': {
    usage: 'key add MERCHANT --scopes pay,refund,read',
    summary: 'a new key, shown this once: only its hash is stored',
    options: {
      scopes: SCOPES.join(','),
      id: 'ID',
      'expires-in': '90d|12h',
    },
    words: { least: 1, most: 1 },
    async run({ words, options, client }) {
      const merchantId = words[0]!;
      if (!(await lockMerchant(client, merchantId)))
        throw new AdminRefusal(`there is no merchant ${merchantId}`);
      const named = one(options, 'scopes');
      if (named === undefined) throw new UsageError('--scopes is missing');
      const scopes = [...new Set(named.split(',').map((scope) => oneOf('scopes', scope, SCOPES)))];
      const keyId = identifier(
        '--id',
        one(options, 'id') ?? `key-${randomBytes(6).toString('hex')}`,
      );
      const expiresAt = expiryOf(one(options, 'expires-in'));
      const apiKey = generateApiKey();
      if (!(await insertKey(client, { keyId, merchantId, apiKey, scopes, expiresAt })))
        throw new AdminRefusal(`there is a key ${keyId} already: name another --id`);
      const shown = { keyId, merchantId, scopes, expiresAt };
      return {
        value: { ...shown, apiKey },
        lines: [
          `key ${keyId} of ${merchantId}: ${scopes.join(', ')}; valid until ${expiresAt ?? 'it is revoked'}`,
          'It is shown this once:',
          apiKey,
        ],
        note: { subject: keyId, detail: shown },
      };
    },
  },
  'key revoke': {
    usage: 'key revoke KEY_ID',
    summary: 'ends a key at once',
    options: {},
    words: { least: 1, most: 1 },
    async run({ words, client }) {
      const keyId = words[0]!;
      const done = await revokeKey(client, keyId);
      if (done === 'unknown')
        throw new AdminRefusal(`there is no key ${keyId}: see "key list" (ids, not the keys)`);
      return {
        value: { keyId, revoked: true },
        lines: [done === 'revoked' ? `key ${keyId} is revoked` : `key ${keyId} was revoked before`],
        ...(done === 'revoked' ? { note: { subject: keyId, detail: {} } } : {}),
      };
    },
  },
  'key list': {
    usage: 'key list [MERCHANT]',
    summary: 'keys by id, never the keys themselves',
    options: {},
    words: { least: 0, most: 1 },
    async run({ words, client }) {
      const keys = await listKeys(client, words[0] ?? null);
      return {
        value: keys,
        lines: table(
          ['key', 'merchant', 'scopes', 'state', 'expires', 'created'],
          keys.map((k) => [
            k.keyId,
            k.merchantId,
            k.scopes.join(','),
            k.state,
            k.expiresAt,
            k.createdAt,
          ]),
        ),
      };
    },
  },
};

const HOUR_MS = 3_600_000;

/** The end of a key's life, from now. */
function expiryOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const [, count, unit] = /^([1-9][0-9]{0,3})([hd])$/.exec(text) ?? [];
  if (!count)
    throw new AdminRefusal(`--expires-in must be days or hours, 90d or 12h, not "${text}"`);
  return new Date(Date.now() + Number(count) * HOUR_MS * (unit === 'd' ? 24 : 1)).toISOString();
}
