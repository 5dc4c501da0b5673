/** Arbitrary JSON as text, for property tests: every legal spelling, not only the one `JSON.stringify` would choose. */
import * as fc from 'fast-check';

/** White space, including none. */
const space = fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n', '  ');

const numberText = fc.oneof(
  fc.constantFrom('0', '-0', '1', '1.0', '1e5', '1E+05', '1e400', '-1.5e-400', '0.1000000000000000055'),
  fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
);

/** The text between the quotes of a string: raw characters and every kind of escape, lone surrogates included. */
const stringPiece = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.constantFrom('\\\\', '\\"', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '[', ']', '{', '}', ',', ':'),
  fc.constantFrom(
    '\\u0041',
    '\\u00e9',
    '\\ud83d\\ude00',
    '\\uD83D',
    '\\ude00',
    '\\u0000',
    '\u{1f600}',
    'é',
    '\u2028',
  ),
);

/** A JSON string literal, quotes included. */
export function jsonStringText(): fc.Arbitrary<string> {
  return fc.array(stringPiece, { maxLength: 5 }).map((pieces) => `"${pieces.join('')}"`);
}

/** Characters and escapes, within which no cut of a literal may fall. */
const literalUnits = [
  '\\n',
  '\\\\',
  '\\"',
  '\\u00e9',
  '\\ud83d',
  '\\ude00',
  '\\u005c',
  'a',
  'é',
  '→',
  '🙂',
  'u',
  '0',
];

/** A JSON string literal of 300,000 UTF-16 units or more that repeats a few of these. It begins at any offset, so cuts fall at any place of the units. */
export function longStringText(): fc.Arbitrary<string> {
  return fc
    .tuple(fc.array(fc.constantFrom(...literalUnits), { minLength: 1, maxLength: 40 }), fc.nat(40))
    .map(([some, shift]) => {
      const unit = some.join('');
      return `"${'x'.repeat(shift)}${unit.repeat(Math.ceil(300_000 / unit.length))}"`;
    });
}

/** Keys repeat now and then, and some are special in JavaScript. */
const keyText = fc.oneof(
  fc.constantFrom('"a"', '"b"', '"\\u0061"', '"list"', '""', '"10"', '"__proto__"', '"constructor"'),
  // No key holds a backslash: after an object with the key `\`, V8 13.6 reads `"\u0061"` in the next one as the same key.
  jsonStringText().filter((text) => !(JSON.parse(text) as string).includes('\\')),
);

const json = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'json' },
    numberText,
    jsonStringText(),
    fc.constantFrom('true', 'false', 'null'),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .array(padded(tie('value')), { maxLength: 4, depthIdentifier: 'json' })
    .chain((items) => space.map((inner) => `[${items.length > 0 ? items.join(',') : inner}]`)),
  object: fc
    .array(fc.tuple(padded(keyText), padded(tie('value'))), { maxLength: 4, depthIdentifier: 'json' })
    .chain((members) => {
      const joined = members.map(([key, value]) => `${key}:${value}`).join(',');
      return space.map((inner) => `{${members.length > 0 ? joined : inner}}`);
    }),
}));

function padded(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(space, text, space).map((parts) => parts.join(''));
}

/** Any JSON value. */
export function jsonValueText(): fc.Arbitrary<string> {
  return json.value;
}

/** Any JSON object, with white space around it. */
export function jsonObjectText(): fc.Arbitrary<string> {
  return padded(json.object);
}

/** Replaces one of the document's values, chosen by the seed, by JSON; returns the document unchanged when it has none. */
export function replacedValue(text: string, seed: number, value: string): string {
  const marker = ['marked for replacement'];
  if (!text.startsWith('{')) return text;
  const document: unknown = JSON.parse(text);
  const places: (() => void)[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const holder = node as Record<string, unknown>;
    for (const key of Object.keys(holder)) {
      places.push(() => Object.defineProperty(holder, key, { value: marker, enumerable: true }));
      visit(holder[key]);
    }
  };
  visit(document);
  places[seed % Math.max(1, places.length)]?.();
  return JSON.stringify(document).replace(JSON.stringify(marker), () => value);
}
