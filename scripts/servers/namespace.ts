import { randomUUID } from 'node:crypto';
import type { Connection } from '@temporalio/client';
import { Client, isGrpcServiceError } from '@temporalio/client';
import type { SearchAttributePair } from '@temporalio/common';
import { TypedSearchAttributes, defineSearchAttributeKey } from '@temporalio/common';
import { GiveUp, waitFor } from './wait';

/** What an operator can search runs by in Temporal Web, with the server's type of each. */
export const SEARCH_ATTRIBUTES = {
  OrderId: 'Keyword',
  MerchantId: 'Keyword',
  PaymentStatus: 'Keyword',
  Channel: 'Keyword',
  NeedsReview: 'Bool',
} as const;

type AttributeName = keyof typeof SEARCH_ATTRIBUTES;

/** Numbers of `temporal.api.enums.v1.IndexedValueType`. */
const INDEXED_VALUE_TYPE = { Keyword: 2, Bool: 5 } as const;

/** gRPC status codes. */
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;

const USABLE_TIMEOUT_MS = 90_000;
const NAMESPACE_TIMEOUT_MS = 60_000;
const RETENTION_SECONDS = 30 * 24 * 60 * 60;

/**
 * Makes the namespace if the server lacks it, and waits until it can be described.
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
  // Every server process keeps its own list of namespaces and reads it anew every few seconds.
  await waitFor(`the namespace ${namespace}`, NAMESPACE_TIMEOUT_MS, described, 200);
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
): Promise<{ registered: AttributeName[] }> {
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

async function addMissingAttributes(
  connection: Connection,
  namespace: string,
): Promise<AttributeName[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing: AttributeName[] = [];
  for (const [name, type] of Object.entries(SEARCH_ATTRIBUTES)) {
    const existing = customAttributes[name];
    if (existing === undefined) missing.push(name as AttributeName);
    else if (Number(existing) !== INDEXED_VALUE_TYPE[type]) {
      throw new GiveUp(
        `search attribute ${name} of namespace ${namespace} must be ${type}; it has type number ${Number(existing)}`,
      );
    }
  }
  if (missing.length > 0) {
    try {
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(
          missing.map((name) => [name, INDEXED_VALUE_TYPE[SEARCH_ATTRIBUTES[name]]]),
        ),
      });
    } catch (error) {
      // Another process registers them at this moment: the start tried afterwards tells.
      if (!isGrpcServiceError(error) || Number(error.code) !== ALREADY_EXISTS) throw error;
    }
  }
  return missing;
}

/** Starts a run that nobody will carry out, with every attribute, and removes it again. */
async function canStartWithAttributes(connection: Connection, namespace: string): Promise<boolean> {
  const client = new Client({ connection, namespace });
  const handle = await client.workflow.start('searchAttributeCheck', {
    workflowId: `search-attribute-check-${randomUUID()}`,
    taskQueue: 'search-attribute-check',
    workflowExecutionTimeout: '1 minute',
    typedSearchAttributes: new TypedSearchAttributes(everyAttribute()),
  });
  await handle.terminate('the search attributes are usable');
  await connection.workflowService.deleteWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: handle.workflowId },
  });
  return true;
}

function everyAttribute(): SearchAttributePair[] {
  return Object.entries(SEARCH_ATTRIBUTES).map(([name, type]) =>
    type === 'Bool'
      ? { key: defineSearchAttributeKey(name, 'BOOL'), value: false }
      : { key: defineSearchAttributeKey(name, 'KEYWORD'), value: 'check' },
  );
}
