/**
 * Request bodies that a hostile or an unlucky client may send. Each is built to make one pass over a body expensive, and each is a valid request
 * of its format. The unit of `size` depends on the case: results, messages, tools or bytes.
 */
import { type FormatName, schema, spell, type Step } from './spell.ts';

/** A kind of body in several sizes. */
export type HostileCase = {
  readonly name: string;
  readonly format: FormatName;
  readonly sizes: readonly number[];
  readonly body: (size: number) => object;
};

const formats = ['messages', 'chat', 'responses', 'gemini'] as const;

/** Returns the steps of an agent: a task, then one reply with all calls and their results. */
function oneTurn(
  results: readonly string[],
  input: (at: number) => object = pathOf,
  ids: (at: number) => string = idOf,
) {
  const calls = results.map((_, at) => ({ id: ids(at), input: input(at) }));
  return [task, { calls, results }, { by: 'user', text: 'Go on.' }] as const;
}

/** Returns the steps of an agent that makes one call per reply. */
function manyTurns(results: readonly string[], input: (at: number) => object = pathOf): readonly Step[] {
  return [
    task,
    ...results.map((result, at) => ({ calls: [{ id: idOf(at), input: input(at) }], results: [result] })),
    { by: 'user', text: 'Go on.' },
  ];
}

const task: Step = { by: 'user', text: 'Read them all.' };
const idOf = (at: number) => `call_${at}`;
const pathOf = (at: number) => ({ path: `notes/${at}.txt` });

function times<T>(count: number, make: (at: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

/** Six lines, 179 characters: long enough to be replaced by a reference. */
const equalLines = times(6, (at) => `line ${at} of the same short text`).join('\n');
/** A result that is too short to be replaced by a reference. */
const shortLines = 'ok\nall good\nnothing to do here\nstill nothing\ndone';
const lineOf = (at: number) => `${at}: the value of ${at} is ${(at * 7_919) % 10_007} and it stays that`;

/** Defines a case in each format. */
function inEach(
  name: string,
  sizes: readonly number[],
  steps: (size: number) => readonly Step[],
): readonly HostileCase[] {
  return formats.map((format) => ({ name, format, sizes, body: (size) => spell[format](steps(size)) }));
}

/** Defines a case in one format. */
function inOne(
  name: string,
  sizes: readonly number[],
  steps: (size: number) => readonly Step[],
  format: FormatName = 'messages',
): HostileCase {
  return { name, format, sizes, body: (size) => spell[format](steps(size)) };
}

/** Defines a case whose body cannot be built from steps. */
function raw(name: string, sizes: readonly number[], body: (size: number) => object): HostileCase {
  return { name, format: 'messages', sizes, body };
}

function messagesBody(messages: readonly object[], model = 'claude-sonnet-4-5'): object {
  return { model, max_tokens: 1_000, tools: [{ name: 'read', input_schema: schema }], messages };
}

/** Nests JSON text in a JSON string `depth` times. */
function quoted(value: object, depth: number): string {
  let text = JSON.stringify(value);
  for (let level = 0; level < depth; level++) text = JSON.stringify({ level, text });
  return text;
}

const records = (count: number) =>
  times(count, (at) => ({ id: at, name: `name ${at}`, path: `C:\\a\\"${at}"`, ok: at % 2 === 0 }));
/** Repeats `unit` to about `bytes` bytes. */
const filled = (unit: string, bytes: number) => unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)));
const MB = 1_000_000;
/** Sizes of cases with one large text, in bytes. */
const textBytes = [MB, 2 * MB, 4 * MB, 8 * MB];

