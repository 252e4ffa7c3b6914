import { storableText } from '../domain/channel-facts';
import type { BillLine } from '../domain/trade-bill';

/** Bytes, or so, that are handed to the connection at once: fewer are a call for every few rows. */
const CHUNK_CHARS = 64 * 1024;

/** The columns of `trade_bill_lines` in the order in which `copyText` writes them. */
export const COPY_COLUMNS =
  'line_no, kind, status, out_trade_no, channel_trade_no, out_refund_no, channel_refund_no, ' +
  'amount_minor, currency, fee_minor, occurred_at, word, error';

/**
 * The batches as chunks of PostgreSQL's COPY text format, one chunk after the other, so that no more
 * than one batch and one chunk are held. Source: PostgreSQL manual, COPY, "Text Format".
 */
export async function* copyChunks(
  batches: AsyncIterable<BillLine[]>,
  seen: (batch: BillLine[]) => void,
): AsyncGenerator<Buffer> {
  let text = '';
  for await (const batch of batches) {
    seen(batch);
    for (const line of batch) {
      text += copyText(line);
      if (text.length >= CHUNK_CHARS) {
        yield Buffer.from(text);
        text = '';
      }
    }
  }
  if (text !== '') yield Buffer.from(text);
}

function copyText(line: BillLine): string {
  return (
    `${line.lineNo}\t${line.kind}\t${line.status}\t${cell(line.outTradeNo)}\t` +
    `${cell(line.channelTradeNo)}\t${cell(line.outRefundNo)}\t${cell(line.channelRefundNo)}\t` +
    `${line.amountMinor ?? '\\N'}\t${cell(line.currency)}\t${line.feeMinor ?? '\\N'}\t` +
    `${line.occurredAt ?? '\\N'}\t${cell(line.word)}\t${cell(line.error)}\n`
  );
}

/** Anything but printable ASCII without a backslash takes the careful way. */
const PLAIN = /^[ -[\]-~]*$/;
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function cell(text: string | null): string {
  if (text === null) return '\\N';
  if (PLAIN.test(text)) return text;
  return storableText(text).replace(/[\\\t\n\r]/g, (found) => ESCAPES[found] ?? found);
}
