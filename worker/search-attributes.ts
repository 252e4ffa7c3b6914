import type { Client } from '@temporalio/client';
import { isGrpcServiceError } from '@temporalio/client';
import { SEARCH_ATTRIBUTE_KEYS } from '../workflows/search-attributes';

const NEEDED = SEARCH_ATTRIBUTE_KEYS.map(({ name }) => name);
/** gRPC: PERMISSION_DENIED, UNIMPLEMENTED. A hosted server may keep this list to itself. */
const NOT_TOLD = [7, 12];

/**
 * Makes sure that runs can be started in the namespace: the server refuses every start that carries
 * an attribute it does not know, so without them no order would ever get a run.
 *
 * @returns false when the server does not tell which attributes it has
 * @throws Error that names what is missing, and what to do
 */
export async function requireSearchAttributes(client: Client): Promise<boolean> {
  const { namespace } = client.options;
  let known: Record<string, unknown>;
  try {
    known = (await client.connection.operatorService.listSearchAttributes({ namespace }))
      .customAttributes;
  } catch (error) {
    if (isGrpcServiceError(error) && NOT_TOLD.includes(Number(error.code))) return false;
    throw error;
  }
  const missing = NEEDED.filter((name) => !(name in known));
  if (missing.length === 0) return true;
  throw new Error(
    `namespace ${namespace} lacks the search attributes ${missing.join(', ')}: ` +
      'run scripts/migrate.ts, which registers them, before the worker starts',
  );
}
