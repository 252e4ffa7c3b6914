/** What an operator can search runs by; registered with the namespace at set-up. */
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';

export const ORDER_ID = defineSearchAttributeKey('OrderId', SearchAttributeType.KEYWORD);
export const MERCHANT_ID = defineSearchAttributeKey('MerchantId', SearchAttributeType.KEYWORD);
export const PAYMENT_STATUS = defineSearchAttributeKey(
  'PaymentStatus',
  SearchAttributeType.KEYWORD,
);
export const CHANNEL = defineSearchAttributeKey('Channel', SearchAttributeType.KEYWORD);
export const NEEDS_REVIEW = defineSearchAttributeKey('NeedsReview', SearchAttributeType.BOOL);
