import { attemptKey } from './attempt-key';
import { redisLock } from './redis-lock';
import { redisToken } from './redis-token';
import { storedAnswers } from './stored-answers';
import type { StrategyKind } from './strategy';
import { uniqueOrderNumber } from './unique-order-number';
import { unprotected } from './unprotected';
import { versionColumn } from './version-column';

/** The strategies under the names that results carry, in the order of their numbers. */
export const KINDS = {
  unprotected,
  unique_order_number: uniqueOrderNumber,
  redis_token: redisToken,
  stored_answers: storedAnswers,
  redis_lock: redisLock,
  version_column: versionColumn,
  attempt_key: attemptKey,
} satisfies Record<string, StrategyKind>;

export type StrategyName = keyof typeof KINDS;
export const STRATEGY_NAMES = Object.keys(KINDS) as StrategyName[];

/** The strategy meant by a name or a number. */
export function strategyNamed(word: string): StrategyName {
  const name = STRATEGY_NAMES.find(
    (one) => one === word.replaceAll('-', '_') || String(KINDS[one].number) === word,
  );
  if (!name) throw new Error(`no strategy ${word}: one of ${STRATEGY_NAMES.join(', ')}`);
  return name;
}
