/** What an operator can search runs by; registered with the namespace at set-up. */
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';

export const ORDER_ID = defineSearchAttributeKey('OrderId', SearchAttributeType.KEYWORD);
export const MERCHANT_ID = defineSearchAttributeKey('MerchantId', SearchAttributeType.KEYWORD);
export const PAYMENT_STATUS = defineSearchAttributeKey(
  'PaymentStatus',
  SearchAttributeType.KEYWORD,
);
export const CHANNEL = defineSearchAttributeKey('Channel', SearchAttributeType.KEYWORD);
/** Of a fulfilment's run: running, compensating, done or failed. */
export const FULFILMENT_STATUS = defineSearchAttributeKey(
  'FulfilmentStatus',
  SearchAttributeType.KEYWORD,
);
export const NEEDS_REVIEW = defineSearchAttributeKey('NeedsReview', SearchAttributeType.BOOL);

/** Everything that a namespace must know before a run may start. */
export const SEARCH_ATTRIBUTE_KEYS = [
  ORDER_ID,
  MERCHANT_ID,
  PAYMENT_STATUS,
  CHANNEL,
  FULFILMENT_STATUS,
  NEEDS_REVIEW,
];
