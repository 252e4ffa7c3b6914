import {
  insertMerchant,
  listMerchants,
  lockMerchant,
  updateMerchant,
} from '../../db/administration';
import type { MerchantRow, MerchantSettings } from '../../db/administration';
import { readFulfilmentSteps } from '../../db/fulfilment-configuration';
import { AdminRefusal, identifier, json, one, oneOf, oneOrNone } from './command';
import { secretReference, table, UsageError, webAddress } from './command';
import type { Command, CommandInput, CommandResult } from './command';

const SETTINGS = {
  name: 'TEXT',
  'notify-url': 'URL|none',
  'notify-secret': 'env:NAME|file:/path|none',
  'previous-secret': 'env:NAME|file:/path|none',
  'late-payment': 'refund|revive',
  'fulfilment-steps': 'JSON',
};

export const merchantCommands: Record<string, Command> = {
  'merchant add': {
    usage: 'merchant add ID --name TEXT',
    summary: 'a new merchant',
    options: SETTINGS,
    words: { least: 1, most: 1 },
    async run({ words, options, client }) {
      const merchantId = identifier('the merchant’s id', words[0]!);
      if (one(options, 'name') === undefined) throw new UsageError('--name is missing');
      const merchant = withOptions(options, {
        merchantId,
        name: '',
        notifyUrl: null,
        notifySecretRef: null,
        notifyPreviousSecretRef: null,
        latePaymentPolicy: 'refund',
        fulfilmentSteps: [],
      });
      if (!(await insertMerchant(client, merchant))) {
        throw new AdminRefusal(`merchant ${merchantId} exists: change it with "merchant set"`);
      }
      return changed(client, merchantId, options);
    },
  },
  'merchant set': {
    usage: 'merchant set ID',
    summary: 'changes what is named, and nothing else; a named address is used (again)',
    options: SETTINGS,
    words: { least: 1, most: 1 },
    async run({ words, options, client }) {
      const { merchant, merchantId } = await existing(client, words[0]!);
      if (Object.keys(options).length === 0) throw new UsageError('name what to set');
      const setsAddress = options['notify-url'] !== undefined;
      await updateMerchant(client, withOptions(options, merchant), setsAddress);
      return changed(client, merchantId, options);
    },
  },
  'merchant rotate-secret': {
    usage: 'merchant rotate-secret ID --to env:NAME|file:/path',
    summary: 'signs with a new secret, and with the one before until --previous-secret none is set',
    options: { to: 'env:NAME|file:/path' },
    words: { least: 1, most: 1 },
    async run({ words, options, client }) {
      const { merchant, merchantId } = await existing(client, words[0]!);
      const to = one(options, 'to');
      if (to === undefined) throw new UsageError('--to is missing');
      const notifySecretRef = secretReference('to', to);
      if (notifySecretRef === merchant.notifySecretRef)
        throw new AdminRefusal(`merchant ${merchantId} signs with ${notifySecretRef} already`);
      if (merchant.notifyPreviousSecretRef !== null) {
        throw new AdminRefusal(
          `merchant ${merchantId} still signs with ${merchant.notifyPreviousSecretRef} too: end that ` +
            `first ("merchant set ${merchantId} --previous-secret none")`,
        );
      }
      const rotated = {
        ...merchant,
        notifySecretRef,
        notifyPreviousSecretRef: merchant.notifySecretRef,
      };
      await updateMerchant(client, rotated, false);
      return changed(client, merchantId, options);
    },
  },
  'merchant list': {
    usage: 'merchant list',
    summary: 'every merchant and how it is told',
    options: {},
    words: { least: 0, most: 0 },
    async run({ client }) {
      const merchants = await listMerchants(client);
      return {
        value: merchants,
        lines: table(
          ['merchant', 'name', 'notify url', 'secret', 'previous', 'late payment', 'steps'],
          merchants.map((m) => [
            m.merchantId,
            m.name,
            m.notifyStoppedAt === null ? m.notifyUrl : `stopped: ${m.notifyStoppedBecause}`,
            m.notifySecretRef,
            m.notifyPreviousSecretRef,
            m.latePaymentPolicy,
            String(m.fulfilmentSteps.length),
          ]),
        ),
      };
    },
  },
};

async function existing(
  client: CommandInput['client'],
  merchantId: string,
): Promise<{ merchant: MerchantRow; merchantId: string }> {
  const merchant = await lockMerchant(client, merchantId);
  if (!merchant) throw new AdminRefusal(`there is no merchant ${merchantId}`);
  return { merchant, merchantId };
}

function withOptions(
  options: Record<string, string[]>,
  merchant: MerchantSettings,
): MerchantSettings {
  const name = one(options, 'name');
  const url = oneOrNone(options, 'notify-url');
  const secret = oneOrNone(options, 'notify-secret');
  const previous = oneOrNone(options, 'previous-secret');
  const late = one(options, 'late-payment');
  const steps = one(options, 'fulfilment-steps');
  const settings: MerchantSettings = {
    merchantId: merchant.merchantId,
    name: name ?? merchant.name,
    notifyUrl: url === undefined ? merchant.notifyUrl : url && webAddress('notify-url', url),
    notifySecretRef: reference('notify-secret', secret, merchant.notifySecretRef),
    notifyPreviousSecretRef: reference(
      'previous-secret',
      previous,
      merchant.notifyPreviousSecretRef,
    ),
    latePaymentPolicy:
      late === undefined
        ? merchant.latePaymentPolicy
        : oneOf('late-payment', late, ['refund', 'revive'] as const),
    fulfilmentSteps:
      steps === undefined
        ? merchant.fulfilmentSteps
        : readFulfilmentSteps(json('fulfilment-steps', steps)),
  };
  if (settings.name.trim() === '') throw new AdminRefusal('--name must not be empty');
  const needsSecret = settings.notifyUrl !== null || settings.fulfilmentSteps.length > 0;
  if (settings.notifySecretRef === null && (needsSecret || settings.notifyPreviousSecretRef)) {
    throw new AdminRefusal('what a merchant is told is signed: name --notify-secret too');
  }
  return settings;
}

function reference(
  name: string,
  said: string | null | undefined,
  otherwise: string | null,
): string | null {
  if (said === undefined) return otherwise;
  return said === null ? null : secretReference(name, said);
}

async function changed(
  client: CommandInput['client'],
  merchantId: string,
  options: Record<string, string[]>,
): Promise<CommandResult> {
  const { merchant } = await existing(client, merchantId);
  return {
    value: merchant,
    lines: [`merchant ${merchantId} is stored`],
    note: { subject: merchantId, detail: options },
  };
}
