import { STILL_PROCESSING } from '../domain/differences';

/**
 * `classify` of domain/differences.ts in SQL: the same conditions in the same order, over one row of
 * `odd` (l: a line of the bill beside the capture or the refund it finds). The result is
 * `kind|standing|reason`. Parameters of the statement: `feeBasisPoints` names the one with the rate.
 */
export function lineClassSql(feeBasisPoints: string): string {
  const open = (kind: string, reason = '') => `'${kind}|open|${reason}'`;
  const waiting = (kind: string, reason: string) => `'${kind}|waiting|${reason}'`;
  const fee = (sign: '' | '-') => `case
        when ${feeBasisPoints} = 0 then 'matched||'
        when l.fee_minor is null then ${open('fee', 'missing')}
        when l.fee_minor <> ${sign}(${expectedFeeSql('l.amount_minor', feeBasisPoints)})
          then ${open('fee', 'wrong')}
        else 'matched||' end`;
  return `case
    when l.kind = 'error' then ${open('row_error')}
    when l.kind = 'adjustment' then ${open('adjustment')}
    when l.kind not in ('payment', 'reversal', 'refund') then ${open('unknown_row')}
    when l.kind <> 'refund' and l.status <> 'succeeded' then ${open('unknown_row', 'state')}
    when l.appearance > 1 then ${open('duplicate_row', 'repeated')}
    when l.kind <> 'reversal' and l.in_other_bill then ${open('duplicate_row', 'other_bill')}
    when l.kind = 'payment' then case
      when l.capture_id is null and l.order_paid then ${open('duplicate_payment', 'second_trade')}
      when l.capture_id is null then ${open('channel_only')}
      when l.currency is distinct from l.c_currency then ${open('currency')}
      when l.amount_minor is distinct from l.c_amount_minor then ${open('amount')}
      when l.names_other then ${open('status', 'number_of_another')}
      when l.c_status = 'reversed' and l.line_reversed_minor = 0 and not l.c_reversed_later
        then ${open('status', 'reversed_here')}
      when not l.c_settles and l.c_kind in ('surplus_duplicate', 'surplus_late')
        and l.c_refunded_minor + l.c_reversed_minor < l.c_amount_minor then case
          when l.c_reserved_minor + l.c_refunded_minor + l.c_reversed_minor >= l.c_amount_minor
            then ${waiting('duplicate_payment', 'being_refunded')}
          else ${open('duplicate_payment', 'surplus')} end
      else ${fee('')} end
    when l.kind = 'reversal' then case
      when l.capture_id is null then ${open('channel_only', 'reversal')}
      when l.currency is distinct from l.c_currency then ${open('currency')}
      when l.c_reversed_minor < l.line_reversed_minor then ${open('status', 'not_reversed_here')}
      else 'matched||' end
    when l.refund_id is null then ${open('refund_channel_only')}
    when l.second_refund then ${open('refund_channel_only', 'second_refund')}
    when l.currency is distinct from l.f_currency or l.amount_minor is distinct from l.f_amount_minor
      then ${open('refund_amount')}
    when l.status = 'succeeded' and l.f_status not in ('succeeded', 'returned')
      then ${open('refund_status', 'not_succeeded_here')}
    when l.status = 'succeeded' then ${fee('-')}
    when l.status = 'processing' then case
      when l.f_status in ('succeeded', 'returned') then 'matched||'
      when l.f_status in ('failed', 'abnormal') then ${open('refund_status', 'not_processing_here')}
      when l.f_answered_since then ${waiting('refund_status', STILL_PROCESSING)}
      else ${open('refund_status', STILL_PROCESSING)} end
    when l.status = 'failed' and l.f_status = 'failed' then 'matched||'
    when l.status = 'failed' then ${open('refund_status', 'failed_there')}
    else ${open('refund_status', 'unknown_word')} end`;
}

/** The class of what only we have (o: a row of `ours`). */
export const OURS_CLASS_SQL = `case
    when o.paired_elsewhere then 'matched||'
    when o.near_midnight and not o.pool_over
      then case when o.is_refund then 'refund_ours_only|suspense|' else 'ours_only|suspense|' end
    else case when o.is_refund then 'refund_ours_only|open|' else 'ours_only|open|' end end`;

/** `expectedFeeMinor` in SQL: half up, and no product leaves bigint. */
export function expectedFeeSql(amount: string, feeBasisPoints: string): string {
  return `(${amount} / 10000) * ${feeBasisPoints} + ((${amount} % 10000) * ${feeBasisPoints} + 5000) / 10000`;
}
