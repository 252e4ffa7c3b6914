import type { WireMessage } from './dialect';

/** What goes back to the merchant; `drop`: the connection is cut without a word. */
export type Reply = { drop: true } | WordReply | FileReply;
export type WordReply = { drop: false; status: number } & WireMessage;

/** A file, streamed from disk; `path` null: empty. Fewer bytes sent than claimed: then a lost connection. */
export interface FileReply {
  drop: false;
  status: number;
  headers: Record<string, string>;
  path: string | null;
  bytes: number;
  sendBytes: number;
}

/** HTTP status by refusal code, as PROTOCOL.md has it; other codes are definite refusals, 403. */
export const STATUS_OF_CODE: Record<string, number> = {
  INVALID_SIGNATURE: 401,
  INVALID_REQUEST: 400,
  ACCOUNT_MISMATCH: 403,
  TRADE_NOT_EXIST: 404,
  REFUND_NOT_EXIST: 404,
  TRADE_CONFLICT: 409,
  REFUND_CONFLICT: 409,
  TRADE_ALREADY_PAID: 409,
  ALREADY_PROCESSED: 409,
  TRADE_NOT_PAID: 409,
  REFUND_EXCEEDS: 422,
  RATE_LIMITED: 429,
  SYSTEM_ERROR: 500,
};
