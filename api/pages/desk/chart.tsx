import { Table } from './parts';

export interface Bar {
  /** When, as a person reads it. */
  label: string;
  /** Null: there is nothing to show. */
  value: number | null;
  /** The value in words. */
  says: string;
}

const HEIGHT = 60;
const STEP = 10;
const GAP = 2;
/** So that a value above zero can be told from none. */
const LEAST = 1.5;

/** Bars drawn on the server, with the same figures as a table for whoever does not see them. */
export function Chart({
  title,
  summary,
  bars,
  max,
  heads,
}: {
  title: string;
  summary: string;
  bars: readonly Bar[];
  /** The value of a full bar; the largest one unless given. */
  max?: number;
  heads: readonly [string, string];
}) {
  const top = max ?? Math.max(0, ...bars.map(({ value }) => value ?? 0));
  const heightOf = (value: number | null) =>
    value === null || value <= 0 || top <= 0
      ? 0
      : Math.max(LEAST, (Math.min(value, top) / top) * HEIGHT);
  return (
    <figure class="chart card">
      <figcaption>
        <strong>{title}</strong>
        <br />
        {summary}
      </figcaption>
      <svg
        viewBox={`0 0 ${bars.length * STEP} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${summary}`}
      >
        <line x1="0" y1={HEIGHT} x2={bars.length * STEP} y2={HEIGHT} class="base" />
        {bars.map(({ label, value, says }, i) => (
          <rect
            x={i * STEP + GAP / 2}
            y={HEIGHT - heightOf(value)}
            width={STEP - GAP}
            height={heightOf(value)}
          >
            <title>{`${label}: ${says}`}</title>
          </rect>
        ))}
      </svg>
      <p class="ends soft">
        <span>{bars[0]?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </p>
      <details>
        <summary>The figures</summary>
        <Table caption={title} heads={heads} rows={bars.map(({ label, says }) => [label, says])} />
      </details>
    </figure>
  );
}
