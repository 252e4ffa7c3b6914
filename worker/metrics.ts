import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { RegistryHooks } from '../channels/registry';
import type { Pool } from '../db/transaction';

export interface WorkerMetrics {
  registry: Registry;
  /** Counts what goes out to the channels. */
  hooks: Required<Pick<RegistryHooks, 'onCall' | 'onBreakerState'>>;
}

const BREAKER_STATES = ['closed', 'half_open', 'open'] as const;

/** What a worker counts itself; what the database knows is in the API's metrics. */
export function createMetrics(pool: Pool): WorkerMetrics {
  const registry = new Registry();
  const registers = [registry];
  const calls = new Counter({
    name: 'payment_channel_calls_total',
    help: 'Calls to payment channels, by what came of them.',
    labelNames: ['channel', 'operation', 'result'],
    registers,
  });
  const seconds = new Histogram({
    name: 'payment_channel_call_seconds',
    help: 'How long calls to payment channels took, waiting for the brake included.',
    labelNames: ['channel', 'operation'],
    buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers,
  });
  const breaker = new Gauge({
    name: 'payment_channel_breaker',
    help: 'State of the circuit breaker of each channel in this process: 1 for the state it is in.',
    labelNames: ['channel', 'state'],
    registers,
  });
  new Gauge({
    name: 'payment_pool_connections',
    help: 'Connections of this process to PostgreSQL: open, idle, and callers waiting for one.',
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'total' }, pool.totalCount);
      this.set({ state: 'idle' }, pool.idleCount);
      this.set({ state: 'waiting' }, pool.waitingCount);
    },
  });
  return {
    registry,
    hooks: {
      onCall({ channel, operation, result, durationMs }) {
        calls.inc({ channel, operation, result });
        seconds.observe({ channel, operation }, durationMs / 1000);
      },
      onBreakerState({ channel, state }) {
        for (const each of BREAKER_STATES)
          breaker.set({ channel, state: each }, each === state ? 1 : 0);
      },
    },
  };
}
