/**
 * Words of our own in place of a vendor's: which lines of a recorded text are ours, and what stands where one is not. The same line
 * always gives the same words, and words of ours stay as they are. Pure.
 */

/** A text with every line of others replaced, and shortened where it has many. The shape stays: indents, empty ends, tags. */
export function ownText(text: string): string {
  return shortened(text.split('\n')).map(ownLine).join('\n');
}

/** True for a line that the recorded loop itself put there: its files, what it asks, what its model says. */
export function isOfLoop(line: string): boolean {
  return ofLoop.some((pattern) => pattern.test(line));
}

/** Machine folders name people and machines; the name of the file says enough. */
export function ownPaths(text: string): string {
  return text.replace(/(?<![\w:/.])(?:\/[\w.@+-]+)+\/(?=[\w.-])/g, '/srv/project/');
}

/** What the scripted model of test/clients and the SDKs' scripted models say and read. */
const ofLoop: readonly RegExp[] = [
  /^(?:\s*\d+(?:\t|: ?|→))?[\w-]+\.log step \d+: \d+ rows checked, all is well$/,
  /^(?:\s*\d+(?:\t|: ?|→))?the secret of [\w.-]+ is \d+$/,
  /^"?(?:Read the log files and tell me their secrets|Read one more file|Thank you)\."?$/,
  /^(?:Step \d+ of \d+|I read “[\w.-]+”|The secrets are [\d, ]+)\.$/,
  /^cat \/srv\/project\/[\w.-]+$/,
  /^const read = await tools\.exec_command\(\{ cmd: "cat \/srv\/project\/[\w.-]+" \}\);$/,
  /^text\(read\.output\);$/,
];

const mostLines = 6;
const longestLine = 60;

/** The first lines and the last two. */
function shortened(lines: readonly string[]): readonly string[] {
  return lines.length <= mostLines ? lines : [...lines.slice(0, mostLines - 2), ...lines.slice(-2)];
}

function ownLine(line: string): string {
  const told = ownPaths(line);
  if (isOfLoop(told)) return told;
  if (told.trim() === '') return '';
  const [, indent = '', open, inner = '', close] =
    /^(\s*)(<(?!\/)[^<>]*>)?([^]*?)(<\/[^<>]*>)?$/.exec(told) ?? [];
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

/** Lines of this vocabulary; signs that JSON or UTF-8 spell in a way of their own are kept one of each. */
function isOwn(line: string): boolean {
  const words = line.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const isShort = line.length <= longestLine + signs.length * 3;
  return isShort && words.length > 0 && words.every((word) => vocabulary.has(word));
}

/** Each stands for all of its kind. */
const signs: readonly (readonly [kind: RegExp, sign: string])[] = [
  [/"/, '"'],
  [/\\/, '\\'],
  [/\t/, '\t'],
  [/[\u0080-\uffff]/, '—'],
  [/\p{Extended_Pictographic}/u, '📜'],
];

/** Sentences about as long as the line, up to a bound. */
function wordsFor(line: string): string {
  const pick = picker(line);
  const wanted = Math.min(line.length, longestLine);
  let said = '';
  while (said === '' || said.length < wanted) {
    const words = [adjectives, nouns, verbs, adjectives, nouns, places, nouns].map(pick);
    for (const [at, word] of words.entries()) {
      const more = at === 0 ? capitalised(word) : word;
      const longer = said === '' ? more : `${said} ${more}`;
      if (said !== '' && longer.length > wanted) return said + signsIn(line);
      said = at === words.length - 1 && longer.length < wanted ? `${longer}.` : longer;
    }
  }
  return said + signsIn(line);
}

function signsIn(line: string): string {
  return signs.flatMap(([kind, sign]) => (kind.test(line) ? ` ${sign}` : [])).join('');
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Picks in an order that only the seed decides (FNV-1a, then a linear congruence). */
function picker(seed: string): (list: readonly string[]) => string {
  let state = 0x811c9dc5;
  for (const character of seed) state = Math.imul(state ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  return (list) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return list[(state >>> 16) % list.length]!;
  };
}
