import { Hono, type Context } from 'hono';
import type { z } from 'zod';
import { billKeySchema, billSetupSchema } from './bill-types';
import type { MadeBill } from './bill-types';
import type { Bills } from './bills';

type Read = <Schema extends z.ZodType>(c: Context, schema: Schema) => Promise<z.output<Schema>>;

/** The control interface's part about trade bills (PROTOCOL.md section 3). */
export function billRoutes(bills: Bills, read: Read): Hono {
  const app = new Hono();
  const keyOf = (c: Context) =>
    billKeySchema.parse({ dialect: c.req.query('dialect'), day: c.req.query('day') });

  app.get('/', (c) => c.json(bills.plan(keyOf(c))));
  app.post('/', async (c) => c.json(bills.set(await read(c, billSetupSchema))));
  app.delete('/', (c) => {
    bills.reset(keyOf(c));
    return c.body(null, 204);
  });
  app.post('/prepare', async (c) => {
    const { fileName, rows, bytes, sha256, totals } = await bills.make(
      await read(c, billKeySchema),
    );
    return c.json({ fileName, rows, bytes, sha256, totals } satisfies MadeBill);
  });
  return app;
}
