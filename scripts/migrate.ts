import { migrate } from '../db/migrate';
import type { Demo } from './seed';
import { seedDemo } from './seed';
import { ensureNamespace, registerSearchAttributes } from './servers/namespace';
import { connectTemporal } from './servers/temporal';

/**
 * Prepares the two servers that a deployment brings: the newest schema in the database at
 * DATABASE_URL, the namespace and its search attributes at TEMPORAL_ADDRESS. Runs any number of
 * times, and before the processes of a new release start. With `--demo` it also stores the
 * demonstration's shop and channels, from the variables that docker-compose.yml gives.
 */
async function main(): Promise<void> {
  await migrate(required('DATABASE_URL'));
  console.log('the schema is up to date');

  const namespace = process.env['TEMPORAL_NAMESPACE'] ?? 'default';
  const connection = await connectTemporal(required('TEMPORAL_ADDRESS'));
  try {
    await ensureNamespace(connection, namespace);
    await registerSearchAttributes(connection, namespace);
  } finally {
    await connection.close();
  }
  console.log(`namespace ${namespace} has its search attributes`);

  if (!process.argv.includes('--demo')) return;
  const demo: Demo = {
    merchantId: 'demo-shop',
    apiKey: required('DEMO_API_KEY'),
    operatorKey: required('DEMO_OPERATOR_KEY'),
    secondOperatorKey: required('DEMO_SECOND_OPERATOR_KEY'),
    mockAKey: required('MOCK_A_KEY'),
    mockBKey: required('MOCK_B_KEY'),
    notifySecret: '',
    numberSecret: required('NUMBER_SECRET'),
  };
  await seedDemo(required('DATABASE_URL'), demo, {
    mockA: required('MOCK_A_URL'),
    mockB: required('MOCK_B_URL'),
    notify: null,
  });
  console.log('the demonstration is in place');
}

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
