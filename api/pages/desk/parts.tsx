/** Small pieces that every page of the desk is made of. */
import type { Child, PropsWithChildren } from 'hono/jsx';
import type { Problem } from '../../problems';
import { problemCodes } from '../../problems';
import { DESK } from './guard';
import { money } from './money';

/** Words from outside: kept apart from the direction of what stands around them. */
export function Text({ of }: { of: unknown }) {
  return of === null || of === undefined || of === '' ? (
    <span class="soft">–</span>
  ) : (
    <bdi>{of}</bdi>
  );
}

/** An instant, always in UTC and so that it can be compared. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="soft">–</span>;
  return <time datetime={at}>{`${at.slice(0, 10)} ${at.slice(11, 19)} UTC`}</time>;
}

/** Which words are good or bad news; the word itself is always there. */
const TONES: Record<string, 'good' | 'warn' | 'bad'> = {
  paid: 'good',
  done: 'good',
  succeeded: 'good',
  sent: 'good',
  full: 'good',
  captured: 'good',
  matched: 'good',
  review: 'warn',
  open: 'warn',
  waiting_second: 'warn',
  accepted: 'warn',
  waiting_bill: 'warn',
  running: 'warn',
  pending: 'warn',
  waiting: 'warn',
  suspense: 'warn',
  processing: 'warn',
  submitting: 'warn',
  case: 'bad',
  refused: 'bad',
  failed: 'bad',
  failing: 'bad',
  abnormal: 'bad',
  dead: 'bad',
  rejected: 'bad',
  no_bill: 'bad',
  reversed: 'bad',
  undo_failed: 'bad',
};

export function words(code: string): string {
  return code.replaceAll('_', ' ');
}

export function Status({ of }: { of: string | null }) {
  if (of === null) return <span class="soft">–</span>;
  return <span class={`chip ${TONES[of] ?? ''}`}>{words(of)}</span>;
}

/** An amount that is never broken over two lines. */
export function Money({ of, in: currency }: { of: number | null; in: string | null }) {
  if (of === null) return <span class="soft">–</span>;
  return <span class="money">{money(of, currency)}</span>;
}

export function OrderLink({
  merchantId,
  orderId,
}: {
  merchantId: string | null;
  orderId: string | null;
}) {
  if (merchantId === null || orderId === null) return <span class="soft">no order</span>;
  return (
    <a href={orderPath(merchantId, orderId)}>
      <bdi>{merchantId}</bdi> / <bdi>{orderId}</bdi>
    </a>
  );
}

export function orderPath(merchantId: string, orderId: string): string {
  return `${DESK}/orders/${encodeURIComponent(merchantId)}/${encodeURIComponent(orderId)}`;
}

/** To Temporal Web, when the API knows where that is. */
export function RunLink({ url, what = 'order' }: { url: string | null; what?: string }) {
  return url === null ? null : (
    <a href={url} rel="noreferrer">
      Temporal Web<span class="hidden">: the run of the {what}</span>
    </a>
  );
}

/** Rows under headings, in a box of its own that scrolls where the screen is too small. */
export function Table({
  caption,
  heads,
  rows,
  empty = 'None.',
}: {
  caption: string;
  heads: readonly string[];
  rows: readonly Child[][];
  empty?: string;
}) {
  if (rows.length === 0) return <p class="soft">{empty}</p>;
  return (
    <div class="scroll" role="region" aria-label={caption} tabindex={0}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([first, ...rest]) => (
            <tr>
              <th scope="row">{first}</th>
              {rest.map((cell) => (
                <td>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Names and values. */
export function Facts({ of }: { of: readonly [string, Child][] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const CONTROLS = /[\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Evidence as it is stored. Signs that only turn or hide others are written out. */
export function Data({ of }: { of: unknown }) {
  const text = JSON.stringify(of, null, 2) ?? '';
  const shown = text.replace(
    CONTROLS,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return (
    <pre class="data" tabindex={0}>
      <bdi>{shown}</bdi>
    </pre>
  );
}

const TITLES = new Map(problemCodes.map(({ code, title }) => [code as string, title]));

/** A refusal in words, with its status and the code that the API's documentation has. */
export function ProblemNote({ problem }: { problem: Problem }) {
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>{TITLES.get(problem.code) ?? problem.code}.</strong> <bdi>{problem.detail}</bdi>
      </p>
      <p class="soft">
        {problem.status} <code>{problem.code}</code>
      </p>
    </div>
  );
}

/** On top of the page whose form was refused, with the way back to that form. */
export function RefusedNote({
  of: refused,
}: {
  of: { problem: Problem; form: Record<string, string> } | undefined;
}) {
  if (!refused) return null;
  const { form } = refused.form;
  return (
    <>
      <ProblemNote problem={refused.problem} />
      {form !== undefined && (
        <p>
          <a href={`#${form}`}>To the form, as you filled it in</a>
        </p>
      )}
    </>
  );
}

export function Note({ children, tone = '' }: PropsWithChildren<{ tone?: string }>) {
  return (
    <div class={`note ${tone}`} role="status">
      {children}
    </div>
  );
}

/** The way to the next page of a list, with the filters as they are. */
export function More({
  path,
  query,
  cursor,
  label,
}: {
  path: string;
  query: Record<string, string>;
  cursor: string | null;
  label: string;
}) {
  if (cursor === null) return null;
  const search = new URLSearchParams({ ...query, cursor });
  return (
    <p>
      <a class="button" href={`${DESK}${path}?${search.toString()}`}>
        {label}
      </a>
    </p>
  );
}

export function Field({
  name,
  label,
  value,
  hint,
  ...more
}: {
  name: string;
  label: string;
  value?: string | undefined;
  hint?: string;
  id: string;
  type?: string;
  required?: boolean;
  maxlength?: number;
  autocomplete?: string;
  inputmode?: 'decimal' | 'text';
  pattern?: string;
  list?: string;
}) {
  const hintId = hint === undefined ? undefined : `${more.id}-hint`;
  return (
    <p class="field">
      <label for={more.id}>{label}</label>
      <input name={name} value={value ?? ''} aria-describedby={hintId} {...more} />
      {hint !== undefined && (
        <span class="hint" id={hintId}>
          {hint}
        </span>
      )}
    </p>
  );
}

export function Choice({
  name,
  label,
  id,
  value,
  options,
}: {
  name: string;
  label: string;
  id: string;
  value: string | undefined;
  options: readonly (readonly [string, string])[];
}) {
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <select name={name} id={id}>
        {options.map(([code, shown]) => (
          <option value={code} selected={code === (value ?? '')}>
            {shown}
          </option>
        ))}
      </select>
    </p>
  );
}
