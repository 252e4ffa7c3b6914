import { FAULT_NAMES, isRun } from './figures';
import type { FaultResult, FloorResult, Measured, NotRun, StrategiesResult } from './figures';

/** The figures as tables; absolute numbers belong to the machine named above them. */
export function printTables(result: StrategiesResult): void {
  const { alike, floor, strategies } = result;
  console.log(
    `\n${result.orders} orders per strategy, 20 % delivered twice, seed ${result.seed}, ${result.clients} clients;\n` +
      `latencies at constant arrival (${result.rate}), from the planned time;\n` +
      `${alike.pool_size} prepared connections; the channel answers after ${alike.channel_delay_ms} ms; the clients and\n` +
      `the channel run in the strategy's own process, so their cost is in every figure of node\n`,
  );
  row('', 'orders/s', 'of floor', 'p50 ms', 'p95 ms', 'p99 ms', 'max ms', 'errors', 'doubles');
  for (const strategy of strategies) {
    const name = `${strategy.number} ${strategy.name}`;
    if (!isMeasured(strategy)) {
      console.log(`${name.padEnd(NAME)}  not run: ${strategy.not_run}`);
      continue;
    }
    const { p50_ms: p50, p95_ms: p95, p99_ms: p99, max_ms: max } = strategy;
    const { orders_per_s: perS, of_floor: ofFloor, errors, double_effects: doubles } = strategy;
    row(name, perS, ofFloor, ...[p50, p95, p99, max].map(Math.round), errors, doubles);
  }
  printFloor(floor);
  console.log('\nprocessor time per order in ms, memory in MiB, pauses and waits in ms\n');
  row('', 'node', 'postgres', 'redis', 'MiB node', 'gc max', 'pool p99', 'commits', 'redis ops');
  for (const strategy of strategies) {
    if (!isMeasured(strategy)) continue;
    const { cpu_ms_per_order: cpu, memory_mib: memory, gc_pauses: gc } = strategy;
    row(
      `${strategy.number} ${strategy.name}`,
      ...[cpu.node, cpu.postgres ?? '-', cpu.redis ?? '-', memory.node_peak, gc.max_ms],
      ...[Math.round(strategy.pool_wait_ms.p99), strategy.commits_per_order],
      strategy.redis_ops_per_order,
    );
  }
  console.log(
    `\n${result.fault_orders} orders with each fault (a tenth with two pages, and where no Redis is used),\n` +
      `${alike.fault_clients} clients, leases of ${alike.lease_ms} ms, stalls of ${alike.stall_ms} ms:\n` +
      'orders charged twice or more / failed requests / orders lost or booked wrongly\n',
  );
  fields('', 34, ...FAULT_NAMES, 'two_pages');
  for (const { number, name, faults, two_pages: twoPages } of strategies) {
    fields(
      `${number} ${name}`,
      34,
      ...[...FAULT_NAMES.map((fault) => faults[fault]), twoPages].map(faultText),
    );
  }
}

const NAME = 23;

function isMeasured<T extends Partial<Measured>>(strategy: T): strategy is T & Measured {
  return strategy.orders_per_s !== undefined;
}

function faultText(result: FaultResult | NotRun | undefined): string {
  if (!isRun(result)) return 'not run';
  const wrong = result.lost_orders + result.charged_not_booked + result.booked_not_charged;
  return `${result.double_effects} / ${result.errors} / ${wrong}`;
}

function printFloor(floor: FloorResult): void {
  const figure = (value: number | NotRun) =>
    typeof value === 'number' ? `${value}/s` : `not run: ${value.not_run}`;
  console.log(`\nfloor, bare insert over the same pool: ${figure(floor.inserts_per_s)}`);
  console.log(`floor, the same insert by pgbench: ${figure(floor.pgbench_per_s)}`);
  console.log(`floor, Redis SET NX: ${figure(floor.redis_set_nx_per_s)}`);
  const { at_equal_commits: equal, attempt_key_ratio: ratio } = floor;
  if (equal && ratio !== undefined)
    console.log(
      `floor, ${equal.commits_per_order} bare inserts per order, as often as 6 commits: ` +
        `${equal.orders_per_s} orders/s, of which 6 reaches ${ratio}`,
    );
}

function row(name: string, ...cells: (string | number)[]): void {
  fields(name, 10, ...cells);
}

function fields(name: string, width: number, ...cells: (string | number)[]): void {
  console.log(name.padEnd(NAME) + cells.map((cell) => String(cell).padStart(width)).join(''));
}
