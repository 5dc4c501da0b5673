/**
 * Replaces a vendor's lines in a recorded text by generated words. Equal lines get equal words; lines of the recorded loop and generated
 * words stay unchanged. Pure.
 */

/** Replaces every line of others, and shortens long texts. Indents, empty ends and tags stay. */
export function ownText(text: string): string {
  return shortened(text.split('\n')).map(ownLine).join('\n');
}

/** Returns true for a line of the recorded loop itself: its files, its task, its model's text. */
export function isOfLoop(line: string): boolean {
  return ofLoop.some((pattern) => pattern.test(line));
}

/** Replaces machine folders, which can name people and machines; file names stay. */
export function ownPaths(text: string): string {
  return text.replace(/(?<![\w:/.])(?:\/[\w.@+-]+)+\/(?=[\w.-])/g, '/srv/project/');
}

/** The lines that the scripted models of test/clients and of the SDK tests write and read. */
const ofLoop: readonly RegExp[] = [
  /^(?:\s*\d+(?:\t|: ?|→))?[\w-]+\.log step \d+: \d+ rows checked, all is well$/,
  /^(?:\s*\d+(?:\t|: ?|→))?the secret of [\w.-]+ is \d+$/,
  /^"?(?:Read the log files and tell me their secrets|Read one more file|Thank you)\."?$/,
  /^(?:Step \d+ of \d+|I read “[\w.-]+”|The secrets are [\d, ]+)\.$/,
  /^cat \/srv\/project\/[\w.-]+$/,
  /^const read = await tools\.exec_command\(\{ cmd: "cat \/srv\/project\/[\w.-]+" \}\);$/,
  /^text\(read\.output\);$/,
];

const maxLines = 6;
const maxLineLength = 60;

/** Keeps the first lines and the last two. */
function shortened(lines: readonly string[]): readonly string[] {
  return lines.length <= maxLines ? lines : [...lines.slice(0, maxLines - 2), ...lines.slice(-2)];
}

function ownLine(line: string): string {
  const anonymous = ownPaths(line);
  if (isOfLoop(anonymous)) return anonymous;
  if (anonymous.trim() === '') return '';
  const [, indent = '', open, inner = '', close] =
    /^(\s*)(<(?!\/)[^<>]*>)?([^]*?)(<\/[^<>]*>)?$/.exec(anonymous) ?? [];
  const words = inner === '' || isOwn(inner) ? inner : wordsFor(inner);
  return `${indent.slice(0, 8)}${open ? '<note>' : ''}${words}${close ? '</note>' : ''}`;
}

const adjectives = ['quiet', 'folded', 'patient', 'crooked', 'borrowed', 'seventh', 'velvet', 'dusty'];
const nouns = [
  'servants',
  'catalogues',
  'lamps',
  'staircases',
  'drawers',
  'operas',
  'gardens',
  'violins',
  'singers',
  'letters',
];
const verbs = ['mend', 'polish', 'follow', 'carry', 'paint', 'applaud', 'unfold'];
const places = ['beneath', 'beside', 'behind', 'without'];
const vocabulary: ReadonlySet<string> = new Set([...adjectives, ...nouns, ...verbs, ...places]);

/** Returns true for a line of this vocabulary. */
function isOwn(line: string): boolean {
  const words = line.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const isShort = line.length <= maxLineLength + signs.length * 3;
  return isShort && words.length > 0 && words.every((word) => vocabulary.has(word));
}

/** Characters with a special spelling in JSON or UTF-8; one of each kind is kept. */
const signs: readonly (readonly [kind: RegExp, sign: string])[] = [
  [/"/, '"'],
  [/\\/, '\\'],
  [/\t/, '\t'],
  [/[\u0080-\uffff]/, '—'],
  [/\p{Extended_Pictographic}/u, '📜'],
];

/** Writes sentences about as long as the line, up to `maxLineLength`. */
function wordsFor(line: string): string {
  const pick = picker(line);
  const wanted = Math.min(line.length, maxLineLength);
  let text = '';
  while (text === '' || text.length < wanted) {
    const words = [adjectives, nouns, verbs, adjectives, nouns, places, nouns].map(pick);
    for (const [at, word] of words.entries()) {
      const more = at === 0 ? capitalised(word) : word;
      const longer = text === '' ? more : `${text} ${more}`;
      if (text !== '' && longer.length > wanted) return text + signsIn(line);
      text = at === words.length - 1 && longer.length < wanted ? `${longer}.` : longer;
    }
  }
  return text + signsIn(line);
}

function signsIn(line: string): string {
  return signs.flatMap(([kind, sign]) => (kind.test(line) ? ` ${sign}` : [])).join('');
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Returns a function that picks in an order given by the seed (FNV-1a, then a linear congruence). */
function picker(seed: string): (list: readonly string[]) => string {
  let state = 0x811c9dc5;
  for (const character of seed) state = Math.imul(state ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  return (list) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return list[(state >>> 16) % list.length]!;
  };
}
