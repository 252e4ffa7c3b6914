import type {
  ChannelFault,
  ConformanceChannel,
  FaultedOperation,
} from '../../channels/conformance-harness';
import { MockChannelControl } from '../../mock-channel/control-client';
import type { FaultAction } from '../../mock-channel/control-types';
import { startMockChannel } from '../../mock-channel/server';
import { aRow, anAccount, anAdapter, writeMockCallback } from './mock-callback-writer';
import type { MockDialect } from './mock-callback-writer';

const HUGE_TRADE_NUMBER = '9007199254740993';

/** A mock channel of its own, and the adapter of one of its dialects bound to it. */
export async function startMockHarness(
  dialect: MockDialect,
): Promise<ConformanceChannel & { control: MockChannelControl; gatewayUrl: string }> {
  const [a, b] = [anAccount('mock-a'), anAccount('mock-b')];
  const timeZone = aRow(a).timeZone;
  const server = await startMockChannel({ a, b, settings: { refundAfterMs: 20, timeZone } });
  const control = new MockChannelControl(server.control);
  const account = dialect === 'mock-a' ? a : b;
  const gatewayUrl = dialect === 'mock-a' ? server.a : server.b;
  const row = aRow(account, { gatewayUrl });

  // Small enough that a bomb need not be big.
  const policy = { tradeBillMaxBytes: 8 * 1024 ** 2 };
  const channel = anAdapter(account, gatewayUrl, { policy });

  return {
    control,
    gatewayUrl,
    channel,
    otherChannel: anAdapter(anAccount(dialect, 'other'), gatewayUrl),
    accountId: row.accountId,
    appId: row.appId,
    hugeTradeNumber: HUGE_TRADE_NUMBER,
    async pay(outTradeNo) {
      await control.approve({ outTradeNo, dialect });
    },
    async payOn(outTradeNo, day) {
      await control.capture({ outTradeNo, dialect, at: `${day}T04:00:00.000Z`, callback: false });
    },
    async refundOn(refund, day) {
      const businessClockOffsetMs = Date.parse(`${day}T05:00:00.000Z`) - Date.now();
      await control.configure({ businessClockOffsetMs });
      try {
        expect(await channel.createRefund(refund)).toMatchObject({ outcome: 'answered' });
      } finally {
        await control.configure({ businessClockOffsetMs: 0 });
      }
    },
    async holdBill(day, times) {
      await control.holdBill({ dialect, day }, { times });
    },
    async spoilBill(day, spoiling) {
      const bill = { dialect, day };
      switch (spoiling) {
        case 'zero_bytes':
          return void (await control.holdBill(bill, { zeroBytes: true }));
        case 'cut_off':
          return void (await control.spoilBill(bill, { cutOff: { share: 0.9, how: 'whole' } }));
        case 'connection_lost':
          return void (await control.spoilBill(bill, {
            cutOff: { share: 0.9, how: 'connection' },
          }));
        case 'column_missing':
          return void (await control.spoilBill(bill, { dropColumns: ['amount'] }));
        case 'wrong_encoding':
          return void (await control.spoilBill(bill, { brokenByte: true }));
        case 'wrong_day':
          return void (await control.spoilBill(bill, { sayDay: '2020-01-01' }));
        case 'bomb':
          return void (await control.spoilBill(bill, { bombBytes: 32 * 1024 ** 2 }));
        case 'row_unreadable':
          return void (await control.addBillRow(bill, {
            kind: 'payment',
            cells: { amount: '1.234,56' },
          }));
      }
    },
    async fillBill(day, rows) {
      await control.generateBillRows({ dialect, day, count: rows, seed: 1 });
    },
    async capturedMinor(outTradeNo) {
      return sum(await control.books(), 'captured', outTradeNo);
    },
    async refundedMinor(outTradeNo) {
      return sum(await control.books(), 'refund_executed', outTradeNo);
    },
    async fault(operation, outTradeNo, fault) {
      for (const rule of rulesOf(dialect, operation, fault)) {
        await control.addFault({
          match: { dialect, outTradeNo, operation: rule.operation },
          times: 1,
          do: rule.do,
        });
      }
    },
    refuseConnections: () => control.refuseConnections({ dialect }),
    acceptConnections: () => control.acceptConnections({ dialect }),
    writeCallback: (order) => writeMockCallback(account, order),
    stop: () => server.close(),
  };
}

function rulesOf(
  dialect: MockDialect,
  operation: FaultedOperation,
  fault: ChannelFault,
): { operation: FaultedOperation; do: FaultAction }[] {
  const one = (action: FaultAction) => [{ operation, do: action }];
  switch (fault) {
    case 'drop':
      return one({ answer: 'drop' });
    case 'capture_and_drop':
      return one({ captureNow: true, answer: 'drop' });
    case 'hang':
      return one({ delayBeforeAnswerMs: 600 });
    case 'http_500':
      return one({ answer: 'http', status: 500 });
    case 'http_429':
      return one({ answer: 'http', status: 429, retryAfterSeconds: 1 });
    case 'html':
    case 'empty':
    case 'cut_off':
      return one({ answer: fault, status: 200 });
    case 'missing_amount': {
      const missingField = dialect === 'mock-a' ? 'total_amount' : 'amount';
      return one({ answer: 'odd_fields', missingField, status: 201 });
    }
    case 'missing_trade_number':
      return one({ answer: 'odd_fields', status: 201 });
    case 'unknown_word':
      return one({ answer: 'word', word: 'FROZEN' });
    case 'refuse':
      return one({ answer: 'refuse', code: 'PAYMENT_REFUSED' });
    case 'no_such_payment':
      return one({ answer: 'no_such_order' });
    case 'already_paid':
    case 'already_processed':
      return one({ answer: fault });
    case 'huge_trade_number': {
      // Bare numbers are mock-b's habit; mock-a writes every value as text.
      const bareTradeNo = dialect === 'mock-b';
      return [
        { operation, do: { channelTradeNo: HUGE_TRADE_NUMBER, bareTradeNo } },
        { operation: 'query', do: { bareTradeNo } },
      ];
    }
  }
}

function sum(
  records: { type: string; outTradeNo?: string | null; amountMinor?: number | null }[],
  type: string,
  outTradeNo: string,
): number {
  return records
    .filter((record) => record.type === type && record.outTradeNo === outTradeNo)
    .reduce((total, { amountMinor }) => total + (amountMinor ?? 0), 0);
}
