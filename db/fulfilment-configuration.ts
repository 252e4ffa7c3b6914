import { z } from 'zod';

/** Steps of one merchant at most: each is a call that an order waits for. */
const STEPS_MAX = 20;

const address = z.url({ protocol: /^https?$/, error: 'must be an http(s) address' }).max(2048);

/** The one place that says what a merchant's fulfilment steps look like; the schema checks the same. */
export const fulfilmentStepsSchema = z
  .array(
    z.strictObject({
      name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, {
        error: 'must be 1 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or digit',
      }),
      url: address,
      /** Null: there is nothing to undo. */
      undo_url: address.nullable().default(null),
      /** Limit of one call; absent: the worker's FULFIL_TIMEOUT_MS. */
      timeout_ms: z.int().min(100).max(60_000).nullable().default(null),
    }),
  )
  .max(STEPS_MAX)
  .refine((steps) => new Set(steps.map(({ name }) => name)).size === steps.length, {
    error: 'every step needs a name of its own',
  });

export type FulfilmentStepConfiguration = z.input<typeof fulfilmentStepsSchema>[number];

/** @throws Error that names every fault of the steps */
export function readFulfilmentSteps(steps: unknown): z.output<typeof fulfilmentStepsSchema> {
  const parsed = fulfilmentStepsSchema.safeParse(steps);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new Error(`the fulfilment steps have faults:\n  ${faults.join('\n  ')}`);
}
