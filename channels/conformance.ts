import { describeBills } from './conformance-bills';
import { describeCallbacks } from './conformance-callbacks';
import { describeCalls } from './conformance-calls';
import type { ConformanceChannel, ConformanceHarness } from './conformance-harness';

/*
 * What every adapter must do, as a test kit: `describeConformance('my-channel', harness)` in a jest
 * file runs it against a server that speaks the channel's protocol. The kit knows no protocol: the
 * harness says how to make the server misbehave and how to write a callback. jest's functions are
 * taken as globals.
 */

/** Declares the suite; every number in it is fresh, so it may run against a used server. */
export function describeConformance(name: string, harness: ConformanceHarness): void {
  describe(`${name} conforms`, () => {
    let server: ConformanceChannel;
    beforeAll(async () => {
      server = await harness.start();
    });
    afterAll(async () => {
      await server.stop();
    });

    describeCalls(() => server);
    describeCallbacks(() => server);
    describeBills(() => server);
  });
}
