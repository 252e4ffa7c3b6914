import type { SagaResult } from '../saga';
import { median } from './history-cost';

/** The table of `npm run bench -- saga`. */
export function printSaga(result: SagaResult, rig: string): void {
  const { knee, at_70_percent: at, per_order: each, worker_cpu_ms_per_start: start } = result;
  const line = (name: string, ours: string | number, control: string | number = '') =>
    console.log(`${name.padEnd(42)}${String(ours).padStart(12)}${String(control).padStart(12)}`);
  const rounds = (of: 'saga_per_s' | 'control_per_s') => median(result.rounds.map((r) => r[of]));
  const cpu = (of: 'saga_cpu_ms' | 'control_cpu_ms', name: string) =>
    Math.round(median(result.rounds.map((r) => r[of][name] ?? 0)) * 100) / 100;
  console.log(`\n${rig}`);
  console.log(
    `Temporal ${result.temporal}; the channel answers after ${result.channel_delay_ms} ms, ` +
      `payers pay ${result.payer_delay_ms} ms after that\n`,
  );
  line('', 'saga', 'control');
  line('orders/s, median of the rounds', rounds('saga_per_s'), rounds('control_per_s'));
  line('  ratio (0.85 or more)', result.ratio);
  line('transitions per order', each.saga.transitions, each.control.transitions);
  line('events per order', each.saga.events, each.control.events);
  for (const name of ['worker', 'temporal', 'temporal_postgres', 'postgres', 'load'])
    line(`processor ms per order: ${name}`, cpu('saga_cpu_ms', name), cpu('control_cpu_ms', name));
  line(
    'processor ms per order: API, front',
    cpu('saga_cpu_ms', 'api'),
    cpu('control_cpu_ms', 'front'),
  );
  console.log();
  line(`knee, orders/s${knee.found ? '' : ' (or higher)'}`, knee.per_second);
  line(`at 70 % of it (${at.rate}/s): p50 until paid, ms`, at.paid.p50_ms);
  line('  p99 until paid, ms', at.paid.p99_ms);
  line('  commits per order', at.commits_per_order.all);
  line('  of them writing', at.commits_per_order.writing);
  line('  orders per core-second, load included', at.orders_per_core_second);
  console.log();
  line('worker ms per start: an order', start.order);
  line('  a bare run', start.bare);
  line('  a bare run with one empty local activity', start.bare_with_step);
  line('  ratio to bare (1.25 or less)', result.start_ratio);
}
