import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { databaseGauges } from '../db/metrics';
import type { Pool } from '../db/transaction';

/** What this process counts itself; the gauges about the books are read at each scrape. */
export interface ApiMetrics {
  registry: Registry;
  requests: Histogram<'method' | 'route' | 'status'>;
  /** Repeats that made nothing new, by what stopped them. */
  duplicatesStopped: Counter<'by'>;
}

/** Scrapers ask every few seconds; more often than this they get the figures of the last time. */
const GAUGES_FRESH_MS = 2_000;

/** One registry per app, so that tests may make as many as they like. */
export function createMetrics(pool: Pool): ApiMetrics {
  const registry = new Registry();
  const registers = [registry];
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
  const scrapeFaults = new Counter({
    name: 'payment_metrics_read_failures_total',
    help: 'Gauges that could not be read from PostgreSQL at a scrape; they are left out then.',
    registers,
  });
  for (const gauge of databaseGauges) {
    let readAt = -Infinity;
    new Gauge({
      name: gauge.name,
      help: gauge.help,
      labelNames: gauge.labelNames,
      registers,
      async collect() {
        if (performance.now() - readAt < GAUGES_FRESH_MS) return;
        readAt = performance.now();
        try {
          const samples = await gauge.read(pool);
          this.reset();
          for (const { labels, value } of samples) this.set(labels, value);
        } catch {
          this.reset();
          scrapeFaults.inc();
        }
      },
    });
  }
  return {
    registry,
    requests: new Histogram({
      name: 'payment_api_request_seconds',
      help: 'Time to answer, by route pattern and status.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    }),
    duplicatesStopped: new Counter({
      name: 'payment_duplicates_stopped_total',
      help: 'Repeats that were answered without a second effect, by what stopped them.',
      labelNames: ['by'],
      registers,
    }),
  };
}
