import pg from 'pg';
import type { ChannelFact } from '../domain/channel-facts';
import type { OrderRef } from '../domain/orders';
import { ourNoOf } from './callbacks';
import { openCase } from './cases';
import { LostMoveError, touchOrder } from './changes';
import type { Queryable } from './transaction';

/**
 * Whether a transaction failed because of what it was to write, so that it would fail the same way
 * whenever it is run again: PostgreSQL's classes 22 (data exception) and 23 (integrity constraint), or
 * a move that no longer finds its state under the lock. Source: PostgreSQL manual, appendix A.
 */
export function isUnbookable(error: unknown): boolean {
  if (error instanceof LostMoveError) return true;
  return error instanceof pg.DatabaseError && /^2[23]/.test(error.code ?? '');
}

/**
 * Puts a fact that cannot be booked before a person. Facts are never refused: one that fits no column
 * or breaks a rule of ours must neither be lost nor stop the order's run, which would repeat it for
 * ever and settle nothing else. The same fact again adds nothing.
 */
export async function holdUnbookable(
  client: Queryable,
  ref: OrderRef,
  fact: ChannelFact,
  error: unknown,
): Promise<void> {
  await openCase(client, ref, {
    kind: 'unbookable',
    summary:
      `${fact.channel} says ${fact.word} (${fact.state}) for ${ourNoOf(fact)}, ` +
      `which could not be booked: ${reasonOf(error)}`,
    channel: fact.channel,
    subjectNo: ourNoOf(fact),
    evidence: fact,
  });
  await touchOrder(client, ref, { verdict: 'unbookable', actor: fact.channel });
}

function reasonOf(error: unknown): string {
  if (error instanceof pg.DatabaseError && error.constraint) return error.constraint;
  return (error instanceof Error ? error.message : 'unknown').slice(0, 200);
}
