import type { Context } from 'hono';
import type { ConfiguredChannel } from '../../channels/registry';
import { storeCallback } from '../../db/callbacks';
import type { StoredCallback } from '../../db/callbacks';
import { failpoint } from '../../db/failpoint';
import { readOrder } from '../../db/rows';
import type { ChannelFact } from '../../domain/channel-facts';
import { isIdentifier } from '../../domain/orders';
import type { OrderRef } from '../../domain/orders';
import { settle } from '../../domain/settlement';
import { mediaTypeOf, readBytes } from '../json-body';
import { Problem } from '../problems';
import type { RouteDeps } from '../route';

/** Channels send a few kilobytes; more than this is no callback. */
const CALLBACK_MAX_BYTES = 64 * 1024;
/** The ring is not awaited by the channel, so it may take its time; the relay is behind it. */
const RING_WITHIN_MS = 5_000;

/**
 * The inbox: verify over the raw bytes → store → commit → acknowledge with exactly the channel's
 * words → ring the order's run, without making the channel wait for it. A copy of what is known
 * already is counted and rings nobody.
 */
export async function receiveCallback(c: Context, deps: RouteDeps): Promise<Response> {
  const configured = await findChannel(deps, c.req.param('channel') ?? '');
  const { channel } = configured;
  const rawBody = await readBytes(c.req.raw, CALLBACK_MAX_BYTES);
  if (mediaTypeOf(c.req.raw) !== channel.callbackContentType) {
    throw new Problem(
      'unsupported_media_type',
      `this channel's callbacks come as ${channel.callbackContentType}`,
    );
  }
  const reading = channel.readCallback(rawBody, c.req.header(), new Date());
  if (!reading.ok) {
    deps.log.warn(
      { channel: configured.row.channel, reason: reading.reason, status: reading.status },
      'a callback was refused',
    );
    throw reading.status === 401
      ? new Problem('invalid_signature', 'sign the callback as agreed with this channel')
      : new Problem('malformed_callback', 'the signature is right, the content cannot be read');
  }

  const stored = await storeCallback(deps.pool, reading.fact, rawBody, (state, takenElsewhere) =>
    hasNoEffect(state, reading.fact, configured, takenElsewhere),
  );
  logStored(deps, reading.fact, stored);
  if (stored.copies > 1) deps.metrics.duplicatesStopped.inc({ by: 'inbox' });
  await failpoint('api:callback-committed');
  if (stored.ring && stored.ref) void ring(deps, stored.ref);
  const { status, contentType, body } = channel.acknowledgement;
  return new Response(body, { status, headers: { 'content-type': contentType } });
}

/** @throws Problem channel_not_found */
async function findChannel(deps: RouteDeps, name: string): Promise<ConfiguredChannel> {
  const configured = isIdentifier(name) ? await deps.channels.get(name) : undefined;
  if (!configured) {
    throw new Problem('channel_not_found', 'there is no such channel: check the callback URL');
  }
  return configured;
}

function hasNoEffect(
  state: Parameters<typeof settle>[0],
  fact: ChannelFact,
  { policy, row }: ConfiguredChannel,
  tradeNoTakenElsewhere: boolean,
): boolean {
  const { verdict } = settle(state, fact, {
    now: new Date().toISOString(),
    policy,
    account: { accountId: row.accountId, appId: row.appId },
    tradeNoTakenElsewhere,
  });
  return verdict === 'no_effect';
}

/** A failed ring clears nothing: the relay rings again. */
async function ring(deps: RouteDeps, ref: OrderRef): Promise<void> {
  try {
    const order = await readOrder(deps.pool, ref);
    if (order) await deps.calls.ringDoorbell(order, RING_WITHIN_MS);
  } catch (error) {
    deps.log.warn({ err: error, orderId: ref.orderId }, 'the relay will ring for this callback');
  }
}

function logStored(deps: RouteDeps, fact: ChannelFact, stored: StoredCallback): void {
  const ourNo = fact.kind === 'payment' ? fact.outTradeNo : fact.outRefundNo;
  deps.log.info(
    {
      channel: fact.channel,
      orderId: stored.ref?.orderId,
      ourNo,
      state: fact.state,
      status: stored.status,
      copies: stored.copies,
      rings: stored.ring,
    },
    'a callback was stored',
  );
}
