/** What stands where a figure would, and is none. */
export const NOT_MEASURED = 'not measured yet';

/** A table of Markdown; the first column is words, the others are figures. */
export function table(
  heads: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const line = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    line(heads),
    line(heads.map((_, i) => (i === 0 ? '---' : '---:'))),
    ...rows.map(line),
  ].join('\n');
}

/** A ratio with its target and whether it holds, in words. */
export function judged(value: number, target: { atLeast: number } | { atMost: number }): string {
  const isMet = 'atLeast' in target ? value >= target.atLeast : value <= target.atMost;
  const words = 'atLeast' in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`;
  return `${value} (${words}: ${isMet ? 'met' : '**missed**'})`;
}

/** The section of a bench that nobody has run. */
export function unmeasured(title: string, command: string): string {
  return `## ${title}\n\n${NOT_MEASURED}: \`npm run bench -- ${command}\``;
}

export function ms(value: number | undefined): string {
  return value === undefined ? NOT_MEASURED : value < 10 ? value.toFixed(2) : value.toFixed(0);
}
