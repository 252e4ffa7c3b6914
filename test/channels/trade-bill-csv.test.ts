import { parse } from 'csv-parse/sync';
import { CsvRecords } from '../../channels/csv-records';
import type { CsvRecord } from '../../channels/csv-records';
import { seededDie } from '../../mock-channel/faults';

function records(text: string, piece = text.length || 1): CsvRecord[] {
  const csv = new CsvRecords();
  const all: CsvRecord[] = [];
  for (let at = 0; at < text.length; at += piece) all.push(...csv.push(text.slice(at, at + piece)));
  return [...all, ...csv.end()];
}
const cells = (text: string) => records(text).map((one) => one.cells);

describe('CSV records', () => {
  it.each<[string, string, string[][]]>([
    [
      'LF',
      'a,b\nc,d\n',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'CRLF',
      'a,b\r\nc,d\r\n',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'no final newline',
      'a,b\nc,d',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'empty lines',
      'a,b\n\n\r\nc,d\n\n',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'quotes',
      '"a,1","b ""x"""\r\nc,d',
      [
        ['a,1', 'b "x"'],
        ['c', 'd'],
      ],
    ],
    [
      'a line end inside of quotes',
      '"a\nb",c\nd,e',
      [
        ['a\nb', 'c'],
        ['d', 'e'],
      ],
    ],
    [
      'a quote inside of a cell',
      'a 5" b,c\nd,e\n',
      [
        ['a 5" b', 'c'],
        ['d', 'e'],
      ],
    ],
  ])('are read with %s', (_, text, expected) => {
    expect(cells(text)).toEqual(expected);
  });

  it('carry the line on which they begin', () => {
    const read = records('h1,h2\n\n"a\nb\nc",d\ne,f\n');
    expect(read.map(({ lineNo }) => lineNo)).toEqual([1, 3, 6]);
  });

  it('are the same however the text is cut into pieces, and the same as csv-parse reads', () => {
    const roll = seededDie(11);
    const letters = ['a', '字', ',', '"', '\n', '\r\n', ' ', '`', '😀', '12'];
    for (let round = 0; round < 300; round += 1) {
      const rows = Array.from({ length: 1 + Math.floor(roll() * 6) }, () =>
        Array.from({ length: 3 }, () =>
          Array.from(
            { length: Math.floor(roll() * 5) },
            () => letters[Math.floor(roll() * letters.length)],
          ).join(''),
        ),
      );
      const text = rows
        .map((row) =>
          row
            .map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell))
            .join(','),
        )
        .join(roll() < 0.5 ? '\n' : '\r\n');
      const whole = records(text);
      expect(whole.map((one) => one.cells)).toEqual(rows);
      expect(whole.map((one) => one.cells)).toEqual(parse(text, { skip_empty_lines: true }));
      for (const piece of [1, 2, 7]) expect(records(text, piece)).toEqual(whole);
    }
  });

  it('keep a row that is not CSV apart from the rows around it', () => {
    const read = records('a,"b"\n"c"d,e\nf,"g"\n');
    expect(read).toHaveLength(3);
    expect(read[0]?.cells).toEqual(['a', 'b']);
    expect(read[2]?.cells).toEqual(['f', 'g']);
  });

  it('end with a fault when a quote is never closed', () => {
    expect(() => records('a,b\n"c,d\ne,f\n')).toThrow(
      expect.objectContaining({ fault: 'cut_off' }) as Error,
    );
  });

  it('are never longer than 64 KiB, whatever quote is open', () => {
    const csv = new CsvRecords();
    const push = () => {
      for (let time = 0; time < 100; time += 1) csv.push(`"${'x'.repeat(1_000)}`);
    };
    expect(push).toThrow(expect.objectContaining({ fault: 'unreadable' }) as Error);
  });
});
