import { deriveNumber } from '../../db/numbers';

/** A million numbers in the full run, as published. */
const ORDERS = process.env['FULL'] ? 500_000 : 50_000;

/** In a file of its own: for its whole time no server of this process could answer. */
describe('numbers for a channel', () => {
  it(`B77: ${2 * ORDERS} payment and refund numbers hold no duplicate`, () => {
    const numbers = new Set<string>();
    let misshapen = 0;
    for (let i = 0; i < ORDERS; i++) {
      for (const number of [
        deriveNumber('secret', ['pay', 'shop', `o${i}`, 'mock-a', 'K1'], 0),
        deriveNumber('secret', ['refund', 'shop', `o${i}`, 'K1'], 0),
      ]) {
        if (!/^[0-9A-Z]{30}$/.test(number)) misshapen++;
        numbers.add(number);
      }
    }
    expect(misshapen).toBe(0);
    expect(numbers.size).toBe(2 * ORDERS);
  });
});
