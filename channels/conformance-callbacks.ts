import { CURRENCY, freshNumber } from './conformance-harness';
import type { CallbackOrder, ConformanceChannel } from './conformance-harness';

/** The conformance kit's part about callbacks. Reading is pure, so its clock stands still. */
export function describeCallbacks(running: () => ConformanceChannel): void {
  describe('callbacks', () => {
    const now = new Date('2026-05-01T08:00:00.000Z');
    const seconds = (shift: number) => String(now.getTime() / 1_000 + shift);
    const right = (): CallbackOrder => ({
      outTradeNo: freshNumber(),
      channelTradeNo: '4200000000000000000000000001',
      amountMinor: 10_000,
      currency: CURRENCY,
      state: 'paid',
      timestamp: seconds(0),
    });
    const read = (order: CallbackOrder, channel = running().channel) => {
      const { rawBody, headers } = running().writeCallback(order);
      return channel.readCallback(rawBody, headers, now);
    };

    it('reads a right payment callback, the same way every time', () => {
      const order = right();
      const reading = read(order);
      expect(reading).toMatchObject({
        ok: true,
        fact: {
          kind: 'payment',
          state: 'paid',
          outTradeNo: order.outTradeNo,
          channelTradeNo: order.channelTradeNo,
          amountMinor: 10_000,
          currency: CURRENCY,
          accountId: running().accountId,
          appId: running().appId,
          learntFrom: 'callback',
          learntAt: now.toISOString(),
        },
      });
      const { rawBody, headers } = running().writeCallback(order);
      const [one, two] = [0, 1].map(() => running().channel.readCallback(rawBody, headers, now));
      expect(one).toEqual(two);
    });

    it('reads a right refund callback', () => {
      const outRefundNo = freshNumber();
      expect(read({ ...right(), outRefundNo, state: 'succeeded' })).toMatchObject({
        ok: true,
        fact: { kind: 'refund', state: 'succeeded', outRefundNo, amountMinor: 10_000 },
      });
    });

    it.each([
      ['current', true],
      ['previous', true],
      ['unknown', false],
    ] as const)('B80: signed with the %s key: accepted %s', (key, ok) => {
      expect(read({ ...right(), key }).ok).toBe(ok);
    });

    it.each<[string, Partial<CallbackOrder>]>([
      ['no signature', { signature: 'absent' }],
      ['an empty signature', { signature: 'empty' }],
      ['the signature "null"', { signature: 'null' }],
      ['a truncated signature', { signature: 'truncated' }],
      ['the signature of another body', { signature: 'other_body' }],
      ['the sign type "none"', { signatureType: 'none' }],
      ['the sign type "MD5"', { signatureType: 'MD5' }],
      ['no sign type', { signatureType: null }],
      ['a key nobody shares', { key: 'unknown' }],
    ])('B80: refuses %s with 401', (_, difference) => {
      expect(read({ ...right(), ...difference })).toMatchObject({ ok: false, status: 401 });
    });

    it('B80: refuses a body signed rightly but without its status with 400', () => {
      expect(read({ ...right(), withoutStatus: true })).toMatchObject({ ok: false, status: 400 });
    });

    it('B80: refuses a body changed by one bit after signing', () => {
      const { rawBody, headers } = running().writeCallback(right());
      const changed = Buffer.from(rawBody);
      const middle = Math.floor(changed.length / 2);
      changed.writeUInt8(changed.readUInt8(middle) ^ 1, middle);
      expect(running().channel.readCallback(changed, headers, now)).toMatchObject({
        ok: false,
        status: 401,
      });
    });

    it('B83: refuses a callback of this channel at the URL of another', () => {
      expect(read(right(), running().otherChannel)).toMatchObject({ ok: false, status: 401 });
    });

    it.each<[string, string | null, boolean]>([
      ['−299 s', seconds(-299), true],
      ['−300 s', seconds(-300), true],
      ['−301 s', seconds(-301), false],
      ['+299 s', seconds(299), true],
      ['+300 s', seconds(300), true],
      ['+301 s', seconds(301), false],
      ['missing', null, false],
      ['non-numeric', 'yesterday', false],
      ['milliseconds', String(now.getTime()), false],
      ['one hour old', seconds(-3_600), false],
      ['25 hours old', seconds(-90_000), false],
    ])('B82: a timestamp %s', (_, timestamp, ok) => {
      const reading = read({ ...right(), timestamp });
      expect(reading).toMatchObject(ok ? { ok } : { ok, status: 401 });
    });

    it('B86: keeps an unknown status word as an unknown state', () => {
      expect(read({ ...right(), frozen: true })).toMatchObject({
        ok: true,
        fact: { state: 'unknown', word: 'FROZEN' },
      });
    });

    it('B88: answers garbage with 400 or 401 and never throws', () => {
      const bodies = ['', '{', 'null', '[]', '"x"', '{}', '=', '%', '&&&', '{"__proto__":1}'];
      const { headers } = running().writeCallback(right());
      for (const body of [...bodies.map((text) => Buffer.from(text)), Buffer.from([0xff, 0xfe])]) {
        for (const given of [headers, {}]) {
          const reading = running().channel.readCallback(body, given, now);
          expect(reading).toMatchObject({ ok: false, status: expect.any(Number) as number });
          expect([400, 401]).toContain(reading.ok ? 0 : reading.status);
        }
      }
    });

    it('B31: declares exactly one acknowledgement', () => {
      const { status, contentType, body } = running().channel.acknowledgement;
      expect(status).toBeGreaterThanOrEqual(200);
      expect(status).toBeLessThan(300);
      expect(contentType).toMatch(/^[a-z]+\/[a-z]+/);
      expect(typeof body).toBe('string');
    });
  });
}
