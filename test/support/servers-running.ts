/** What global set-up leaves for global tear-down; both run in jest's own process. */
export interface Running {
  stop(): Promise<void>;
}

const holder = globalThis as { paymentSagaTestServers?: Running };

export function setRunning(running: Running): void {
  holder.paymentSagaTestServers = running;
}

export function takeRunning(): Running | undefined {
  const running = holder.paymentSagaTestServers;
  delete holder.paymentSagaTestServers;
  return running;
}
