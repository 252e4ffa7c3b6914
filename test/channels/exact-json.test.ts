import { parseExactJson, readInteger, readObject, readText } from '../../channels/exact-json';

describe('reading JSON without losing digits', () => {
  it('B76: keeps 9007199254740993 exactly, bare or as text', () => {
    const json = parseExactJson('{"bare":9007199254740993,"text":"9007199254740993"}') ?? {};
    expect(readText(json, 'bare')).toBe('9007199254740993');
    expect(readText(json, 'text')).toBe('9007199254740993');
  });

  it.each(['9007199254740992', '1.5', '1e3', '-0.1', '"100"', 'true', 'null', '{}'])(
    'takes %s for no exact amount',
    (text) => {
      expect(readInteger(parseExactJson(`{"total":${text}}`) ?? {}, 'total')).toBeUndefined();
    },
  );

  it('reads the largest exact amount', () => {
    const json = parseExactJson('{"total":9007199254740991}') ?? {};
    expect(readInteger(json, 'total')).toBe(Number.MAX_SAFE_INTEGER);
  });

  it.each([
    '{"amount":1,"amount":2}',
    '{"amount":1,"amount":1}',
    '{"amount":"1","amount":"1"}',
    '{"a":{"b":1,"b":1}}',
    '{"a":[{"b":null,"b":null}]}',
  ])('B88: refuses the duplicate key in %s', (text) => {
    expect(parseExactJson(text)).toBeUndefined();
  });

  it('does not take colons and quotes inside texts for keys', () => {
    const json = parseExactJson('{"a":"b:c\\"d\\":e\\\\","f":[":",{"g":"h"}]}') ?? {};
    expect(readText(json, 'a')).toBe('b:c"d":e\\');
  });

  it.each(['', '{', 'null', '[]', '"x"', '1', '{"a":1}x', '{"a":NaN}', "{'a':1}"])(
    'B88: takes %p for no object',
    (text) => {
      expect(parseExactJson(text)).toBeUndefined();
    },
  );

  it('B88: survives nesting deeper than the stack', () => {
    expect(parseExactJson(`{"a":${'['.repeat(60_000)}`)).toBeUndefined();
  });

  it('B88: a __proto__ key changes nothing but itself', () => {
    const json = parseExactJson('{"__proto__":{"trade_state":"SUCCESS"},"id":"1"}') ?? {};
    expect(readText(json, 'trade_state')).toBeUndefined();
    expect(({} as Record<string, unknown>).trade_state).toBeUndefined();
    expect(readText(json, 'id')).toBe('1');
    expect(readObject(json, 'constructor')).toBeUndefined();
  });
});
