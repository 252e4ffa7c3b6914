import type { BookRecord } from './books';
import type { Settings } from './control-types';
import { hasTag, seededDie } from './faults';
import type { Ledger } from './ledger';
import type { TradeDesk } from './trade-desk';

/** Payers who pay by themselves some time after a trade was created, for load runs. */
export class AutoPayers {
  private readonly timers = new Set<NodeJS.Timeout>();
  private desk: TradeDesk | undefined;
  private rolledFor: Settings['autoApprove'] = null;
  private roll = seededDie(1);

  constructor(
    private readonly settings: Settings,
    private readonly ledger: Ledger,
  ) {}

  /** Payments due. */
  get due(): number {
    return this.timers.size;
  }

  /** From now on trades are paid; those read back from the books are not. */
  start(desk: TradeDesk): void {
    this.desk = desk;
  }

  notice(record: BookRecord): void {
    const { desk } = this;
    const mode = this.settings.autoApprove;
    if (!desk || !mode || record.type !== 'trade_created') return;
    if (mode !== this.rolledFor) {
      this.rolledFor = mode;
      this.roll = seededDie(mode.seed ?? 1);
    }
    if (mode.dialect && mode.dialect !== record.dialect) return;
    if (mode.tag && !hasTag(record.subject, mode.tag)) return;
    if (mode.probability !== undefined && this.roll() >= mode.probability) return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      const trade = this.ledger.trade(record.outTradeNo, record.dialect);
      if (trade) desk.approve(trade);
    }, mode.afterMs);
    this.timers.add(timer);
  }

  close(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
  }
}
