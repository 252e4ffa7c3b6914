/**
 * What stands before the control workflow, a process of its own as the API is: three routes, each the
 * one call to Temporal that the API makes at that point, and nothing else.
 */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { Client, Connection, WithStartWorkflowOperation } from '@temporalio/client';
import { Hono } from 'hono';
import { orderStartOptions } from '../../workflows/start-options';
import { controlNews, controlPay } from './control-workflow';

/** The id of an order's run in the control: other than any of the product's. */
const MERCHANT = 'control';
const TYPE = 'controlOrder';

async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const connection = await Connection.connect({ address: env['TEMPORAL_ADDRESS'] });
  const client = new Client({ connection, namespace: env['TEMPORAL_NAMESPACE'] });
  const taskQueue = env['TEMPORAL_TASK_QUEUE'] ?? '';
  const optionsOf = (orderId: string) =>
    orderStartOptions(
      { merchantId: MERCHANT, orderId, amountMinor: 10_000, currency: 'CNY', status: 'created' },
      taskQueue,
    );
  const app = new Hono();
  app.get('/healthz', (c) => c.json({ ok: true }));
  app.post('/orders/:id', async (c) => {
    await client.workflow.start(TYPE, { ...optionsOf(c.req.param('id')), args: [] });
    return c.json({ ok: true }, 201);
  });
  app.post('/orders/:id/payments', async (c) => {
    const id = c.req.param('id');
    await client.workflow.executeUpdateWithStart(controlPay, {
      args: [{ requestNo: 'K1' }],
      updateId: `pay:${id}`,
      startWorkflowOperation: new WithStartWorkflowOperation(TYPE, {
        ...optionsOf(id),
        args: [],
      }),
    });
    return c.json({ ok: true }, 201);
  });
  app.post('/orders/:id/news', (c) => {
    // The channel is answered before the run is told, as in the API.
    void client.workflow
      .signalWithStart(TYPE, {
        ...optionsOf(c.req.param('id')),
        args: [],
        signal: controlNews,
        signalArgs: [],
      })
      .catch((error: unknown) => console.error(error));
    return c.json({ ok: true });
  });
  const server = serve({
    fetch: app.fetch,
    hostname: '127.0.0.1',
    port: Number(env['API_PORT']),
  }) as Server;
  await once(server, 'listening');
  process.once('SIGTERM', () => process.exit(0));
}

main(process.env).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
