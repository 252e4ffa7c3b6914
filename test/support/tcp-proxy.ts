import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A stretch of network between a client and a server, that a test can disturb. */
export interface TcpProxy {
  port: number;
  /** Ends every connection, and every new one at once: to its clients the server is down. */
  cut(): void;
  /** Lets new connections through again. */
  restore(): void;
  /** Keeps every connection open and passes nothing on: to its clients the server is frozen. */
  pause(): void;
  /** Passes questions on and keeps the answers: the server acts, and its clients do not know. */
  holdAnswers(): void;
  /** Passes everything on again, what was kept first. */
  resume(): void;
  close(): Promise<void>;
}

/** Passes bytes on to the target from a free port of its own on the loopback interface. */
export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const pairs = new Set<{ client: Socket; upstream: Socket }>();
  let isCut = false;
  const passes = { questions: true, answers: true };

  function keep(socket: Socket, other: () => Socket | undefined): void {
    sockets.add(socket);
    // Errors are told by `close`; without a listener Node would exit.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      other()?.destroy();
    });
  }

  function passOn({ client, upstream }: { client: Socket; upstream: Socket }): void {
    client.unpipe(upstream);
    upstream.unpipe(client);
    if (passes.questions) client.pipe(upstream);
    if (passes.answers) upstream.pipe(client);
  }

  // The port is kept while the way is cut, so that nobody else can take it meanwhile.
  const server = createServer((client) => {
    if (isCut) {
      // An orderly end: inside jest a reset is an error of another realm, no `instanceof Error`.
      client.on('error', () => undefined).resume();
      client.end();
      return;
    }
    const upstream = connect(target);
    keep(client, () => upstream);
    keep(upstream, () => client);
    const pair = { client, upstream };
    pairs.add(pair);
    client.once('close', () => pairs.delete(pair));
    passOn(pair);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });

  function letThrough(questions: boolean, answers: boolean): void {
    Object.assign(passes, { questions, answers });
    for (const pair of pairs) passOn(pair);
  }

  function endAll(): void {
    for (const socket of sockets) socket.destroy();
  }

  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true;
      endAll();
    },
    restore() {
      isCut = false;
    },
    pause: () => letThrough(false, false),
    holdAnswers: () => letThrough(true, false),
    resume: () => letThrough(true, true),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        endAll();
      }),
  };
}
