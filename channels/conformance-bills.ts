import type { BillLine } from '../domain/trade-bill';
import { TradeBillError } from '../domain/trade-bill';
import { CURRENCY, aRefund, anAttempt, eventually, queryOf } from './conformance-harness';
import type { BillSpoiling, ConformanceChannel } from './conformance-harness';
import type { TradeBillSource } from './contract';

/** The conformance kit's part about trade bills. Each test has a day of its own. */
export function describeBills(running: () => ConformanceChannel): void {
  describe('trade bills', () => {
    let daysBack = 1;
    let day = '';
    beforeEach(() => {
      daysBack += 1;
      day = new Date(Date.now() - daysBack * 86_400_000).toISOString().slice(0, 10);
    });

    async function open(signal?: AbortSignal): Promise<TradeBillSource> {
      const answer = await running().channel.openTradeBill({ day, signal });
      if (answer.outcome !== 'ready') throw new Error(`the bill is ${JSON.stringify(answer)}`);
      return answer.bill;
    }
    async function linesOf(bill: TradeBillSource): Promise<BillLine[]> {
      const lines: BillLine[] = [];
      for await (const batch of bill.lines()) lines.push(...batch);
      return lines;
    }
    async function paid(amountMinor: number, currency = CURRENCY) {
      const attempt = anAttempt({ amountMinor, currency });
      await running().channel.createPayment(attempt);
      await running().payOn(attempt.outTradeNo, day);
      const answer = await running().channel.queryPayment(queryOf(attempt));
      const tradeNo = answer.outcome === 'answered' ? answer.fact.channelTradeNo : null;
      return { ...attempt, tradeNo: tradeNo ?? '' };
    }

    it('lists what was paid and refunded that day, with both numbers, amount and fee', async () => {
      const one = await paid(100_000);
      const other = await paid(2_000, 'JPY');
      const refund = aRefund(one, { amountMinor: 500 });
      await running().refundOn(refund, day);
      await eventually(async () => {
        const answer = await running().channel.queryRefund(refund);
        return answer.outcome === 'answered' && answer.fact.state === 'succeeded';
      });
      const bill = await open();
      const lines = await linesOf(bill);
      expect(lines).toHaveLength(3);
      expect(lines.find((line) => line.outTradeNo === other.outTradeNo)).toMatchObject({
        kind: 'payment',
        status: 'succeeded',
        channelTradeNo: other.tradeNo,
        amountMinor: 2_000,
        currency: 'JPY',
        error: null,
      });
      const mine = lines.filter((line) => line.outTradeNo === one.outTradeNo);
      expect(mine).toHaveLength(2);
      const payment = mine.find((line) => line.kind === 'payment');
      expect(payment).toMatchObject({ channelTradeNo: one.tradeNo, amountMinor: 100_000 });
      expect(payment?.feeMinor).toBeGreaterThanOrEqual(0);
      expect(payment?.occurredAt).toBe(new Date(payment?.occurredAt ?? '').toISOString());
      expect(mine.find((line) => line.kind === 'refund')).toMatchObject({
        outRefundNo: refund.outRefundNo,
        amountMinor: 500,
        status: 'succeeded',
      });
      expect(new Set(lines.map((line) => line.lineNo)).size).toBe(3);
      const { sha256, bytes, totals } = bill.end();
      expect(sha256).toMatch(/^[0-9a-f]{64}$/);
      expect(bytes).toBeGreaterThan(0);
      if (totals) {
        expect(totals).toContainEqual(
          expect.objectContaining({ currency: 'JPY', payments: 1, paymentsMinor: 2_000 }),
        );
      }
    });

    it('is the same file, by its hash, when it is fetched again', async () => {
      await paid(1_000);
      const hashes: string[] = [];
      for (let time = 0; time < 2; time += 1) {
        const bill = await open();
        await linesOf(bill);
        hashes.push(bill.end().sha256);
      }
      expect(hashes[0]).toBe(hashes[1]);
    });

    it('B94: reads the bill of a day on which nothing happened', async () => {
      const bill = await open();
      expect(await linesOf(bill)).toEqual([]);
      const { totals } = bill.end();
      expect((totals ?? []).every((one) => one.payments === 0 && one.paymentsMinor === 0)).toBe(
        true,
      );
    });

    it('B95: answers not_ready while there is none, then the bill', async () => {
      await paid(1_000);
      await running().holdBill(day, 2);
      for (let time = 0; time < 2; time += 1) {
        expect(await running().channel.openTradeBill({ day })).toMatchObject({
          outcome: 'not_ready',
        });
      }
      expect(await linesOf(await open())).toHaveLength(1);
    });

    it('answers not_ready for a day that is not over', async () => {
      const today = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
      const answer = await running().channel.openTradeBill({ day: today });
      expect(answer).toMatchObject({ outcome: 'not_ready' });
    });

    it('B94: takes a file of zero bytes for one that is not ready', async () => {
      await running().spoilBill(day, 'zero_bytes');
      const answer = await running().channel.openTradeBill({ day });
      expect(answer).toMatchObject({ outcome: 'not_ready' });
    });

    it.each<[BillSpoiling, string]>([
      ['cut_off', 'cut_off'],
      ['column_missing', 'wrong_columns'],
      ['wrong_encoding', 'wrong_encoding'],
      ['wrong_day', 'wrong_day'],
      ['bomb', 'too_big'],
    ])('refuses as a whole a file spoilt by %s: %s', async (spoiling, fault) => {
      await paid(1_000);
      await running().spoilBill(day, spoiling);
      const bill = await open();
      const error: unknown = await linesOf(bill).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(TradeBillError);
      expect(error).toMatchObject({ fault });
      expect(() => bill.end()).toThrow();
    });

    it('takes a connection lost under way for a file cut off, never for a whole one', async () => {
      await paid(1_000);
      await running().spoilBill(day, 'connection_lost');
      const answer = await running().channel.openTradeBill({ day });
      // What the network had delivered by then: not even the head of the answer, or a part of the file.
      if (answer.outcome !== 'ready') {
        expect(answer).toMatchObject({ outcome: 'unknown', reason: 'answer_cut_off' });
        return;
      }
      const error: unknown = await linesOf(answer.bill).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ fault: 'cut_off' });
      const { bill } = answer;
      expect(() => bill.end()).toThrow();
    });

    it('keeps the row that it cannot read, with its line', async () => {
      await paid(1_000);
      await running().spoilBill(day, 'row_unreadable');
      const lines = await linesOf(await open());
      expect(lines).toHaveLength(2);
      const broken = lines.filter((line) => line.kind === 'error');
      expect(broken).toHaveLength(1);
      expect(broken[0]).toMatchObject({ amountMinor: null, error: expect.any(String) as string });
      expect(broken[0]?.lineNo).toBeGreaterThan(1);
    });

    it('says never_left when the connection is refused', async () => {
      await running().refuseConnections();
      try {
        const answer = await running().channel.openTradeBill({ day });
        expect(answer).toMatchObject({ outcome: 'never_left', trouble: true });
      } finally {
        await running().acceptConnections();
      }
    });

    it('ends the download with its signal, and calls that no fault of the file', async () => {
      await running().fillBill(day, 20_000);
      const ending = new AbortController();
      const bill = await open(ending.signal);
      const error: unknown = await (async () => {
        for await (const batch of bill.lines()) if (batch.length > 0) ending.abort();
      })().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: 'AbortError' });
      expect(error).not.toBeInstanceOf(TradeBillError);
    });

    it('hands out many rows in batches', async () => {
      await running().fillBill(day, 20_000);
      let rows = 0;
      let most = 0;
      const bill = await open();
      for await (const batch of bill.lines()) {
        rows += batch.length;
        most = Math.max(most, batch.length);
      }
      expect(rows).toBe(20_000);
      expect(most).toBeLessThan(5_000);
    });
  });
}
