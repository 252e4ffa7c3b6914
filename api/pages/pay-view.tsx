import { generate } from 'lean-qr';
import { toSvgSource } from 'lean-qr/extras/svg';
import { raw } from 'hono/html';
import type { OrderState } from '../../db/rows';
import { pageRequestNo } from '../../domain/pay-page';
import type { PayPageView } from '../../domain/pay-page';
import { formatAmount } from './format';
import { LANGUAGES, LOCALES, WORDS } from './words';
import type { Language } from './words';

/** A way to pay that is offered. */
export interface Offer {
  channel: string;
  label: string;
}

export interface PayFragment {
  state: OrderState;
  view: PayPageView;
  merchantName: string;
  offers: readonly Offer[];
  language: Language;
  nowMs: number;
  /** The page's own address, without its query. */
  action: string;
}

/** How a payer goes on with an attempt: at an address of the web, by a code, or not at all. */
export interface Ways {
  address: string | undefined;
  code: string | undefined;
}

/** Nothing once the channel's page has expired: then the same channel may be pressed anew. */
export function waysOf({ record }: PayPageView, nowMs: number): Ways {
  const parameters = record?.payParameters;
  const isOver = parameters?.expiresAt != null && Date.parse(parameters.expiresAt) <= nowMs;
  if (!parameters || isOver) return { address: undefined, code: undefined };
  const { type, value } = parameters;
  const isWeb = (type === 'redirect' || type === 'qr_code') && /^https?:\/\//i.test(value);
  return {
    address: isWeb && URL.canParse(value) ? value : undefined,
    code: type === 'qr_code' ? value : undefined,
  };
}

/** The sentence below the order. */
function textOf({ state: { order }, view }: PayFragment, words: Words): string {
  if (view.state === 'waiting' && !view.record) return words.ending;
  if (view.state !== 'closed') return words.text[view.state];
  const { statusReason: why } = order;
  const text = words.closed[why === 'expired' || why === 'cancelled' ? why : 'decided'];
  return order.latePaymentPolicy === 'refund' ? `${text} ${words.moneyBack}` : text;
}

/** All that stands between the page's head and its foot: rendered here and nowhere else. */
export function PayMain(props: PayFragment) {
  const { state, view, merchantName, offers, language, nowMs, action } = props;
  const { order } = state;
  const words = WORDS[language];
  const amount = formatAmount(order.amountMinor, order.currency, LOCALES[language]);
  const labelOf = (channel: string) =>
    offers.find((offer) => offer.channel === channel)?.label ?? channel;
  const ways = waysOf(view, nowMs);
  const showsTime = !view.isOver && view.state !== 'review' && order.closeRequestedAt === null;
  return (
    <main
      id="pay"
      data-state={view.state}
      data-version={String(order.version)}
      data-over={String(view.isOver)}
      data-now={String(nowMs)}
      data-deadline={showsTime ? String(Date.parse(order.expiresAt)) : ''}
    >
      <p class="shop">
        <bdi>{words.payTo(merchantName)}</bdi>
      </p>
      <h1 id="heading" tabindex={-1}>
        {words.heading[view.state]}
      </h1>
      <dl class="facts">
        <dt>{words.order}</dt>
        <dd>
          <bdi class="subject">{order.subject}</bdi>
        </dd>
        <dt>{words.amount}</dt>
        <dd class="amount">{amount}</dd>
      </dl>
      <p class="text">{textOf(props, words)}</p>
      {view.state === 'going' && <Going {...{ view, ways, labelOf, words }} />}
      {view.mayPay && view.state !== 'waiting' && (
        <Choices {...{ view, ways, offers, words, amount, action }} />
      )}
      {showsTime && (
        <p class="time">
          {words.timeLeft} <span id="countdown">{clock(Date.parse(order.expiresAt) - nowMs)}</span>
        </p>
      )}
      {order.returnUrl && (
        <p>
          <a class="back" href={order.returnUrl}>
            {words.back}
          </a>
        </p>
      )}
      <p class="languages">
        {LANGUAGES.filter((other) => other !== language).map((other) => (
          <a href={`?lang=${other}`} lang={other} hreflang={other}>
            {words.otherLanguage}
          </a>
        ))}
      </p>
    </main>
  );
}

type Words = (typeof WORDS)[Language];

function Going({
  view,
  ways: { address, code },
  labelOf,
  words,
}: {
  view: PayPageView;
  ways: Ways;
  labelOf: (channel: string) => string;
  words: Words;
}) {
  const { record } = view;
  if (!record) return null;
  const svg = code === undefined ? undefined : qrSvg(code);
  return (
    <section class="going">
      {svg && (
        <figure>
          <div role="img" aria-label={words.qrLabel} class="qr">
            {raw(svg)}
          </div>
          <figcaption>{words.scan}</figcaption>
        </figure>
      )}
      {address && (
        <p>
          <a id="continue" class={svg ? 'second' : 'button'} href={address}>
            {svg ? words.openHere : words.continueAt(labelOf(record.channel))}
          </a>
        </p>
      )}
      <p class="hint">{words.notPaidYet}</p>
    </section>
  );
}

/** One form for all ways to pay, so that one lock holds them all. Works without JavaScript. */
function Choices({
  view,
  ways,
  offers,
  words,
  amount,
  action,
}: {
  view: PayPageView;
  ways: Ways;
  offers: readonly Offer[];
  words: Words;
  amount: string;
  action: string;
}) {
  // While an attempt waits, only another way is offered: the same one is gone on with by its link.
  const goesOn = ways.address !== undefined || ways.code !== undefined;
  const open = view.state === 'going' && goesOn ? view.record?.channel : undefined;
  const choices = offers.filter(({ channel }) => channel !== open);
  if (choices.length === 0) {
    return offers.length === 0 ? <p class="text">{words.noChannel}</p> : null;
  }
  const picked = choices.find(({ channel }) => channel === view.record?.channel) ?? choices[0];
  const form = (
    <form method="post" action={action} data-pay>
      <fieldset>
        <legend>{words.choose}</legend>
        {choices.map(({ channel, label }) => (
          <label class="choice">
            <input
              type="radio"
              name="choice"
              value={`${pageRequestNo(view.attemptNo, channel)} ${channel}`}
              checked={channel === picked?.channel}
            />
            <bdi>{label}</bdi>
          </label>
        ))}
      </fieldset>
      <button class="button" type="submit">
        {words.pay(amount)}
      </button>
    </form>
  );
  if (!open) return form;
  return (
    <details>
      <summary>{words.payAnother}</summary>
      {form}
    </details>
  );
}

/** Dark on light in both themes: scanners need it. Undefined when no code holds so much text. */
function qrSvg(text: string): string | undefined {
  try {
    return toSvgSource(generate(text), {
      on: '#000',
      off: '#fff',
      padX: 4,
      padY: 4,
      width: null,
      height: null,
    });
  } catch {
    return undefined;
  }
}

/** Minutes and seconds, or hours before them; nothing below zero. */
function clock(leftMs: number): string {
  const seconds = Math.max(0, Math.ceil(leftMs / 1000));
  const two = (value: number) => String(value).padStart(2, '0');
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${two(m)}:${two(s)}`;
}
