import type { PropsWithChildren } from 'hono/jsx';
import { ACT_WORDS, actNoAfter, newActNo } from './act-bodies';
import type { Refused } from './frame';
import { money } from './money';
import { Field } from './parts';
import type { HeldCapture, OpsOrder } from './shapes';
import type { ActKind } from '../../../domain/operator-acts';

/** What every form for an act carries beside its own fields. */
export interface FormFrame {
  action: string;
  csrf: string;
  /** The name under which this browser acted last. */
  name: string | undefined;
  /** The case on whose page the form is, to come back to it. */
  onCase?: string;
  refused: Refused | undefined;
}

/** One act, folded up until it is wanted; open, with what was typed, after it was refused. */
function ActForm({
  frame,
  kind,
  about,
  title,
  hint,
  hidden = {},
  children,
}: PropsWithChildren<{
  frame: FormFrame;
  kind: ActKind;
  /** Tells the forms of one kind apart. */
  about: string;
  title?: string;
  hint: string;
  hidden?: Record<string, string | undefined>;
}>) {
  const id = `${kind}-${about}`;
  const refused = frame.refused?.form['form'] === id ? frame.refused : undefined;
  const kept = refused?.form;
  return (
    <details class="act" id={id} open={refused !== undefined}>
      <summary>{title ?? ACT_WORDS[kind]}</summary>
      <form method="post" action={frame.action}>
        <p class="soft">{hint}</p>
        {Object.entries({
          ...hidden,
          csrf: frame.csrf,
          kind,
          form: id,
          on_case: frame.onCase,
          act_no: refused ? actNoAfter(refused) : newActNo(),
        }).map(
          ([name, value]) =>
            value !== undefined && <input type="hidden" name={name} value={value} />,
        )}
        {children}
        <Field
          id={`${id}-name`}
          name="name"
          label="Your name"
          value={kept?.['name'] ?? frame.name}
          maxlength={64}
          autocomplete="name"
          required
        />
        <Field
          id={`${id}-reason`}
          name="reason"
          label="Reason"
          value={kept?.['reason']}
          maxlength={1000}
          required
        />
        <button type="submit" class="button">
          {ACT_WORDS[kind]}
        </button>
      </form>
    </details>
  );
}

type OpenCase = { case_id: string; version: number } | undefined;

/** Every act that the order allows now. What became impossible meanwhile is refused by the rules. */
export function OrderActs({
  frame,
  order,
  openCase,
  callbacks,
}: {
  frame: FormFrame;
  order: OpsOrder;
  openCase: OpenCase;
  callbacks: readonly { id: string; says: string }[];
}) {
  const named = openCase && { case_id: openCase.case_id, case_version: String(openCase.version) };
  const here = order.captures.filter(
    ({ status, rest, held }) => status === 'captured' && (rest > 0 || held > 0),
  );
  const isOpenForRefund = (one: HeldCapture) =>
    openCase !== undefined || (one.settles && order.status === 'paid');
  return (
    <>
      {openCase &&
        order.status === 'review' &&
        here.map((one) => (
          <ActForm
            frame={frame}
            kind="accept_money"
            about={one.capture_id}
            title={`Accept ${money(one.amount, one.currency)}: the order is paid`}
            hint={`Capture ${one.capture_id} pays the order; all other money goes back. The shop is told.`}
            hidden={{ ...named, capture_id: one.capture_id }}
          />
        ))}
      {here.filter(isOpenForRefund).map((one) => (
        <RefundForm frame={frame} capture={one} named={named} />
      ))}
      {order.refunds
        .filter(({ status }) => status === 'abnormal')
        .map((refund) => (
          <ActForm
            frame={frame}
            kind="resend_refund"
            about={refund.refund_no}
            title={`Send refund ${refund.refund_no} again`}
            hint={`${money(refund.amount, refund.currency)}, under the same number: the channel pays it once.`}
            hidden={{ ...named, refund_no: refund.refund_no }}
          />
        ))}
      {openCase && <CloseForm frame={frame} version={openCase.version} named={named} />}
      <ActForm frame={frame} kind="note" about="order" hint="Evidence for whoever decides." />
      <ActForm
        frame={frame}
        kind="query_now"
        about="order"
        hint="The channel is asked about every attempt and open refund; what it says is settled."
      />
      {callbacks.map(({ id, says }) => (
        <ActForm
          frame={frame}
          kind="resend_callback"
          about={id}
          title={`Apply callback ${id} again`}
          hint={says}
          hidden={{ callback_id: id }}
        />
      ))}
      <ActForm
        frame={frame}
        kind="restart_run"
        about="order"
        hint="For a run that is gone or hangs: it looks at the order again and goes on."
      />
    </>
  );
}

function RefundForm({
  frame,
  capture,
  named = {},
}: {
  frame: FormFrame;
  capture: HeldCapture;
  named: Record<string, string> | undefined;
}) {
  const id = `refund_money-${capture.capture_id}`;
  const kept = frame.refused?.form['form'] === id ? frame.refused.form : undefined;
  return (
    <ActForm
      frame={frame}
      kind="refund_money"
      about={capture.capture_id}
      title={`Give back money of ${money(capture.amount, capture.currency)}`}
      hint={`Capture ${capture.capture_id}: ${money(capture.rest, capture.currency)} is left of it.`}
      hidden={{ ...named, capture_id: capture.capture_id }}
    >
      <Field
        id={`${id}-amount`}
        name="amount"
        label={`Amount in ${capture.currency}`}
        value={kept?.['amount']}
        inputmode="decimal"
        maxlength={24}
        autocomplete="off"
        hint="Leave it empty to give back all that is left."
      />
    </ActForm>
  );
}

/** For an order's case, and for one that belongs to no order. */
export function CloseForm({
  frame,
  version,
  named = {},
}: {
  frame: FormFrame;
  version: number;
  named: Record<string, string> | undefined;
}) {
  const id = 'close_case-case';
  const kept = frame.refused?.form['form'] === id ? frame.refused.form : undefined;
  return (
    <ActForm
      frame={frame}
      kind="close_case"
      about="case"
      hint="While the case holds money it closes only by evidence, and a second person confirms it."
      hidden={{ ...named, case_version: String(version) }}
    >
      <p class="field">
        <label for={`${id}-evidence`}>Evidence, where money is held</label>
        <textarea id={`${id}-evidence`} name="evidence" rows={3} maxlength={2000}>
          {kept?.['evidence'] ?? ''}
        </textarea>
      </p>
    </ActForm>
  );
}

export function NoteForm({ frame }: { frame: FormFrame }) {
  return <ActForm frame={frame} kind="note" about="case" hint="Evidence for whoever decides." />;
}
