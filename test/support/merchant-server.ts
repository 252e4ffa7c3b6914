import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { MerchantSteps } from '../../scripts/merchant-steps';

export interface ReceivedEvent {
  id: string;
  type: string;
  orderId: string;
  seq: number;
  status: string;
  subject: string;
  data: Record<string, unknown>;
}

/** The shop's end of the notifications: checks the signature and counts what it is told. */
export interface MerchantServer {
  url: string;
  /** Every delivery with a good signature that it answered with 2xx, repeats included. */
  received: ReceivedEvent[];
  badSignatures: number;
  /** Where the steps of its fulfilment are, below it. */
  base: string;
  steps: MerchantSteps;
  /** What it answers next; 200 unless told. */
  answer: (event: ReceivedEvent) => number;
  /** Headers of what it answers. */
  headers: Record<string, string>;
  /** Distinct events of an order by type: the effects a shop would make of them. */
  effects(orderId: string, type?: string): ReceivedEvent[];
  close(): Promise<void>;
}

export async function startMerchantServer(secret: string): Promise<MerchantServer> {
  const webhook = new Webhook(secret);
  const merchant: MerchantServer = {
    url: '',
    received: [],
    badSignatures: 0,
    base: '',
    steps: new MerchantSteps(secret),
    answer: () => 200,
    headers: {},
    effects(orderId, type) {
      const byId = new Map(
        merchant.received
          .filter((e) => e.orderId === orderId && (type === undefined || e.type === type))
          .map((e) => [e.id, e]),
      );
      return [...byId.values()];
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      if (merchant.steps.handle(request.url ?? '', request.headers, body, response)) return;
      let payload: { type: string; data: Record<string, unknown> };
      try {
        payload = webhook.verify(body, request.headers as Record<string, string>) as typeof payload;
      } catch {
        merchant.badSignatures++;
        response.writeHead(401).end();
        return;
      }
      const event: ReceivedEvent = {
        id: String(request.headers['webhook-id']),
        type: payload.type,
        orderId: String(payload.data['order_id']),
        seq: Number(payload.data['seq']),
        status: String(payload.data['status']),
        subject: String(payload.data['subject']),
        data: payload.data,
      };
      const status = merchant.answer(event);
      if (status >= 200 && status < 300) merchant.received.push(event);
      response.writeHead(status, merchant.headers).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  merchant.base = `http://127.0.0.1:${address.port}`;
  merchant.url = `${merchant.base}/events`;
  return merchant;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
