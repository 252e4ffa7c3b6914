import type { Connection } from '@temporalio/client';
import { Client } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import { ensureNamespace, registerSearchAttributes } from '../../scripts/servers/namespace';
import type { TemporalServer } from '../../scripts/servers/temporal';
import { connectTemporal, startTemporal } from '../../scripts/servers/temporal';
import { NEEDS_REVIEW, ORDER_ID } from '../../workflows/search-attributes';

const NAMES = [
  'OrderId',
  'MerchantId',
  'PaymentStatus',
  'Channel',
  'FulfilmentStatus',
  'NeedsReview',
];
const TEXT = 1;

describe('B124: a server that knows none of our search attributes', () => {
  let server: TemporalServer;
  let connection: Connection;
  beforeAll(async () => {
    server = await startTemporal({ withoutSearchAttributes: true });
    connection = await connectTemporal(server.address);
  });
  afterAll(async () => {
    await connection.close();
    await server.end();
  });

  const start = (namespace: string) =>
    new Client({ connection, namespace }).workflow.start('orderPayment', {
      workflowId: 'order:shop:1',
      taskQueue: 'nobody',
      typedSearchAttributes: new TypedSearchAttributes([
        { key: ORDER_ID, value: '1' },
        { key: NEEDS_REVIEW, value: false },
      ]),
    });

  test('refuses a run that carries them (so the set-up is needed)', async () => {
    await expect(start('default')).rejects.toMatchObject({ cause: { code: 3 } });
  });

  test('in a namespace made a moment ago, runs start at once when the set-up is done', async () => {
    await ensureNamespace(connection, 'fresh');
    expect(await registerSearchAttributes(connection, 'fresh')).toEqual({ registered: NAMES });
    const handle = await start('fresh');
    expect((await handle.describe()).status.name).toBe('RUNNING');
  });

  test('two set-ups at the same time both succeed, and a later one has nothing to do', async () => {
    await Promise.all([
      ensureNamespace(connection, 'shared'),
      ensureNamespace(connection, 'shared'),
    ]);
    await Promise.all([
      registerSearchAttributes(connection, 'shared'),
      registerSearchAttributes(connection, 'shared'),
    ]);
    expect(await registerSearchAttributes(connection, 'shared')).toEqual({ registered: [] });
  });

  test('an attribute of another type stops the set-up with a message that names it', async () => {
    await connection.operatorService.addSearchAttributes({
      namespace: 'default',
      searchAttributes: { OrderId: TEXT },
    });
    await expect(registerSearchAttributes(connection, 'default')).rejects.toThrow(
      'search attribute OrderId of namespace default must be Keyword',
    );
  });
});
