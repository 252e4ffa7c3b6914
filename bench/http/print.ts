import type { Compared, HttpResult } from '../http';

/** The table of `npm run bench -- http`. */
export function printHttp(result: HttpResult, rig: string): void {
  const { duplicates } = result;
  console.log(`\n${rig}`);
  console.log(
    `pools of ${result.pool_size}, fsync on, the channel answers after ${result.channel_delay_ms} ms\n`,
  );
  const cells = (...cell: (string | number)[]) =>
    console.log(
      `${String(cell[0]).padEnd(12)}${cell
        .slice(1)
        .map((one) => String(one).padStart(11))
        .join('')}`,
    );
  cells('', 'knee/s', 'at/s', 'p50 ms', 'plain', 'ratio', 'p99 ms', 'plain', 'ratio');
  const row = (name: string, one: Compared) =>
    cells(
      name,
      `${one.knee.found ? '' : '>='}${one.knee.per_second}`,
      one.rate,
      ...[one.p50_ms, one.plain_p50_ms].map((ms) => ms.toFixed(2)),
      one.p50_ratio,
      ...[one.p99_ms, one.plain_p99_ms].map((ms) => ms.toFixed(2)),
      one.p99_ratio,
    );
  row('create', result.create);
  row('payments', result.payments);
  row('callbacks', result.callbacks);
  cells('plain', `${result.plain_knee.found ? '' : '>='}${result.plain_knee.per_second}`);
  console.log(
    '\ncreate: 8 (p50) and 12 (p99) at most; callbacks: 5 at most. An order has the start of its run\n' +
      "at Temporal in it; a payment has the run's two database steps and the channel's delay in it.\n",
  );
  console.log(
    `duplicates, ${duplicates.clients} clients: ${duplicates.callback_copies_per_s} copies of callbacks/s, ` +
      `${duplicates.plain_conflicts_per_s} plain conflicts/s: ratio ${duplicates.ratio} (0.7 or more); ` +
      `${duplicates.order_repeats_per_s} repeated orders/s: ratio ${duplicates.order_repeats_ratio}`,
  );
}
