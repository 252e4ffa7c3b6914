import { randomUUID } from 'node:crypto';
import type { Dialect } from './books';
import type { FaultAction, FaultRule } from './control-types';

/** A call or a callback delivery, as far as a rule looks at it. */
export interface FaultSubject {
  dialect: Dialect;
  operation: Exclude<FaultRule['match']['operation'], 'any'>;
  outTradeNo: string | null;
  outRefundNo: string | null;
  /** The trade's subject, where tags are looked for. */
  subject: string;
  kind?: 'payment' | 'refund';
}

export interface StoredFault extends FaultRule {
  id: string;
  /** Fitting calls seen, and how often the rule acted. */
  seen: number;
  hits: number;
}

/** The faults asked for, in the order they were added; the first that fits acts. */
export class Faults {
  private rules: (StoredFault & { roll: () => number })[] = [];

  add(rule: FaultRule): string {
    const id = randomUUID();
    this.rules.push({ ...rule, id, seen: 0, hits: 0, roll: seededDie(rule.seed ?? 1) });
    return id;
  }

  list(): StoredFault[] {
    return this.rules.map(({ roll: _roll, ...rule }) => rule);
  }

  remove(id: string): boolean {
    const before = this.rules.length;
    this.rules = this.rules.filter((rule) => rule.id !== id);
    return this.rules.length < before;
  }

  clear(): void {
    this.rules = [];
  }

  /** What is to happen to this call, counted as one hit; undefined: nothing out of the ordinary. */
  take(subject: FaultSubject): FaultAction | undefined {
    for (const rule of this.rules) {
      if (rule.times !== undefined && rule.hits >= rule.times) continue;
      if (!fits(rule.match, subject)) continue;
      rule.seen += 1;
      if (rule.seen <= (rule.skip ?? 0)) continue;
      if (rule.probability !== undefined && rule.roll() >= rule.probability) continue;
      rule.hits += 1;
      return rule.do;
    }
    return undefined;
  }
}

function fits(match: FaultRule['match'], subject: FaultSubject): boolean {
  // `any` means the five calls: a rule for calls says nothing sensible about a callback or a bill.
  if (match.operation === 'any') {
    if (['callback', 'bill', 'bill_file'].includes(subject.operation)) return false;
  } else if (match.operation !== subject.operation) return false;
  if (match.dialect && match.dialect !== subject.dialect) return false;
  if (match.outTradeNo && match.outTradeNo !== subject.outTradeNo) return false;
  if (match.outRefundNo && match.outRefundNo !== subject.outRefundNo) return false;
  if (match.kind && match.kind !== subject.kind) return false;
  return match.tag === undefined || hasTag(subject.subject, match.tag);
}

/** Whether a trade's subject carries `#tag` as a whole word. */
export function hasTag(subject: string, tag: string): boolean {
  return new RegExp(`#${tag}(?![A-Za-z0-9_-])`).test(subject);
}

/** A repeatable source of numbers in [0, 1): the generator mulberry32. */
export function seededDie(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A fixed wait, or one drawn evenly from a range. */
export function drawMs(wait: number | [number, number] | undefined, roll: () => number): number {
  if (wait === undefined) return 0;
  return typeof wait === 'number' ? wait : wait[0] + Math.floor(roll() * (wait[1] - wait[0] + 1));
}
