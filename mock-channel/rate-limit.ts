/** At most so many calls in any one second, the last second counted back from now. */
export class RateLimit {
  private admittedAt: number[] = [];

  constructor(private readonly perSecond: () => number | null) {}

  admit(): boolean {
    const most = this.perSecond();
    if (most === null) return true;
    const now = Date.now();
    this.admittedAt = this.admittedAt.filter((at) => at > now - 1000);
    if (this.admittedAt.length >= most) return false;
    this.admittedAt.push(now);
    return true;
  }
}
