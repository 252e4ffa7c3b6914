/**
 * How growth is judged: by the straight line (least squares) through the second half of the samples.
 * The first half is warming up: caches fill, code is compiled. What the line rises by over the second
 * half must stay below a share of its own middle, or below an absolute room where the middle is near 0.
 */

export interface GrowthBound {
  /** Of the middle of the second half. */
  shareMax: number;
  /** In the figure's own unit: less than this is no growth, whatever its share. */
  room: number;
}

export interface Growth {
  /** Mean of the second half. */
  middle: number;
  /** By how much the line rises over the second half; below 0 it falls. */
  rise: number;
  bound: number;
  grows: boolean;
}

export interface Sample {
  /** Since the beginning of the soak, seconds. */
  at_s: number;
  value: number;
}

/** Judges one figure over time. Fewer than four samples in the second half say nothing: no growth. */
export function growthOf(samples: readonly Sample[], { shareMax, room }: GrowthBound): Growth {
  const end = samples.at(-1)?.at_s ?? 0;
  const half = samples.filter(({ at_s: at }) => at >= end / 2);
  const mean = (figures: number[]) =>
    figures.reduce((sum, figure) => sum + figure, 0) / Math.max(1, figures.length);
  const x = mean(half.map(({ at_s: at }) => at));
  const middle = mean(half.map(({ value }) => value));
  const spread = half.reduce((sum, { at_s: at }) => sum + (at - x) ** 2, 0);
  const slope =
    half.length < 4 || spread === 0
      ? 0
      : half.reduce((sum, { at_s: at, value }) => sum + (at - x) * (value - middle), 0) / spread;
  const rise = slope * (end - (half[0]?.at_s ?? end));
  const bound = Math.max(room, Math.abs(middle) * shareMax);
  return { middle: three(middle), rise: three(rise), bound: three(bound), grows: rise > bound };
}

function three(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
