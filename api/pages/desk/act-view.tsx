import type { DeskSession } from '../../../db/desk-sessions';
import { actWords } from './act-bodies';
import type { Refused } from './frame';
import { DESK } from './guard';
import { money } from './money';
import { Facts, Field, Note, OrderLink, ProblemNote, Status, Text, Time, words } from './parts';
import type { Act } from './shapes';

export function actPath(actNo: string): string {
  return `${DESK}/acts/${encodeURIComponent(actNo)}`;
}

/** What became of the act that was just sent. */
export function ActNotice({ act }: { act: Act | undefined }) {
  if (!act) return null;
  return (
    <Note tone={act.status === 'done' ? 'good' : act.status === 'refused' ? 'bad' : 'warn'}>
      <p>
        <strong>{actWords(act.kind)}:</strong> {SAYS[act.status]}{' '}
        <a href={actPath(act.act_no)}>Read the act</a>
      </p>
    </Note>
  );
}

const SAYS: Record<Act['status'], string> = {
  done: 'done.',
  accepted: 'stored; the order’s run performs it. Load the page again to see what became of it.',
  waiting_second: 'stored; another operator, with another key, must confirm it.',
  refused: 'refused, see below.',
};

export function ActFacts({ act }: { act: Act }) {
  const { second, result } = act;
  return (
    <Facts
      of={[
        ['Act', actWords(act.kind)],
        ['Status', <Status of={act.status} />],
        ['Order', <OrderLink merchantId={act.merchant_id} orderId={act.order_id} />],
        [
          'Case',
          act.case_id === null ? (
            'none'
          ) : (
            <a href={`${DESK}/cases/${act.case_id}`}>
              {act.case_id}
              {act.case_version !== null && `, decided on its version ${act.case_version}`}
            </a>
          ),
        ],
        ...(act.amount === null
          ? []
          : [['Amount', money(act.amount, act.currency)] as [string, string]]),
        ['Capture', <Text of={act.capture_id} />],
        ['Refund', <Text of={act.refund_no ?? result?.refund_nos.join(', ')} />],
        ['Asked for by', <Person of={act.by} />],
        ['When', <Time at={act.created_at} />],
        ['Reason', <Text of={act.reason} />],
        ['Evidence', <Text of={act.evidence} />],
        [
          'Second person',
          second ? (
            <>
              <Person of={second} />, <Time at={second.confirmed_at} />: <Text of={second.reason} />
            </>
          ) : act.needs_second ? (
            'needed'
          ) : (
            'not needed'
          ),
        ],
        ['Result', <Text of={resultOf(act)} />],
      ]}
    />
  );
}

function Person({ of: { key, name } }: { of: { key: string | null; name: string | null } }) {
  return (
    <>
      <bdi>{name}</bdi> <span class="soft">(key {key})</span>
    </>
  );
}

function resultOf({ result }: Act): string | null {
  if (!result) return null;
  const said = [
    result.reason && words(result.reason),
    result.order_status && `order ${words(result.order_status)}`,
    result.case_status && `case ${words(result.case_status)}`,
  ];
  return said.filter(Boolean).join(', ') || null;
}

/** The second person's form; who asked for the act reads why it is not theirs. */
export function ConfirmForm({
  act,
  session,
  name,
  refused,
}: {
  act: Act;
  session: DeskSession;
  name: string | undefined;
  refused?: Refused | undefined;
}) {
  const isRefused = refused?.form['form'] === `confirm-${act.act_no}`;
  const problem = isRefused ? <ProblemNote problem={refused.problem} /> : null;
  if (act.status !== 'waiting_second') return problem;
  if (act.by.key === session.caller.keyId) {
    return (
      <>
        {problem}
        <p class="soft">
          It was asked for with your key: another operator, with another key, confirms it.
        </p>
      </>
    );
  }
  const id = `confirm-${act.act_no}`;
  return (
    <form method="post" action={`${actPath(act.act_no)}/confirm`} class="confirm">
      {problem}
      <input type="hidden" name="csrf" value={session.csrfToken} />
      <input type="hidden" name="form" value={id} />
      <Field
        id={`${id}-name`}
        name="name"
        label="Your name"
        value={(isRefused ? refused.form['name'] : undefined) ?? name}
        maxlength={64}
        autocomplete="name"
        required
      />
      <Field
        id={`${id}-reason`}
        name="reason"
        label="What you have seen"
        value={isRefused ? refused.form['reason'] : undefined}
        maxlength={2000}
        required
      />
      <button type="submit" class="button">
        Confirm as the second person
      </button>
    </form>
  );
}

/** Acts about a case or an order, newest first, with the second person's form at those that wait. */
export function ActList({
  acts,
  session,
  name,
}: {
  acts: readonly Act[];
  session: DeskSession;
  name: string | undefined;
}) {
  if (acts.length === 0) return <p class="soft">None yet.</p>;
  return (
    <ul class="cards">
      {acts.map((act) => (
        <li class="card" data-act={act.act_no}>
          <p>
            <Status of={act.status} /> <a href={actPath(act.act_no)}>{actWords(act.kind)}</a>{' '}
            {act.amount !== null && money(act.amount, act.currency)}
          </p>
          <p class="soft">
            <bdi>{act.by.name}</bdi>, <Time at={act.created_at} />: <bdi>{act.reason}</bdi>
          </p>
          {act.evidence !== null && (
            <p>
              Evidence: <bdi>{act.evidence}</bdi>
            </p>
          )}
          {act.second && (
            <p class="soft">
              Confirmed by <bdi>{act.second.name}</bdi>: <bdi>{act.second.reason}</bdi>
            </p>
          )}
          <ConfirmForm act={act} session={session} name={name} />
        </li>
      ))}
    </ul>
  );
}
