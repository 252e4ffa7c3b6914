import { appendFileSync, existsSync } from 'node:fs';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { readJsonLines } from './books/channel-books';

/** Something that the shop really did, or took back: a line of its log. */
export interface MerchantEffect {
  /** The `idempotency-key` under which it was asked. */
  key: string;
  call: 'do' | 'undo';
  merchantId: string;
  orderId: string;
  step: string;
}

/** One call of a step, as the shop sees it. */
export interface SeenCall extends MerchantEffect {
  /** Calls under this key so far, this one included. */
  copy: number;
}

/** How the shop takes a call; unless said, it acts and answers 200 at once. */
export interface Behaviour {
  status?: number;
  /** The answer is held back for so long; with more than the caller's limit it "times out after effect". */
  holdMs?: number;
  /** Nothing is done, although the answer may be late or lost: "times out before effect". */
  withoutEffect?: boolean;
  retryAfterS?: number;
}

/**
 * The shop's side of fulfilment, an example to start from: it checks the signature, acts once per key,
 * gives the same answer to every copy, and remembers an undo that came before its step, so that a step
 * that arrives late does nothing any more.
 */
export class MerchantSteps {
  readonly effects: MerchantEffect[];
  readonly calls: SeenCall[] = [];
  badSignatures = 0;
  /** What the shop does next; a test's or a tour's choice. */
  behave: (call: SeenCall) => Behaviour = () => ({});
  private readonly webhook: Webhook;
  /** How each key was answered for good. */
  private readonly answers = new Map<string, number>();
  private readonly copies = new Map<string, number>();

  constructor(
    secret: string,
    /** One JSON object per effect, appended; absent: kept in memory only. */
    private readonly effectsFile?: string,
  ) {
    this.webhook = new Webhook(secret);
    this.effects =
      effectsFile !== undefined && existsSync(effectsFile)
        ? readJsonLines<MerchantEffect>(effectsFile)
        : [];
    for (const { key } of this.effects) this.answers.set(key, 200);
  }

  /** Steps as they are configured: `reserve` at `<base>/fulfil/reserve`, its undo beside it. */
  static configured(base: string, names: readonly string[]) {
    return names.map((name) => ({
      name,
      url: `${base}/fulfil/${name}`,
      undo_url: `${base}/fulfil/${name}/undo`,
    }));
  }

  /** What was done and not taken back: names of steps, in the order in which they were done. */
  standing(orderId: string): string[] {
    const own = this.effects.filter((effect) => effect.orderId === orderId);
    const undone = new Set(own.filter(({ call }) => call === 'undo').map(({ step }) => step));
    return own.filter(({ call, step }) => call === 'do' && !undone.has(step)).map((e) => e.step);
  }

  /** Everything that was done and taken back, in order: `do reserve`, `undo reserve`. */
  story(orderId: string): string[] {
    return this.effects
      .filter((effect) => effect.orderId === orderId)
      .map(({ call, step }) => `${call} ${step}`);
  }

  /** Answers a call to `/fulfil/…`; false when the path is none of these. */
  handle(
    path: string,
    headers: IncomingHttpHeaders,
    body: string,
    response: ServerResponse,
  ): boolean {
    const call = /^\/fulfil\/[^/]+(\/undo)?$/.exec(path);
    if (!call) return false;
    const seen = this.verified(headers, body, call[1] === undefined ? 'do' : 'undo');
    if (!seen) {
      this.badSignatures++;
      response.writeHead(401).end();
      return true;
    }
    this.calls.push(seen);
    const behaviour = this.behave(seen);
    const status = this.act(seen, behaviour);
    const answer = () => {
      if (response.destroyed) return;
      const { retryAfterS } = behaviour;
      response
        .writeHead(status, retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) })
        .end();
    };
    if (behaviour.holdMs === undefined) answer();
    else setTimeout(answer, behaviour.holdMs).unref();
    return true;
  }

  /** The signature covers key, time and body; a key that is not the signed one is refused. */
  private verified(
    headers: IncomingHttpHeaders,
    body: string,
    call: 'do' | 'undo',
  ): SeenCall | undefined {
    const key = String(headers['idempotency-key']);
    if (key !== headers['webhook-id']) return undefined;
    try {
      const told = this.webhook.verify(body, headers as Record<string, string>) as {
        order_id: string;
        merchant_id: string;
        step: string;
      };
      const copy = (this.copies.get(key) ?? 0) + 1;
      this.copies.set(key, copy);
      const { order_id: orderId, merchant_id: merchantId, step } = told;
      return { key, call, merchantId, orderId, step, copy };
    } catch {
      return undefined;
    }
  }

  private act({ copy: _, ...effect }: SeenCall, { status = 200, withoutEffect }: Behaviour) {
    const { key, call } = effect;
    const known = this.answers.get(key);
    if (known !== undefined) return known;
    const isYes = status >= 200 && status < 300;
    const isNo = status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status);
    if (withoutEffect || !(isYes || isNo)) return status;
    this.answers.set(key, status);
    if (!isYes) return status;
    if (call === 'undo') {
      const doKey = key.replace(/:undo$/, '');
      const wasDone = this.answers.get(doKey) === 200;
      // Nothing was done under it, and nothing may be done from now on.
      if (!wasDone) {
        this.answers.set(doKey, 422);
        return status;
      }
    }
    this.effects.push(effect);
    if (this.effectsFile !== undefined) {
      appendFileSync(this.effectsFile, `${JSON.stringify(effect)}\n`);
    }
    return status;
  }
}
