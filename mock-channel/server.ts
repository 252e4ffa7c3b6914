import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { AutoPayers } from './auto-payers';
import { Bills } from './bills';
import { Books, type Dialect } from './books';
import { Callbacks } from './callbacks';
import { controlRoutes } from './control';
import type { Settings, SettingsChange } from './control-types';
import type { Account, DialectFormat } from './dialect';
import { dialectA } from './dialect-a';
import { dialectB } from './dialect-b';
import { Faults } from './faults';
import { sendFile } from './file-reply';
import { Gateway } from './gateway';
import { Ledger } from './ledger';
import { noticeFor } from './notices';
import { payPages } from './pay-page';
import type { Keys } from './signing';
import { TradeDesk } from './trade-desk';

/** Requests to a dialect's port bigger than this are answered 413. */
const MAX_REQUEST_BYTES = 64 * 1024;

export interface AccountOptions {
  accountId: string;
  appId: string;
  keys: Keys;
}

export interface MockChannelOptions {
  /** Where the dialects listen; default 127.0.0.1. */
  host?: string;
  /** Where control and pay pages listen; default 127.0.0.1. */
  controlHost?: string;
  /** 0 or absent: a free port. */
  controlPort?: number;
  aPort?: number;
  bPort?: number;
  /** The books' file, created if missing and read back if not; null: memory only. */
  booksPath?: string | null;
  /** Folder in which the files of trade bills are made; default the system's temporary one. */
  billFolder?: string;
  a: AccountOptions;
  b: AccountOptions;
  /** Base of the pay pages' addresses; default the control port's. */
  publicUrl?: string;
  settings?: SettingsChange;
}

export interface MockChannel {
  control: string;
  a: string;
  b: string;
  /** Stops listening, drops what is due, closes the books. */
  close(): Promise<void>;
}

const DEFAULT_SETTINGS: Settings = {
  latencyMs: 0,
  queryRateLimitPerSecond: null,
  callbackUrls: { 'mock-a': [], 'mock-b': [] },
  // Short, so that a test sees a resend without waiting; bounded, as every channel's ladder is.
  callbackLadderMs: [200, 400, 800, 1500, 3000, 5000, 10_000, 15_000, 30_000, 60_000],
  callbackTimeoutMs: 5000,
  refundAfterMs: 50,
  closeCallbacks: false,
  expiryCallbacks: false,
  businessClockOffsetMs: 0,
  timeZone: 'UTC',
  billCharset: 'utf-8',
  feeBasisPoints: 60,
  autoApprove: null,
};

/**
 * Starts the mock channel: one set of books, a port per dialect, a port for control and pay pages.
 * @throws Error when a port is taken or the books cannot be read back
 */