export const hostileCases: readonly HostileCase[] = [
  ...inEach('ordinary loop of tools', [MB / 5, MB, 5 * MB, 30 * MB], (bytes) =>
    manyTurns(
      times(bytes / 3_000, (at) => times(50, (line) => lineOf(50 * at + line)).join('\n')),
      (at) => ({ path: `notes/${at}.txt`, reason: `The next file after ${at} may say more.` }),
    ),
  ),
  ...inEach('equal short results in one turn', [1_000, 2_000, 3_000, 5_000, 40_000], (count) =>
    oneTurn(
      times(count, () => shortLines),
      () => ({}),
    ),
  ),
  inOne('equal short results, one per turn', [1_000, 2_000, 3_000, 5_000, 40_000], (count) =>
    manyTurns(
      times(count, () => shortLines),
      () => ({}),
    ),
  ),
  ...inEach('equal results in one turn', [2_000, 3_000, 5_000, 20_000], (count) =>
    oneTurn(times(count, () => equalLines)),
  ),
  ...inEach('equal results, one per turn', [1_000, 2_000, 4_000, 16_000], (count) =>
    manyTurns(times(count, () => equalLines)),
  ),
  inOne('seven results of one label, repeated', [1_000, 2_000, 4_000, 16_000], (count) =>
    manyTurns(
      times(count, (at) => times(6, (line) => lineOf(line + (at % 7))).join('\n')),
      () => ({ path: 'one' }),
    ),
  ),
  inOne('different results of one label', [1_000, 2_000, 4_000, 16_000], (count) =>
    manyTurns(
      times(count, (at) => `${equalLines}\n${lineOf(at)}`),
      () => ({ path: 'one' }),
    ),
  ),
  inOne('results of 4 kB, all different', [240, 480, 960, 1_920, 7_500], (count) =>
    manyTurns(times(count, (at) => times(80, (line) => lineOf(80 * at + line)).join('\n'))),
  ),
  inOne('results that differ in the last byte', [200, 400, 800, 1_600], (count) =>
    manyTurns(
      times(count, (at) => `${filled('the same again\n', 5_000)}${String.fromCharCode(33 + (at % 90))}`),
    ),
  ),
  inOne('results that differ in the first line', [200, 400, 800, 1_600], (count) =>
    manyTurns(times(count, (at) => `${at}\n${times(120, lineOf).join('\n')}`)),
  ),
  inOne('one result of equal lines', [MB, 2 * MB, 4 * MB, 8 * MB], (bytes) =>
    oneTurn([filled('the same again\n', bytes / 2), filled('the same again\n', bytes / 2)]),
  ),
  inOne('two results of many lines', textBytes, (bytes) =>
    oneTurn([
      times(bytes / 90, lineOf).join('\n'),
      times(bytes / 90, lineOf)
        .toReversed()
        .join('\n'),
    ]),
  ),
  inOne('numbered lines repeated', textBytes, (bytes) => {
    const listing = (from: number) =>
      times(bytes / 120, (at) => `${String(at + from).padStart(6)}\t${lineOf(at % 50)}`).join('\n');
    return oneTurn([listing(1), listing(50)]);
  }),
  ...inEach('user messages in a row', [10_000, 20_000, 40_000, 100_000], (count) =>
    times(count, (at) => ({ by: 'user', text: `${at}` })),
  ),
  ...inEach('assistant messages in a row', [10_000, 20_000, 40_000, 100_000], (count) => [
    task,
    ...times(count, (at): Step => ({ by: 'assistant', text: `${at}` })),
    { by: 'user', text: 'Go on.' },
  ]),
  ...inEach('tiny messages of user and assistant', [10_000, 20_000, 40_000, 100_000], (count) =>
    times(count, (at) => ({ by: at % 2 === 0 ? 'user' : 'assistant', text: 'a' })),
  ),
  raw('system messages among others', [5_000, 10_000, 20_000, 40_000], (count) =>
    messagesBody(
      times(count, (at) => ({ role: (['user', 'system', 'assistant'] as const)[at % 3], content: `${at}` })),
    ),
  ),
  raw('reasoning in every reply', [2_000, 4_000, 8_000, 16_000], (count) =>
    messagesBody(
      [
        { role: 'user', content: 'Go.' },
        ...times(count, (at) => [
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: lineOf(at), signature: 'c2lnbmVk' },
              { type: 'tool_use', id: idOf(at), name: 'read', input: pathOf(at) },
            ],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: idOf(at), content: lineOf(at) }] },
        ]).flat(),
      ],
      'claude-opus-4-5',
    ),
  ),
  ...inEach('one message of one long line', [...textBytes, 30 * MB], (bytes) => [
    { by: 'user', text: filled('all work and no play ', bytes) },
  ]),
  inOne('one result of one long word', textBytes, (bytes) => oneTurn([filled('a', bytes)])),
  inOne('one result of spaces', textBytes, (bytes) => oneTurn([filled(' ', bytes)])),
  inOne('one result of line ends', textBytes, (bytes) => oneTurn([filled('\n', bytes / 2)])),
  inOne('one result of quotes', textBytes, (bytes) => oneTurn([filled('"', bytes / 2)])),
  inOne('one result of backslashes', textBytes, (bytes) => oneTurn([filled('\\', bytes / 2)])),
  inOne('one result of emoji', textBytes, (bytes) => oneTurn([filled('🙂', bytes)])),
  inOne('one result of lone surrogates', textBytes, (bytes) => oneTurn(['\ud83d'.repeat(bytes / 6)])),
  inOne('one result of digits', textBytes, (bytes) => oneTurn([filled('1234567890', bytes)])),
  inOne('one result of base64', textBytes, (bytes) =>
    oneTurn([filled('QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGk0', bytes)]),
  ),
  inOne('one result of escape codes', textBytes, (bytes) =>
    oneTurn([filled('\u001b[31mred\u001b[0m\r', bytes)]),
  ),
  inOne('one result of cursor moves', textBytes, (bytes) =>
    oneTurn([filled('\u001b[2A\u001b[5Cx\n', bytes)]),
  ),
  inOne('one result of open tags', textBytes, (bytes) =>
    oneTurn([
      `<!doctype html><html><head><link rel="canonical"><meta property="og:x">${filled('<script><a data-x="', bytes)}`,
    ]),
  ),
  inOne('one result of nested tags', textBytes, (bytes) =>
    oneTurn([
      `<!doctype html><html><link rel="canonical"><meta property="og:x">${filled('<div><a href="x">', bytes)}`,
    ]),
  ),
  inOne('one result of headings', textBytes, (bytes) => oneTurn([filled('# a\n', bytes)])),
  inOne('one result of paths', textBytes, (bytes) =>
    oneTurn([times(bytes / 40, (at) => `src/a/${at % 97}.ts:${at}: const x = ${at};`).join('\n')]),
  ),
  inOne('one result of log lines', textBytes, (bytes) =>
    oneTurn([
      times(
        bytes / 70,
        (at) => `2024-01-01T00:00:${at % 60}Z INFO request ${at} took ${at % 977} ms for ${at % 13}`,
      ).join('\n'),
    ]),
  ),
  inOne('one result of JSON rows', textBytes, (bytes) => oneTurn([JSON.stringify(records(bytes / 80))])),
  inOne('one result of JSON lines', textBytes, (bytes) =>
    oneTurn([
      records(bytes / 80)
        .map((one) => JSON.stringify(one))
        .join('\n'),
    ]),
  ),
  inOne('one result of JSON rows with different keys', textBytes, (bytes) =>
    oneTurn([JSON.stringify(times(bytes / 60, (at) => ({ [`key${at}`]: at, [`other${at % 100}`]: 'x' })))]),
  ),
  inOne('one result of a JSON object with many keys', textBytes, (bytes) =>
    oneTurn([JSON.stringify(Object.fromEntries(times(bytes / 20, (at) => [`key${at}`, at])))]),
  ),
  inOne('JSON quoted three times', [1_000, 5_000, 10_000, 40_000], (count) =>
    oneTurn([quoted(records(count), 3)]),
  ),
  inOne('JSON quoted ten times', [1, 2, 4, 8], (count) =>
    oneTurn([quoted({ a: '"'.repeat(count * 60) }, 10)]),
  ),
  inOne('nested JSON objects and arrays', [100, 200, 400, 800], (depth) =>
    oneTurn(times(20, () => `${'{"a":['.repeat(depth)}1${']}'.repeat(depth)}`)),
  ),
  inOne('deeply nested JSON', textBytes, (bytes) =>
    oneTurn([`${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`]),
  ),
  inOne('truncated JSON', textBytes, (bytes) => oneTurn([filled('{"a":[{"b":"', bytes / 2)])),
  inOne('arguments of one large text', textBytes, (bytes) =>
    manyTurns(['ok'], () => ({ path: filled('all work and no play\n', bytes) })),
  ),
  inOne('arguments with many keys', textBytes, (bytes) =>
    manyTurns(['ok'], () => Object.fromEntries(times(bytes / 20, (at) => [`key${at}`, at]))),
  ),
  inOne('deeply nested arguments', [100, 1_000, 4_000], (depth) =>
    manyTurns(
      times(50, () => 'ok'),
      () => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as object,
    ),
  ),
  ...inEach('calls with one id', [2_000, 4_000, 8_000, 16_000], (count) =>
    oneTurn(
      times(count, (at) => lineOf(at)),
      pathOf,
      () => 'call',
    ),
  ),
  ...inEach('calls in one turn', [2_000, 4_000, 8_000, 16_000], (count) =>
    oneTurn(times(count, (at) => lineOf(at))),
  ),
  ...inEach('failed calls', [2_000, 4_000, 8_000, 16_000], (count) =>
    manyTurns(times(count, (at) => `Error: no such file ${at}`)),
  ),
  raw('texts in one message', [5_000, 10_000, 20_000, 60_000], (count) =>
    messagesBody([{ role: 'user', content: times(count, (at) => ({ type: 'text', text: lineOf(at) })) }]),
  ),
  raw('texts in one result', [5_000, 10_000, 20_000, 60_000], (count) =>
    messagesBody([
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'read', input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'a',
            content: times(count, (at) => ({ type: 'text', text: equalLines + lineOf(at % 3) })),
          },
        ],
      },
    ]),
  ),
  raw('tools', [1_000, 2_500, 5_000, 20_000], (count) => ({
    ...messagesBody([{ role: 'user', content: 'Go.' }]),
    tools: times(count, (at) => ({ name: `tool_${at}`, description: lineOf(at), input_schema: schema })),
  })),
  raw('members of the body', [10_000, 20_000, 40_000, 100_000], (count) => ({
    ...messagesBody([{ role: 'user', content: 'Go.' }]),
    ...Object.fromEntries(times(count, (at) => [`x${at}`, at])),
  })),
];
