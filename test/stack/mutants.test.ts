import { readFileSync } from 'node:fs';
import path from 'node:path';
import { GUARDS } from '../../scripts/mutants/guards';

const read = (file: string) => readFileSync(path.join(__dirname, '..', '..', file), 'utf8');

describe('the table of guards', () => {
  it('names at least twelve', () => expect(GUARDS.length).toBeGreaterThanOrEqual(12));

  it.each(GUARDS.map((guard) => [guard.name, guard] as const))(
    '%s: stands once where the table says, and its test exists',
    (_, guard) => {
      expect(read(guard.file).split(guard.find)).toHaveLength(2);
      expect(read(guard.test.file)).toContain(guard.test.title);
    },
  );
});
