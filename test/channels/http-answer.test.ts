import { readRetryAfter, sortByHttp } from '../../channels/http-answer';

const now = new Date('2026-05-01T08:00:00.000Z');

describe('what HTTP alone decides', () => {
  it.each<[string | undefined, number | null]>([
    ['1', 1_000],
    ['0', 0],
    [' 120 ', 120_000],
    ['Fri, 01 May 2026 08:00:30 GMT', 30_000],
    ['Fri, 01 May 2026 07:00:00 GMT', 0],
    ['-1', null],
    ['1.5', null],
    ['soon', null],
    ['', null],
    [undefined, null],
  ])('reads Retry-After %p as %p ms', (header, ms) => {
    expect(readRetryAfter(header, now)).toBe(ms);
  });

  it.each([
    [429, { reason: 'rate_limited', retryAfterMs: 1_000, trouble: false }],
    [500, { reason: 'http_500', retryAfterMs: 1_000, trouble: true }],
    [503, { reason: 'http_503', retryAfterMs: 1_000, trouble: true }],
    [302, { reason: 'http_302', retryAfterMs: null, trouble: false }],
    [304, { reason: 'http_304', retryAfterMs: null, trouble: false }],
  ])('B20: a %d says nothing about the number', (status, noAnswer) => {
    const headers = { 'retry-after': '1' };
    const body = Buffer.from('{"code":"10000"}');
    expect(sortByHttp({ result: 'answer', status, headers, body }, now)).toEqual({
      noAnswer: { outcome: 'unknown', ...noAnswer },
    });
  });

  it.each([200, 201, 400, 403, 404, 409, 422])('leaves a %d to the adapter', (status) => {
    const exchange = { result: 'answer' as const, status, headers: {}, body: Buffer.alloc(0) };
    expect(sortByHttp(exchange, now)).toEqual({ readable: exchange });
  });
});
