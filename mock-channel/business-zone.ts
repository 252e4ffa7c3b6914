/** The clock on the channel's wall: local times and dates of one IANA zone. */
export class BusinessZone {
  private readonly clock: Intl.DateTimeFormat;
  /** Asking Intl is slow, and no zone changes its clock within a quarter of an hour of UTC. */
  private readonly aheadByQuarter = new Map<number, number>();

  /** @throws RangeError when there is no such zone */
  constructor(readonly name: string) {
    this.clock = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
  }

  /** `2026-05-01`. */
  dateOf(instant: string | number): string {
    return this.local(instant).slice(0, 10);
  }

  /** `2026-05-01 16:00:00`. */
  timeOf(instant: string): string {
    return this.local(instant).slice(0, 19).replace('T', ' ');
  }

  /** `2026-05-01T16:00:00+08:00`. */
  timeWithOffsetOf(instant: string): string {
    const minutes = this.aheadMs(Date.parse(instant)) / 60_000;
    const size = Math.abs(minutes);
    const offset = `${minutes < 0 ? '-' : '+'}${two(size / 60)}:${two(size % 60)}`;
    return this.local(instant).slice(0, 19) + offset;
  }

  /** The instant of noon on a date, in milliseconds. */
  noonOf(date: string): number {
    const wall = Date.parse(`${date}T12:00:00Z`);
    return wall - this.aheadMs(wall - this.aheadMs(wall));
  }

  private local(instant: string | number): string {
    const at = typeof instant === 'number' ? instant : Date.parse(instant);
    return new Date(at + this.aheadMs(at)).toISOString();
  }

  private aheadMs(at: number): number {
    const quarter = Math.floor(at / 900_000);
    const known = this.aheadByQuarter.get(quarter);
    if (known !== undefined) return known;
    const parts = new Map(
      this.clock.formatToParts(at).map(({ type, value }) => [type as string, value]),
    );
    const part = (type: string): string => parts.get(type) ?? '';
    const shown = Date.parse(
      `${part('year')}-${part('month')}-${part('day')}T${part('hour')}:${part('minute')}:${part('second')}Z`,
    );
    const ahead = shown - Math.floor(at / 1_000) * 1_000;
    this.aheadByQuarter.set(quarter, ahead);
    return ahead;
  }
}

function two(value: number): string {
  return String(Math.trunc(value)).padStart(2, '0');
}
