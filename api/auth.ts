import { readCaller } from '../db/merchants';
import type { Caller, Scope } from '../db/merchants';
import type { Queryable } from '../db/transaction';
import { Problem } from './problems';

/**
 * The caller behind `Authorization: Bearer <key>`. Asked of PostgreSQL every time: a revoked key
 * ends at once.
 * @throws Problem unauthenticated
 */
export async function authenticate(request: Request, client: Queryable): Promise<Caller> {
  const header = request.headers.get('authorization') ?? '';
  const apiKey = /^Bearer +([A-Za-z0-9._~+/=-]{1,256})$/i.exec(header)?.[1];
  const caller = apiKey && (await readCaller(client, apiKey));
  if (!caller) {
    throw new Problem('unauthenticated', 'send a valid API key as "Authorization: Bearer <key>"', {
      headers: { 'www-authenticate': 'Bearer realm="payments"' },
    });
  }
  return caller;
}

/** @throws Problem insufficient_scope */
export function requireScope(caller: Caller, scope: Scope): void {
  if (caller.scopes.includes(scope)) return;
  throw new Problem(
    'insufficient_scope',
    `this needs a key with the scope "${scope}"; key ${caller.keyId} has ${caller.scopes.join(', ') || 'none'}`,
  );
}
