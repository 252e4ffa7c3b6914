import { money } from './money';
import { Data, RunLink, Text, Time, words } from './parts';
import type { TimelineEntry } from './shapes';

/** Callbacks of which each gets a form of its own. */
const CALLBACKS_MAX = 5;

type Said = Record<string, unknown>;

/** One sentence per kind of entry; whatever else is recorded stands below it, folded up. */
const SENTENCES: Record<string, (said: Said) => string> = {
  request: (d) => `The shop asked to ${str(d['asked'])} as ${str(d['number'])}`,
  attempt: (d) =>
    `Attempt ${str(d['request_no'])} at ${str(d['channel'])}: ${sum(d)}, now ${status(d['status'])}`,
  call: (d) =>
    `${str(d['channel'])} was asked (${str(d['call'])}) and said ${status(d['answer'] ?? 'nothing yet')}`,
  callback: (d) =>
    `${str(d['channel'])} called back: ${str(d['about'])} ${status(d['state'])}${sumOf(d)}; ${status(d['verdict'] ?? d['status'])}`,
  capture: (d) =>
    `${str(d['channel'])} took ${sum(d)}${d['settles'] === true ? ', which pays the order' : `, ${status(d['kind'])}`}`,
  refund: (d) => `Refund ${str(d['refund_no'])} of ${sum(d)}, now ${status(d['status'])}`,
  refund_call: (d) =>
    `${str(d['channel'])} was asked about refund ${str(d['refund_no'])} and said ${status(d['answer'] ?? 'nothing yet')}`,
  act: (d) => `${str(d['name'])}: ${status(d['act'])}, ${status(d['status'])}. ${str(d['reason'])}`,
  act_confirmed: (d) => `${str(d['name'])} confirmed it: ${str(d['reason'])}`,
  move: (d) =>
    `${status(d['subject'])}: ${status(d['from'] ?? 'new')} → ${status(d['to'])} (${status(d['cause'])})`,
  difference: (d) =>
    `The bill of ${str(d['business_date'])} differs: ${status(d['kind'])}, ${status(d['status'])}`,
  case: (d) => `Case ${str(d['case_id'])}: ${status(d['kind'])}, ${status(d['status'])}`,
  case_evidence: (d) => `Evidence for case ${str(d['case_id'])}`,
  fulfilment_call: (d) => `Step ${str(d['step'])}: ${status(d['status'])}`,
  notification: (d) => `Event ${str(d['type'])} for the shop, ${status(d['status'])}`,
  notification_try: (d) =>
    `The shop was told ${str(d['type'])}: ${d['error'] == null ? `it answered ${str(d['http_status'])}` : str(d['error'])}`,
};

/** What stands out on the line. */
const TONES: Record<string, string> = {
  capture: 'money',
  refund: 'money',
  case: 'warn',
  case_evidence: 'warn',
  difference: 'warn',
  act: 'person',
  act_confirmed: 'person',
};

/** Everything that happened to an order, as one line. */
export function TimelineView({ entries }: { entries: readonly TimelineEntry[] }) {
  return (
    <ol class="line">
      {entries.map((entry) => (
        <li class={TONES[entry.kind] ?? ''} data-kind={entry.kind}>
          <p class="soft">
            <Time at={entry.at} /> · {words(entry.kind)}
          </p>
          <p>
            <Text of={sentenceOf(entry)} />
          </p>
          <details>
            <summary>What is recorded</summary>
            <Data of={entry.data} />
            <RunLink url={entry.run_url} what={words(entry.kind)} />
          </details>
        </li>
      ))}
    </ol>
  );
}

function sentenceOf({ kind, data }: TimelineEntry): string {
  return SENTENCES[kind]?.(data) ?? words(kind);
}

function str(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'object' ? JSON.stringify(value) : String(value as string | number);
}

function status(value: unknown): string {
  return words(str(value));
}

function sum(said: Said): string {
  return money(said['amount'] as number | null, said['currency']) || 'an unknown amount';
}

function sumOf(said: Said): string {
  return said['amount'] == null ? '' : ` ${sum(said)}`;
}

/** The last callbacks among these entries, of which an order may have more pages. */
export function callbacksIn(entries: readonly TimelineEntry[]): { id: string; says: string }[] {
  return entries
    .filter(({ kind }) => kind === 'callback')
    .slice(-CALLBACKS_MAX)
    .map(({ data }) => ({
      id: String(data['callback_id']),
      says: `${String(data['channel'])} said ${String(data['state'])}: ${String(data['verdict'] ?? data['status'])}.`,
    }));
}
