import { temporal } from '@temporalio/proto';

const { History } = temporal.api.history.v1;
export type WorkflowHistory = temporal.api.history.v1.IHistory;

/** Who ran it and on which machine: of no use to a replay. */
const DROPPED = new Set(['identity', 'workerVersion']);

/**
 * A history as it is committed: one event a line, without the names of processes and machines and
 * without paths (stack traces). What a replay reads stays as the server wrote it. The shape is that of
 * protobuf objects (instants as seconds and nanos), not the one that Temporal Web downloads: it needs
 * no second copy of protobufjs to agree with ours.
 */
export function writeHistory(history: WorkflowHistory): string {
  const plain = History.toObject(History.fromObject(history), {
    longs: String,
    enums: String,
    bytes: String,
  }) as { events: object[] };
  const lines = plain.events.map((event) => JSON.stringify(scrub(event)));
  return `{"events":[\n${lines.join(',\n')}\n]}\n`;
}

/** The history that `writeHistory` wrote, as the worker's replay takes it. */
export function readHistory(text: string): WorkflowHistory {
  return History.fromObject(JSON.parse(text) as object);
}

function scrub(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(scrub);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => !DROPPED.has(key));
  if ((value as { kind?: unknown }).kind === 'TASK_QUEUE_KIND_STICKY') {
    // Its name is made of the process and the machine.
    return { ...Object.fromEntries(entries), name: 'sticky' };
  }
  return Object.fromEntries(
    entries.map(([key, inner]) => [key, key === 'stackTrace' ? '' : scrub(inner)]),
  );
}
