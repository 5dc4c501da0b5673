/**
 * Runs every pattern literal of `src` on long texts that repeat its own parts. A pattern that backtracks, or that reads the rest of the text again from every
 * place, needs minutes for a text of 1 MB and holds the thread. A pattern in `shortOnly` is such a pattern, and its caller hands it short texts only.
 *
 * Traps: texts are made from the letters of a pattern, not from its meaning, so a pattern may be slow for a text that none of these is. Patterns that are
 * made at run time (`new RegExp`) are not seen; `hostile-texts.laws.test.ts` runs them, with short texts. The limit is a hundred times what a pattern needs
 * that reads a text once, and must be exceeded twice, so that a loaded machine does not fail it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createContext, Script } from 'node:vm';
import { parseSync, Visitor } from 'oxc-parser';
import { expect, it } from 'vitest';

/** UTF-16 units of a long text: its square is seconds. */
const long = 150_000;
/** A pattern gets this much time for it, in each of two tries. One that reads a text once needs a hundredth. */
const limitMs = 1_000;

/** Patterns for short texts: the longest text that a caller hands over, in UTF-16 units, and why no text is longer. */
const shortOnly: Readonly<Record<string, readonly [longest: number, why: string]>> = {
  'recall/text-ranges.ts: ^(?:(c)(?:haracters?|hars?)?|l(?:ines?)?)?\\s*(\\d{0,15})(?:\\s': [
    100,
    'parseRange cuts it',
  ],
  'tokens/catalog.ts: \\[[^\\]]*\\]$': [200, 'nameOf knows no longer name of a model'],
  'cli/hook/clean-settings.ts: (?<=\\n)[ \\t]*#[^\\n]*(?:\\n[ \\t]*(?:#[^\\n]*|\\r?))*$': [
    20_000,
    'a table of a settings file',
  ],
  'cli/savings/find-sessions.ts: rollout-[^/\\\\]*\\.jsonl$': [4_096, 'the path of a file'],
  'cli/savings/find-sessions.ts: [/\\\\]chats[/\\\\].*\\.jsonl?$': [4_096, 'the path of a file'],
  'cli/savings/find-sessions.ts: [/\\\\]chats[/\\\\].*\\.jsonl$': [4_096, 'the path of a file'],
  'cli/wrap/read-settings.ts: ("(?:[^"\\\\]|\\\\.)*")|\\/\\/[^\\n]*|\\/\\*.*?\\*\\/': [
    20_000,
    'a settings file',
  ],
  'cli/wrap/read-settings.ts: ("(?:[^"\\\\]|\\\\.)*")|,(?=\\s*[}\\]])': [20_000, 'a settings file'],
  'outline/facts.ts: "((?:[^"\\\\]|\\\\.){12,2000})"': [8_000, 'sentencesInResult cuts the result'],
  'outline/lib/call-outcome.ts: #?[\\p{L}-]*\\d[\\p{L}\\d-]*': [400, 'a line that tells an outcome'],
  'outline/lib/calls-in-short.ts: (?<=^(?:\\w+=\\S* )*)[\\w./-]+(?: [\\w:-]+){0,2}(?= |$)': [
    400,
    'the line of a command',
  ],
  'outline/lib/calls-in-short.ts: ^[\\w.@~+…-]*[./][\\w./@~+-]*$': [400, 'a word in the line of a call'],
  'outline/lib/subject-words.ts: """[^]*?(?:"""|(?![^]))|"(?:[^"\\\\\\n]|\\\\.)*"|\'(?:[^\'\\\\\\n]|\\\\.': [
    1_000,
    'codeIn cuts each line',
  ],
  'outline/lib/subject-words.ts: ^#{1,6} +(.*\\p{L}.*)$': [300, 'headingsIn cuts each line'],
};

type Pattern = { readonly file: string; readonly source: string; readonly flags: string };

const folder = new URL('../src/', import.meta.url);

function patternsOf(file: string): readonly Pattern[] {
  const found: Pattern[] = [];
  const atLineStarts = new Set<unknown>();
  new Visitor({
    CallExpression({ callee, arguments: given }) {
      if (callee.type === 'Identifier' && callee.name === 'atLineStart') atLineStarts.add(given[1]);
    },
    Literal(node) {
      if (!('regex' in node)) return;
      const { pattern: source, flags } = node.regex;
      found.push({ file, source, flags: atLineStarts.has(node) ? `${flags}y` : flags });
    },
  }).visit(parseSync(file, readFileSync(new URL(file, folder), 'utf8')).program);
  return found;
}

