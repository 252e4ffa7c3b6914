/** Plots as SVG text, made by hand: a few marks on two axes need no library. */

export interface Bar {
  label: string;
  /** Null: not measured. */
  value: number | null;
  /** The value as it is written beside its bar. */
  says: string;
}

export interface Line {
  name: string;
  points: readonly { x: number; y: number }[];
}

const WIDTH = 720;
const LABELS_WIDTH = 210;
const SAYS_WIDTH = 130;
const BAR_HEIGHT = 18;
const ROW_HEIGHT = 28;
const TITLE_HEIGHT = 34;
const PLOT = { left: 70, right: 20, top: 58, height: 240, bottom: 48 };
/** Told apart also by who sees no colours: they differ in lightness, and each line is named. */
const COLOURS = ['#1f5fa8', '#d9822b', '#2f855a', '#805ad5'];
const TICKS = 5;

/** Horizontal bars from 0, the longest as long as there is room. */
export function barChart(title: string, bars: readonly Bar[]): string {
  const top = Math.max(0, ...bars.map(({ value }) => value ?? 0));
  const room = WIDTH - LABELS_WIDTH - SAYS_WIDTH;
  const rows = bars.map(({ label, value, says }, i) => {
    const y = TITLE_HEIGHT + i * ROW_HEIGHT;
    const length = value === null || top === 0 ? 0 : Math.max(1, (value / top) * room);
    const middle = y + BAR_HEIGHT - 5;
    return [
      `<text x="${LABELS_WIDTH - 8}" y="${middle}" text-anchor="end">${escaped(label)}</text>`,
      `<rect x="${LABELS_WIDTH}" y="${y}" width="${short(length)}" height="${BAR_HEIGHT}" fill="${COLOURS[0]}"/>`,
      `<text x="${short(LABELS_WIDTH + length + 6)}" y="${middle}">${escaped(says)}</text>`,
    ].join('\n');
  });
  return svg(title, TITLE_HEIGHT + bars.length * ROW_HEIGHT + 8, rows.join('\n'));
}

/** Lines over a common axis, both axes from 0, the vertical one logarithmic where that is asked. */
export function lineChart(
  title: string,
  axes: { x: string; y: string; logarithmic?: boolean },
  lines: readonly Line[],
): string {
  const points = lines.flatMap((line) => line.points);
  const xMax = Math.max(1e-9, ...points.map(({ x }) => x));
  const high = Math.max(1e-9, ...points.map(({ y }) => y));
  const low = Math.min(high, ...points.map(({ y }) => y).filter((y) => y > 0));
  const scale = axes.logarithmic
    ? { from: 10 ** Math.floor(Math.log10(low)), to: 10 ** Math.ceil(Math.log10(high) + 1e-9) }
    : { from: 0, to: high };
  const width = WIDTH - PLOT.left - PLOT.right;
  const xAt = (x: number) => short(PLOT.left + (x / xMax) * width);
  const share = (y: number) =>
    axes.logarithmic
      ? Math.log(Math.max(y, scale.from) / scale.from) / Math.log(scale.to / scale.from || 10)
      : (y - scale.from) / (scale.to - scale.from);
  const yAt = (y: number) => short(PLOT.top + (1 - share(y)) * PLOT.height);
  const yTicks = axes.logarithmic
    ? powersOfTen(scale.from, scale.to)
    : Array.from({ length: TICKS + 1 }, (_, i) => (scale.to * i) / TICKS);
  const grid = yTicks.map(
    (y) =>
      `<line x1="${PLOT.left}" y1="${yAt(y)}" x2="${WIDTH - PLOT.right}" y2="${yAt(y)}" stroke="#dddddd"/>` +
      `<text x="${PLOT.left - 6}" y="${yAt(y) + 4}" text-anchor="end">${figure(y)}</text>`,
  );
  const bottom = PLOT.top + PLOT.height;
  const xTicks = Array.from({ length: TICKS + 1 }, (_, i) => (xMax * i) / TICKS).map(
    (x) => `<text x="${xAt(x)}" y="${bottom + 18}" text-anchor="middle">${figure(x)}</text>`,
  );
  const drawn = lines.map((line, i) => {
    const colour = COLOURS[i % COLOURS.length];
    const path = line.points.map(({ x, y }) => `${xAt(x)},${yAt(y)}`).join(' ');
    return (
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>` +
      line.points
        .map(({ x, y }) => `<circle cx="${xAt(x)}" cy="${yAt(y)}" r="2.5" fill="${colour}"/>`)
        .join('') +
      `<text x="${PLOT.left + i * 170}" y="46" fill="${colour}">&#9632; ${escaped(line.name)}</text>`
    );
  });
  const names =
    `<text x="${PLOT.left + width / 2}" y="${bottom + 38}" text-anchor="middle">${escaped(axes.x)}</text>` +
    `<text transform="translate(16 ${PLOT.top + PLOT.height / 2}) rotate(-90)" text-anchor="middle">${escaped(axes.y)}</text>`;
  return svg(title, bottom + PLOT.bottom, [...grid, ...xTicks, ...drawn, names].join('\n'));
}

function svg(title: string, height: number, content: string): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title)}" font-family="sans-serif" font-size="13">`,
    // A background of its own: the page around it may be dark.
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="8" y="20" font-size="15" font-weight="bold">${escaped(title)}</text>`,
    content,
    '</svg>',
    '',
  ].join('\n');
}

function powersOfTen(from: number, to: number): number[] {
  const powers = [];
  for (let power = from; power <= to * 1.0001; power *= 10) powers.push(power);
  return powers;
}

/** As short as can be read: 0.05, 1.5, 20, 300, 4500. */
function figure(value: number): string {
  return String(Number(value.toPrecision(value >= 100 ? 4 : 2)));
}

function short(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replace(
    /[&<>"]/g,
    (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c] ?? c,
  );
}
