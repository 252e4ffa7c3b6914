import { appendFileSync, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { readJsonLines } from './books/channel-books';
import type { ReceivedEvent } from './books/effects';
import { MerchantSteps } from './merchant-steps';

/**
 * What a shop does with its notifications: check the signature, act once per `webhook-id`. And with the
 * steps of its fulfilment: act once per key.
 */
export interface ExampleMerchant {
  url: string;
  /** Every delivery with a good signature, repeats included; kept in a file from start to start. */
  received: ReceivedEvent[];
  refusedSignatures: number;
  /** Its fulfilment: what it did and took back, kept in a file, too. */
  steps: MerchantSteps;
  /** Where its steps are, below it. */
  base: string;
  /** Events of an order by type, each once: what the shop acted upon. */
  acted(orderId: string, type: string): ReceivedEvent[];
  close(): Promise<void>;
}

export interface ExampleMerchantOptions {
  /** The merchant's signing secret, `whsec_…`. */
  secret: string;
  port: number;
  /** One JSON object per delivery, appended. */
  eventsFile: string;
  /** One JSON object per effect of its steps, appended. */
  effectsFile: string;
}

/** Events are small; more is not from us. */
const BODY_BYTES_MAX = 64 * 1024;

/** An example to start from: the receiving end of the notifications on loopback. */
export async function startExampleMerchant(
  options: ExampleMerchantOptions,
): Promise<ExampleMerchant> {
  const webhook = new Webhook(options.secret);
  const { eventsFile } = options;
  const received = existsSync(eventsFile) ? readJsonLines<ReceivedEvent>(eventsFile) : [];
  const server = createServer((request, response) => {
    const answer = (status: number) => void response.writeHead(status).end();
    readBody(request).then(
      (body) => {
        if (merchant.steps.handle(request.url ?? '', request.headers, body, response)) return;
        const event = verified(webhook, body, request);
        if (event) {
          // Kept before it is acknowledged; whoever acts on it looks the id up first.
          appendFileSync(eventsFile, `${JSON.stringify(event)}\n`);
          received.push(event);
        } else merchant.refusedSignatures++;
        answer(event ? 204 : 401);
      },
      () => answer(413),
    );
  });
  const merchant: ExampleMerchant = {
    base: `http://127.0.0.1:${options.port}`,
    url: `http://127.0.0.1:${options.port}/payment-events`,
    received,
    refusedSignatures: 0,
    steps: new MerchantSteps(options.secret, options.effectsFile),
    acted(orderId, type) {
      const own = received.filter((e) => e.orderId === orderId && e.type === type);
      return [...new Map(own.map((e) => [e.id, e])).values()];
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, '127.0.0.1', resolve);
  });
  // It must not keep the process alive that started it.
  server.unref();
  return merchant;
}

/** The event, or undefined when the signature (over id, time and body) is not the merchant's. */
function verified(
  webhook: Webhook,
  body: string,
  request: IncomingMessage,
): ReceivedEvent | undefined {
  try {
    const payload = webhook.verify(body, request.headers as Record<string, string>) as {
      type: string;
      data: Record<string, unknown>;
    };
    return {
      id: String(request.headers['webhook-id']),
      type: payload.type,
      orderId: String(payload.data['order_id']),
      subject: String(payload.data['subject']),
    };
  } catch {
    return undefined;
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > BODY_BYTES_MAX) throw new RangeError('the body is too big');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
