import type { Client } from '@temporalio/client';
import type { Pool } from '../../db/transaction';
import type { BookRecord } from '../../mock-channel/books';
import { checkBills } from './bills';
import { foldBooks } from './channel-books';
import type { ReceivedEvent } from './effects';
import { checkEffects } from './effects';
import type { MerchantEffect } from '../merchant-steps';
import type { Findings } from './findings';
import { together } from './findings';
import { checkFulfilment } from './fulfilment';
import type { JournalLine } from './journal';
import type { MoneyPicture } from './money';
import {
  checkNothingLost,
  checkOneSettlingCapture,
  checkRefundsWithinCaptures,
  checkSameCaptures,
} from './money';
import { checkMoves } from './moves';
import { checkAcknowledged, checkNoServerErrors } from './requests';
import { checkRuns, listOpenRuns } from './runs';
import { OpenCases, readSnapshot } from './snapshot';

export interface BooksCheck {
  pool: Pool;
  /** Reads the channel's books; called once the database is read. */
  channelBooks: () => Promise<BookRecord[]>;
  client: Client;
  /** Only these merchants' orders; absent: everybody's. The books must then be theirs alone, too. */
  merchantIds?: string[];
  journal?: readonly JournalLine[];
  /** Deliveries that the merchant answered with 2xx. */
  received?: readonly ReceivedEvent[];
  /** What the merchant did and took back for its orders, where it keeps a log. */
  effects?: readonly MerchantEffect[];
  /** How far past its due time an order without a run may be: the sweep's bound and its period. */
  pickUpMs?: number;
  /** News of the channel younger than this may still be on its way. */
  graceMs?: number;
}

/** A minute past due, and the sweep that comes every 20 seconds, with a little air. */
const PICK_UP_MS = 90_000;

/**
 * Compares the database, the channel's books and Temporal with the invariants I1 to I10.
 * Changes nothing and may run at any time: what is on its way is no violation. The database is read
 * first and in one picture, so that whatever it holds must already be in the books.
 */
export async function checkBooks(input: BooksCheck): Promise<Findings> {
  const merchantIds = input.merchantIds ?? null;
  const snapshot = await readSnapshot(input.pool, merchantIds);
  const records = await input.channelBooks();
  const runs = await listOpenRuns(input.client, merchantIds);
  const journal = input.journal ?? [];
  const picture: MoneyPicture = {
    snapshot,
    books: foldBooks(records),
    cases: new OpenCases(snapshot.cases),
    graceMs: input.graceMs ?? 0,
  };
  return together([
    checkOneSettlingCapture(picture),
    checkSameCaptures(picture),
    checkRefundsWithinCaptures(picture),
    checkNothingLost(picture),
    checkMoves(snapshot),
    checkAcknowledged(snapshot, journal),
    checkRuns(snapshot, runs, input.pickUpMs ?? PICK_UP_MS),
    checkEffects(snapshot, input.received ?? []),
    await checkBills(input.pool, records),
    checkFulfilment(snapshot, input.effects),
    checkNoServerErrors(journal),
  ]);
}
