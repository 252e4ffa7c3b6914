import { parseArgs } from 'node:util';

/** Whole numbers above 0 by name, from `--name 5`, and switches, from `--name`. */
export function readOptions<Numbers extends string, Switches extends string>(
  args: readonly string[],
  numbers: Record<Numbers, number>,
  switches: readonly Switches[],
): Record<Numbers, number> & Record<Switches, boolean> {
  const names = Object.keys(numbers) as Numbers[];
  const parsed = parseArgs({
    args: [...args],
    options: Object.fromEntries([
      ...names.map((name) => [name, { type: 'string' as const }]),
      ...switches.map((name) => [name, { type: 'boolean' as const }]),
    ]),
  });
  const values = parsed.values as Record<string, string | boolean | undefined>;
  const read = (name: Numbers) => {
    const text = values[name];
    const value = text === undefined ? numbers[name] : Number(text);
    if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} wants a number`);
    return value;
  };
  return Object.fromEntries([
    ...names.map((name) => [name, read(name)]),
    ...switches.map((name) => [name, values[name] === true]),
  ]) as Record<Numbers, number> & Record<Switches, boolean>;
}
