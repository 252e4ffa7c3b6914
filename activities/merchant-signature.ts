import { log } from '@temporalio/activity';
import { Webhook } from 'standardwebhooks';
import type { NotificationDeps } from './deps';

/**
 * Headers of the Standard Webhooks specification for a call to a merchant. The signature covers id,
 * time and body. While a secret is being replaced both sign, the current one first: the merchant checks
 * with the one it has. A previous secret that cannot be read any more is left out.
 *
 * @throws Error when the current secret cannot be read
 */
export async function signedHeaders(
  { resolveSecret }: Pick<NotificationDeps, 'resolveSecret'>,
  refs: { secretRef: string; previousSecretRef: string | null },
  message: { id: string; body: string },
): Promise<Record<string, string>> {
  const secrets = [await resolveSecret(refs.secretRef)];
  if (refs.previousSecretRef !== null) {
    try {
      secrets.push(await resolveSecret(refs.previousSecretRef));
    } catch (error) {
      log.warn('the previous secret of a merchant cannot be read', { error });
    }
  }
  const now = new Date();
  return {
    'content-type': 'application/json',
    'webhook-id': message.id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': secrets
      .map((secret) => new Webhook(secret).sign(message.id, now, message.body))
      .join(' '),
  };
}
