import { createClient } from '@redis/client';

export type RedisClient = Awaited<ReturnType<typeof connectRedis>>;

/**
 * One connection with the client's own defaults, as its users have it: commands wait while it is away,
 * those that were under way when it broke are rejected, and it connects again by itself.
 */
export async function connectRedis(url: string) {
  const client = createClient({ url });
  // Without a listener a broken connection would end the process; each command tells its own caller.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
