import { readFile } from 'node:fs/promises';
import { ChannelConfigurationError } from './adapter';

/**
 * Reads a channel's secrets by role from where its row says they are: `env:NAME` or `file:/path`
 * (white space at the ends of a file is dropped: editors and mounts add newlines).
 *
 * @throws ChannelConfigurationError naming role and reference, never the secret
 */
export async function resolveSecrets(
  channel: string,
  references: Record<string, string>,
  env: Record<string, string | undefined>,
): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {};
  for (const [role, reference] of Object.entries(references)) {
    const secret = await resolve(reference, env);
    // An empty key would let everybody sign.
    if (!secret) {
      throw new ChannelConfigurationError(
        `channel ${channel}: no secret for role "${role}" at ${describe(reference)}`,
      );
    }
    secrets[role] = secret;
  }
  return secrets;
}

async function resolve(
  reference: string,
  env: Record<string, string | undefined>,
): Promise<string | undefined> {
  if (reference.startsWith('env:')) return env[reference.slice('env:'.length)];
  if (!reference.startsWith('file:/')) return undefined;
  try {
    return (await readFile(reference.slice('file:'.length), 'utf8')).trim();
  } catch {
    return undefined;
  }
}

/** A reference of another form may be a secret that somebody put in the wrong place. */
function describe(reference: string): string {
  return /^(env|file):/.test(reference) ? reference : 'a reference that is neither env: nor file:';
}
