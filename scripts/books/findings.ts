/**
 * What is always true, by the names that the documents use.
 */
export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8' | 'I9' | 'I10';

/** Something that must never be: where, and what is wrong with it. */
export interface Violation {
  invariant: Invariant;
  /** `order shop/o1`, `capture mock-a/2026…`, `currency CNY`: what an operator looks up. */
  subject: string;
  message: string;
}

export interface Findings {
  /** Subjects looked at, each once per invariant. */
  checked: number;
  violations: Violation[];
}

/** Looks at every item once; every fault it has is a violation. */
export function inspect<Item>(
  invariant: Invariant,
  items: Iterable<Item>,
  subjectOf: (item: Item) => string,
  faultsOf: (item: Item) => Iterable<string>,
): Findings {
  const findings: Findings = { checked: 0, violations: [] };
  for (const item of items) {
    findings.checked++;
    for (const message of faultsOf(item)) {
      findings.violations.push({ invariant, subject: subjectOf(item), message });
    }
  }
  return findings;
}

export function together(all: readonly Findings[]): Findings {
  return {
    checked: all.reduce((sum, { checked }) => sum + checked, 0),
    violations: all.flatMap(({ violations }) => violations),
  };
}

/** `I2 capture mock-a/123: the channel captured …`: one line per violation. */
export function lineOf({ invariant, subject, message }: Violation): string {
  return `${invariant} ${subject}: ${message}`;
}