export async function startMockChannel(options: MockChannelOptions): Promise<MockChannel> {
  const { callbackUrls, ...given } = options.settings ?? {};
  const settings: Settings = {
    ...DEFAULT_SETTINGS,
    ...given,
    callbackUrls: { ...DEFAULT_SETTINGS.callbackUrls, ...callbackUrls },
  };
  const formats: Record<Dialect, DialectFormat> = { 'mock-a': dialectA, 'mock-b': dialectB };
  const accounts: Record<Dialect, Account> = {
    'mock-a': { dialect: 'mock-a', ...options.a },
    'mock-b': { dialect: 'mock-b', ...options.b },
  };
  const ledger = new Ledger();
  const payers = new AutoPayers(settings, ledger);
  const books = new Books(
    options.booksPath ?? null,
    (record) => {
      ledger.apply(record);
      payers.notice(record);
    },
    () => settings.businessClockOffsetMs,
  );
  const bills = new Bills({
    books,
    ledger,
    settings,
    accounts,
    parentFolder: options.billFolder ?? tmpdir(),
  });
  const faults = new Faults();
  const callbacks = new Callbacks({ formats, accounts, books, faults, settings });
  const desk = new TradeDesk(books, ledger, settings, (news) => {
    const { dialect } = news.trade;
    callbacks.announce(noticeFor(formats[dialect], accounts[dialect], news, randomUUID()));
  });
  payers.start(desk);

  const controlServer = createServer();
  const controlUrl = await listen(
    controlServer,
    options.controlPort ?? 0,
    options.controlHost ?? '127.0.0.1',
  );
  const payBase = options.publicUrl ?? controlUrl;
  const payUrl = (trade: { channelTradeNo: string }): string =>
    `${payBase}/pay/${trade.channelTradeNo}`;
  const host = options.host ?? '127.0.0.1';
  const gateways = Object.fromEntries(
    (['mock-a', 'mock-b'] as const).map((dialect) => {
      const parts = { books, ledger, desk, faults, callbacks, bills, settings, payUrl };
      return [dialect, new DialectPort(new Gateway(formats[dialect], accounts[dialect], parts))];
    }),
  ) as Record<Dialect, DialectPort>;
  const close = async (): Promise<void> => {
    payers.close();
    desk.close();
    callbacks.close();
    await Promise.all([
      gateways['mock-a'].setListening(false),
      gateways['mock-b'].setListening(false),
      stop(controlServer),
    ]);
    books.close();
    bills.close();
  };
  try {
    await gateways['mock-a'].open(options.aPort ?? 0, host);
    await gateways['mock-b'].open(options.bPort ?? 0, host);
  } catch (error) {
    await close();
    throw error;
  }

  const addresses = () => ({
    control: controlUrl,
    a: gateways['mock-a'].url,
    b: gateways['mock-b'].url,
  });
  const app = new Hono();
  app.route(
    '/',
    controlRoutes({
      books,
      ledger,
      desk,
      faults,
      callbacks,
      bills,
      settings,
      formats,
      accounts,
      addresses,
      setListening: (dialect, listening) => gateways[dialect].setListening(listening),
      isBusy: () => callbacks.isBusy || desk.pendingRefundTimers > 0 || payers.due > 0,
    }),
  );
  app.route('/', payPages(ledger, desk));
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  controlServer.on('request', (request, response) => void listener(request, response));

  return { ...addresses(), close };
}

/** One dialect's listening port, which can be closed and opened again under the same number. */
class DialectPort {
  url = '';
  private server: Server | null = null;
  private port = 0;
  private host = '';

  constructor(private readonly gateway: Gateway) {}

  async open(port: number, host: string): Promise<void> {
    const server = createServer((request, response) => void this.serve(request, response));
    this.url = await listen(server, port, host);
    this.port = Number(new URL(this.url).port);
    this.host = host;
    this.server = server;
  }

  async setListening(listening: boolean): Promise<void> {
    if (listening === (this.server !== null)) return;
    if (listening) return this.open(this.port, this.host);
    const server = this.server;
    this.server = null;
    if (server) await stop(server);
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const body = await readBody(request);
      if (!body) {
        response.writeHead(413, { connection: 'close' }).end();
        return;
      }
      const { method = '', url: path = '', headers } = request;
      const reply = await this.gateway.answer({ method, path, headers, body });
      if (reply.drop) {
        request.socket.destroy();
        return;
      }
      if ('path' in reply) {
        await sendFile(response, reply);
        return;
      }
      response.writeHead(reply.status, {
        ...reply.headers,
        'content-length': reply.body.length,
      });
      response.end(reply.body);
    } catch (error) {
      // A defect of the mock itself must not look like a fault that a test asked for.
      process.stderr.write(`mock channel: ${error instanceof Error ? error.stack : error}\n`);
      if (!response.headersSent) response.writeHead(500).end('mock channel defect');
    }
  }
}

/** @returns undefined when the body is too big */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_REQUEST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function listen(server: Server, port: number, host: string): Promise<string> {
  // Longer than any client keeps a connection: whoever closes first loses what is sent at that moment.
  server.keepAliveTimeout = 75_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
  const { port: taken } = server.address() as AddressInfo;
  const named = host === '0.0.0.0' ? '127.0.0.1' : host;
  return `http://${named.includes(':') ? `[${named}]` : named}:${taken}`;
}

async function stop(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
