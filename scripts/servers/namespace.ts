import { randomUUID } from 'node:crypto';
import type { Connection } from '@temporalio/client';
import { Client, isGrpcServiceError } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import {
  CHANNEL,
  FULFILMENT_STATUS,
  MERCHANT_ID,
  NEEDS_REVIEW,
  ORDER_ID,
  PAYMENT_STATUS,
  SEARCH_ATTRIBUTE_KEYS,
} from '../../workflows/search-attributes';
import { GiveUp, waitFor } from './wait';

/**
 * The types that our attributes have: how the CLI spells them, and their number in
 * `temporal.api.enums.v1.IndexedValueType`.
 */
const SERVER_TYPES = {
  KEYWORD: { name: 'Keyword', number: 2 },
  BOOL: { name: 'Bool', number: 5 },
} as const;

/** What an operator can search runs by in Temporal Web: name and the server's type of each. */
export const SEARCH_ATTRIBUTES = SEARCH_ATTRIBUTE_KEYS.map(({ name, type }) => ({
  name,
  type: SERVER_TYPES[type],
}));

/** gRPC status codes. */
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;

const USABLE_TIMEOUT_MS = 90_000;
const NAMESPACE_TIMEOUT_MS = 60_000;
const RETENTION_SECONDS = 30 * 24 * 60 * 60;

/**
 * Makes the namespace if the server lacks it, and waits until every part of the server knows it.
 * @throws when it may not be made (a hosted server): then make it there
 */
export async function ensureNamespace(connection: Connection, namespace: string): Promise<void> {
  const described = () =>
    connection.workflowService.describeNamespace({ namespace }).then(
      () => true,
      (error: unknown) => {
        if (isGrpcServiceError(error) && Number(error.code) === NOT_FOUND) return false;
        throw error;
      },
    );
  if (await described()) return;
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: RETENTION_SECONDS as never },
    });
  } catch (error) {
    if (!isGrpcServiceError(error) || Number(error.code) !== ALREADY_EXISTS) throw error;
  }
  // Every part of a server keeps its own list of namespaces and reads it anew every few seconds; a
  // worker that starts asks the part that knows search attributes.
  const isKnown = async () =>
    (await described()) &&
    connection.operatorService.listSearchAttributes({ namespace }).then(
      () => true,
      (error: unknown) => !(isGrpcServiceError(error) && Number(error.code) === NOT_FOUND),
    );
  await waitFor(`the namespace ${namespace}`, NAMESPACE_TIMEOUT_MS, isKnown, 200);
}

/**
 * Registers the search attributes that the namespace lacks and waits until a run can be started
 * with all of them: the server caches what it knows, and refuses a start with an attribute that
 * was registered a moment ago. Runs any number of times.
 * @throws when one exists with another type, or when they do not become usable in time
 */
export async function registerSearchAttributes(
  connection: Connection,
  namespace: string,
): Promise<{ registered: string[] }> {
  // A namespace made a moment ago is not found yet by every part of the server.
  const registered = await waitFor(
    `namespace ${namespace} to take search attributes`,
    NAMESPACE_TIMEOUT_MS,
    () => addMissingAttributes(connection, namespace),
    200,
  );
  await waitFor(
    `the search attributes of namespace ${namespace}`,
    USABLE_TIMEOUT_MS,
    () => canStartWithAttributes(connection, namespace),
    500,
  );
  return { registered };
}

async function addMissingAttributes(connection: Connection, namespace: string): Promise<string[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing: typeof SEARCH_ATTRIBUTES = [];
  for (const attribute of SEARCH_ATTRIBUTES) {
    const { name, type } = attribute;
    const existing = customAttributes[name];
    if (existing === undefined) missing.push(attribute);
    else if (Number(existing) !== type.number) {
      throw new GiveUp(
        `search attribute ${name} of namespace ${namespace} must be ${type.name}; it has type number ${Number(existing)}`,
      );
    }
  }
  if (missing.length > 0) {
    try {
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(missing.map(({ name, type }) => [name, type.number])),
      });
    } catch (error) {
      // Another process registers them at this moment: the start tried afterwards tells.
      if (!isGrpcServiceError(error) || Number(error.code) !== ALREADY_EXISTS) throw error;
    }
  }
  return missing.map(({ name }) => name);
}

/** Starts a run that nobody will carry out, with every attribute, and removes it again. */
async function canStartWithAttributes(connection: Connection, namespace: string): Promise<boolean> {
  const client = new Client({ connection, namespace });
  const handle = await client.workflow.start('searchAttributeCheck', {
    workflowId: `search-attribute-check-${randomUUID()}`,
    taskQueue: 'search-attribute-check',
    workflowExecutionTimeout: '1 minute',
    typedSearchAttributes: new TypedSearchAttributes([
      { key: ORDER_ID, value: 'check' },
      { key: MERCHANT_ID, value: 'check' },
      { key: PAYMENT_STATUS, value: 'check' },
      { key: CHANNEL, value: 'check' },
      { key: FULFILMENT_STATUS, value: 'check' },
      { key: NEEDS_REVIEW, value: false },
    ]),
  });
  await handle.terminate('the search attributes are usable');
  await connection.workflowService.deleteWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: handle.workflowId },
  });
  return true;
}
