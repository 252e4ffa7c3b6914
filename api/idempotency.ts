import { setTimeout as delay } from 'node:timers/promises';
import { beginKey, finishKey, releaseKey } from '../db/idempotency-keys';
import type { KeyScope, Lease, MadeThing } from '../db/idempotency-keys';
import { isIdentifier } from '../domain/orders';
import type { ApiDeps } from './deps';
import { Problem } from './problems';
import type { ApiAnswer } from './route';

/**
 * The request's `Idempotency-Key`, or undefined. Same syntax as a request_no, because it may become
 * one: nothing is trimmed, shortened or folded, so two different keys never collide.
 * @throws Problem invalid_idempotency_key
 */
export function idempotencyKeyOf(request: Request): string | undefined {
  const key = request.headers.get('idempotency-key');
  if (key === null) return undefined;
  if (isIdentifier(key)) return key;
  throw new Problem(
    'invalid_idempotency_key',
    'Idempotency-Key must be 1 to 64 of A-Z a-z 0-9 _ . - (the first a letter or digit)',
  );
}

/**
 * Answers a request once per key. The first runs; a repeat of it is answered from the thing it made,
 * as it stands now; one that comes while the first still runs waits a little, then gets a 409. What
 * failed, and what is not known yet (202), is not remembered: the business numbers protect there.
 */
export async function answerOnce(
  deps: ApiDeps,
  scope: KeyScope,
  fingerprint: Buffer,
  act: () => Promise<ApiAnswer>,
  replay: (made: MadeThing) => Promise<ApiAnswer>,
): Promise<ApiAnswer> {
  const { idempotencyLeaseMs, idempotencyLifetimeMs, idempotencyWaitMs } = deps.limits;
  const giveUpAt = performance.now() + idempotencyWaitMs;
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 200)) {
    const begun = await beginKey(deps.pool, scope, fingerprint, {
      leaseMs: idempotencyLeaseMs,
      lifetimeMs: idempotencyLifetimeMs,
    });
    switch (begun.state) {
      case 'new':
        return runOnce(deps, begun.lease, act);
      case 'done': {
        const answer = await replay(begun.made);
        const headers = { ...answer.headers, 'Idempotency-Replayed': 'true' };
        return { ...answer, status: 200, headers };
      }
      case 'other_content':
        throw new Problem(
          'idempotency_key_reused',
          'this Idempotency-Key was used here with other content: use a new key, or send the first content',
        );
      case 'running':
        if (performance.now() >= giveUpAt) {
          throw new Problem(
            'request_in_progress',
            'the same request is still running: repeat it with the same Idempotency-Key',
            { retryAfterMs: Math.min(begun.retryAfterMs, 2_000) },
          );
        }
        await delay(pauseMs);
    }
  }
}

async function runOnce(
  deps: ApiDeps,
  lease: Lease,
  act: () => Promise<ApiAnswer>,
): Promise<ApiAnswer> {
  let answer: ApiAnswer;
  try {
    answer = await act();
  } catch (error) {
    await settleLease(deps, releaseKey(deps.pool, lease));
    throw error;
  }
  const isKept = answer.made && answer.status !== 202;
  await settleLease(
    deps,
    isKept ? finishKey(deps.pool, lease, answer.made!) : releaseKey(deps.pool, lease),
  );
  return answer;
}

/** The key is comfort: when the database is away now, the lease ends by itself. */
async function settleLease(deps: ApiDeps, settling: Promise<void>): Promise<void> {
  try {
    await settling;
  } catch (error) {
    deps.log.warn({ err: error }, 'the Idempotency-Key keeps its lease until it runs out');
  }
}