const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
);

const signs = [
  ...Array.from(' \n\t"\'`/\\-_.,:;=!?*|#()[]{}<>a1A…漢。’'),
  'a ',
  ' a',
  'a.',
  '. ',
  'a/',
  'a1',
  'aA',
  '\n\n',
  ' \n',
  'a\n',
  '1 ',
  '\\"',
];

/** Returns short texts like those that a pattern matches: each of its alternatives, read as plain text. */
function readings(source: string): readonly string[] {
  const plain = source
    .replaceAll(/\[\^[^\]]*\]|\\[wS]|\\p\{[^}]*\}|(?<!\\)\./g, 'a')
    .replaceAll('\\d', '1')
    .replaceAll('\\n', '\n')
    .replaceAll(/\\[bB]/g, '')
    .replaceAll(/\\[stPDW]/g, ' ')
    .replaceAll(/\[(\\?.)[^\]]*\]/gu, '$1')
    .replaceAll(/\(\?(?:<?[=!]|:|<\w+>)|(?<!\\)[()^$*+?]|(?<!\\)\{\d+,?\d*\}/g, '')
    .replaceAll(/\\(?=[^\w|])/g, '');
  return plain.split(/(?<!\\)\|/).map((one) => one.replaceAll('\\', ''));
}

function textsFor({ source }: Pattern, length: number): readonly string[] {
  const read = readings(source);
  const units = new Set(signs);
  for (const one of read) {
    for (let end = 1; end <= Math.min(one.length, 12); end++) units.add(one.slice(0, end));
    for (const unit of [one, one.slice(0, -1), ...one.split(/(?<=\W)|(?=\W)/)]) units.add(unit);
  }
  for (const [word] of source.matchAll(/[A-Za-z]{2,}/g)) units.add(word).add(`${word} `).add(` ${word}`);
  units.delete('');
  const begins = new Set([
    '',
    ...read.slice(0, 4).flatMap((one) => [one.slice(0, 2), one.slice(0, one.length / 2)]),
  ]);
  return [...units].flatMap((unit) => {
    const repeated = unit.repeat(Math.ceil(length / unit.length));
    return [...begins].map((begin) => begin + repeated).concat(`${repeated}\u0000`);
  });
}

const context = createContext({});
const script = new Script('pattern.sticky ? pattern.exec(text) : text.replaceAll(pattern, "")');

/** Returns the CPU time that all matches of a pattern in a text take, in milliseconds; Infinity if they take longer than the limit. */
function matchMs({ source, flags }: Pattern, text: string): number {
  const all = /[gy]/.test(flags) ? flags : `${flags}g`;
  Object.assign(context, { pattern: new RegExp(source, all), text });
  const { user } = process.cpuUsage();
  try {
    script.runInContext(context, { timeout: limitMs });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return Infinity;
    throw error;
  }
  return (process.cpuUsage().user - user) / 1_000;
}

/** Returns true if one of the texts takes too long. Short ones tell which are worth a try: one that is read once takes a hundredth of `suspectMs`. */
function isSlow(pattern: Pattern, length: number): boolean {
  const whole = textsFor(pattern, length);
  return textsFor(pattern, Math.min(length, 4_000))
    .map((text, index) => ({ ms: matchMs(pattern, text), index }))
    .filter(({ ms }) => ms > suspectMs)
    .sort((one, other) => other.ms - one.ms)
    .slice(0, 3)
    .some(({ index }) => [1, 2].every(() => matchMs(pattern, whole[index]!) === Infinity));
}

const suspectMs = 1;

it('each pattern reads a long text once, or stands in the list of those for short texts', {
  timeout: 600_000,
}, () => {
  const patterns = files.flatMap(patternsOf);
  const keyOf = ({ file, source }: Pattern) => `${file}: ${source.slice(0, 60)}`;
  const slow = patterns.filter((pattern) => isSlow(pattern, shortOnly[keyOf(pattern)]?.[0] ?? long));
  expect(slow.map(keyOf)).toEqual([]);
  const keys = new Set(patterns.map(keyOf));
  expect(Object.keys(shortOnly).filter((key) => !keys.has(key))).toEqual([]);
});
