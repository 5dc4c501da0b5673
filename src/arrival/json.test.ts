import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { undoJson } from '../../bench/content/undo-json.ts';
import { json } from './json.ts';

const tables = '[JSON; tables: [rows]{columns}: row lines]';

/** Returns the text without white space, and as tables if there are any. */
function made(text: string): readonly string[] | undefined {
  return json(text)
    ?.drafts({ lossless: true })
    .map((draft) => draft.text);
}

/** Makes the text long enough to be recognized. */
const note = 'n'.repeat(100);

describe('JSON', () => {
  it('loses its white space and keeps the spelling of numbers, and the order and duplicates of keys', () => {
    expect(
      made(
        `{ "b": [1.0, 1e400, -0, 12345678901234567890],\n "a" : {"x": "a  b\\n", "x": null},\t"note": "${note}" }`,
      ),
    ).toEqual([`{"b":[1.0,1e400,-0,12345678901234567890],"a":{"x":"a  b\\n","x":null},"note":"${note}"}`]);
  });

  it('decodes escaped letters and signs, and keeps necessary escapes', () => {
    expect(
      made(
        `["${note}", "you\\u2019re \\u4f60 \\ud83d\\ude00", "\\\\u2019 \\u0000 \\u0022 \\u005c \\ud83d \\u200b \\u2028"]`,
      ),
    ).toEqual([`["${note}","you’re 你 😀","\\\\u2019 \\u0000 \\u0022 \\u005c \\ud83d \\u200b \\u2028"]`]);
  });

  it('becomes a table if objects have the same members', () => {
    const order = {
      order: '#W1',
      note,
      items: [
        { name: 'Lamp', price: { amount: 12.5, currency: 'EUR' }, size: 'L', due: '2026-05-16' },
        { name: 'Desk, oak', price: { amount: 99, currency: 'EUR' }, due: '14:00:00' },
        { name: ' 12', price: { amount: 1e3, currency: 'true' }, size: null, due: '' },
      ],
    };
    expect(made(JSON.stringify(order))?.at(-1)).toBe(
      [
        tables,
        `{"order":"#W1","note":"${note}","items":[3]{name,price{amount,currency},size,due}:`,
        'Lamp,12.5,EUR,L,2026-05-16',
        '"Desk, oak",99,EUR,,14:00:00',
        '" 12",1000,"true",null,""',
        '}',
      ].join('\n'),
    );
  });

  it("becomes a table if an object's members have the same shape, and refers to the columns of the previous table", () => {
    const seats = (free: number) => ({ free, taken: free + 1, '': [free, 'a'] });
    const flights = {
      note,
      first: { 11: seats(1), 'a b': seats(2), 'c:d': seats(3) },
      last: [seats(4), seats(5)],
    };
    expect(made(JSON.stringify(flights))?.at(-1)).toBe(
      [
        tables,
        `{"note":"${note}","first":{3}{free,taken,""}:`,
        '11:1,2,[1,"a"]',
        'a b:2,3,[2,"a"]',
        '"c:d":3,4,[3,"a"]',
        ',"last":[2]{^}:',
        '4,5,[4,"a"]',
        '5,6,[5,"a"]',
        '}',
      ].join('\n'),
    );
  });

  it('becomes a table if it is JSON lines', () => {
    const lines = [
      '{"level":"info","n":1}',
      `{"level":"warn","n":2,"note":"${note}"}`,
      '{"level":"info","n":3,"note":""}',
    ];
    expect(made(`\n${lines.join('\n')}\n`)?.at(-1)).toBe(
      `${tables}\n\n[3 lines]{level,n,note}:\ninfo,1,\nwarn,2,${note}\ninfo,3,""\n`,
    );
  });

  it('is found in other text, on lines of its own', () => {
    const text = `I clicked "Go". Metadata:\n\n{\n    "title": "A [b] {c}",\n    "note": "${note}"\n}\n\n[1] is a footnote\n{ not json }`;
    expect(made(text)).toEqual([
      `I clicked "Go". Metadata:\n\n{"title":"A [b] {c}","note":"${note}"}\n\n[1] is a footnote\n{ not json }`,
    ]);
  });

  it('is not recognized if a value is invalid, if it is nested too deeply, or in source code', () => {
    expect(made(`{"a": 01, "note": "${note}"}`)).toBeUndefined();
    expect(made(`{"a": .5, "note": "${note}"}`)).toBeUndefined();
    expect(made(`{"a": "\t", "note": "${note}"}`)).toBeUndefined();
    expect(made(`[1, "${note}",]`)).toBeUndefined();
    expect(made('['.repeat(200) + ']'.repeat(200))).toBeUndefined();
    expect(
      made(`const fixture = parse(\n[1, 2, "${note}"]\n);\nexport function load() {\n  return fixture;\n}`),
    ).toBeUndefined();
  });

  it('can be restored value by value, with its spelling', () => {
    fc.assert(
      fc.property(documents, fc.constantFrom(0, 2), (value, indent) => {
        const text = numbersSpelled(JSON.stringify(value, null, indent));
        for (const draft of made(text) ?? []) expect(read(undoJson(draft))).toEqual(read(text));
      }),
      { numRuns: 800 },
    );
  });
});

const key = fc.constantFrom('id', 'name', 'a b', 'x:y', 'a,b', '', '{', 'price', 'é', '1', '^', '"');
const scalar = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e21,
    '',
    ' ',
    'true',
    '12',
    '-',
    'a, b',
    'a:b',
    'x\ny',
    '{}',
    '[1]',
  ),
  fc.string({ maxLength: 6, unit: 'binary' }),
  // Numbers that `JSON.parse` would spell differently.
  fc.constantFrom('#1.0#', '#1e400#', '#12345678901234567890#', '#-0#', '#1E+2#'),
);
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
}));
/** Objects with the same members, some of them missing. */
const rows = fc.uniqueArray(key, { minLength: 1, maxLength: 4 }).chain((keys) =>
  fc.array(
    fc.record(Object.fromEntries(keys.map((each) => [each, anyValue])), { requiredKeys: keys.slice(1) }),
    {
      minLength: 2,
      maxLength: 5,
    },
  ),
);
const documents = fc.oneof(
  fc.record({ note: fc.constant(note), value: anyValue }),
  fc.record({ note: fc.constant(note), rows, more: rows, map: fc.dictionary(key, anyValue) }),
  fc.record({
    note: fc.constant(note),
    map: rows.map((all) => Object.fromEntries(all.map((row, at) => [`k ${at}`, row]))),
  }),
);

function numbersSpelled(text: string): string {
  return text.replace(/"#([^"#]*)#"/g, '$1');
}

/** Parses JSON like `JSON.parse`, but keeps the spelling of numbers and the order of members. */
function read(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) => {
    if (typeof value === 'number') return { number: context?.source };
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { members: Object.entries(value) };
    return value;
  });
}
