/**
 * Says what a call was about if its arguments have no word for it. An edit is told by names: definitions that it adds, removes or renames, or the one that it
 * changes; headings in texts for people; else what it imports, or the first name that it calls or sets. Comments and strings name nothing, and no line of a file is quoted. Other calls are told by short values. Pure; linear in
 * its input.
 */
import { isRecord, type JsonRecord } from '../../conversation/json-scan.ts';
import { oneLine, quoted, silent, wholeWords } from '../outcome.ts';

/** Names told of one edit. */
const maxNames = 2;
/** UTF-16 units of the longest name and of the longest title, which are left out if longer, and of the longest text that is read. */
const maxName = 48;
const maxTitle = 72;
const maxText = 20_000;

const oldText = /^(?:old_?(?:string|str|text|source|content)|search|find)$/i;
const newText = /^(?:new_?(?:string|str|text|source|content)|replace(?:ment)?|with)$/i;

/** Stands for names that are not told. */
export const otherNames = '…';

/** Returns the names that tell what an edit changed: two, and `otherNames` behind them if it changed others; none if nothing tells it. */
export function changedNames(sent: JsonRecord, path: string): readonly string[] {
  const { content, edits } = sent;
  const isProse = /\.(?:md|mdx|markdown|txt|rst|adoc|org)$/i.test(path);
  if (typeof content === 'string') return isProse ? headingsIn(linesOf(content)).slice(0, 1) : [];
  const parts = Array.isArray(edits) ? edits.filter(isRecord) : [sent];
  const names = parts.slice(0, 20).flatMap((part) => {
    const before = textOf(part, oldText);
    const after = textOf(part, newText);
    return before === undefined || after === undefined
      ? []
      : namesOf(linesOf(before), linesOf(after), path, isProse);
  });
  const told = [...new Set(names)].filter((name) => name !== '');
  return told.length > maxNames ? [...told.slice(0, maxNames), otherNames] : told;
}

function textOf(part: JsonRecord, key: RegExp): string | undefined {
  const value = Object.entries(part).find(([name, one]) => key.test(name) && typeof one === 'string');
  return value?.[1] as string | undefined;
}

function linesOf(text: string): readonly string[] {
  return text.slice(0, maxText).split('\n');
}

function namesOf(
  before: readonly string[],
  after: readonly string[],
  path: string,
  isProse: boolean,
): readonly string[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const changed = [before, after].map((lines) => lines.slice(start, lines.length - end));
  const word = changed.every(({ length }) => length === 1)
    ? changedWord(changed[0]![0]!, changed[1]![0]!)
    : undefined;
  const [old, fresh] = [before, after].map((lines) => (isProse ? lines : codeIn(lines))) as [
    string[],
    string[],
  ];
  const gone = old.slice(start, old.length - end);
  const made = fresh.slice(start, fresh.length - end);
  const namesIn = isProse ? headingsIn : definitionsIn;
  const [known, left, were, are] = [old, fresh, gone, made].map(namesIn) as string[][];
  const added = newIn(are!, known!);
  const removed = newIn(were!, left!);
  if (added.length === 1 && removed.length === 1) return [`${removed[0]} → ${added[0]}`];
  // Names that are gone are told beside new ones.
  const signed = [...added.map((name) => `+${name}`), ...removed.map((name) => `-${name}`)];
  if (signed.length > 0)
    return [...new Set([signed[0]!, signed.at(removed.length > 0 ? -1 : 0)!, ...signed])];
  // A comment may be about what stands below it; one for a tool says what it is to do.
  const [had, has] = changed.map((lines) => directive.exec(lines.join('\n').slice(0, maxText))?.[1] ?? '');
  const told = !isProse && has !== had ? (has ?? '') : '';
  if (!isProse && [...gone, ...made].join('').trim() === '') return [word ?? told];
  // A line that both have is changed, or stands above what is.
  const around = are![0] ?? namesIn(old.slice(0, start)).at(-1) ?? '';
  if (word !== undefined || isProse) return [around, word ?? ''];
  const [oldOnes, newOnes] = [importsIn(before, old, path), importsIn(after, fresh, path)];
  const imports = importsOf(newIn(newOnes, oldOnes), newIn(oldOnes, newOnes));
  if (imports !== '') return [around, imports];
  return [around, told || (around === '' ? nameUsed(made, old) : '')];
}

/** Returns what tells statements outside of definitions: the longest name that they call or set, one that is new if there is one. */
function nameUsed(made: readonly string[], old: readonly string[]): string {
  const before = old.join('\n');
  const after = made.join('\n');
  // A short name tells something only of a call.
  const names = [...new Set(after.match(used))]
    .slice(0, maxUsed)
    .filter((name) => name.length >= minVariable || after.includes(`${name}(`));
  const fresh = names.filter((name) => !before.includes(name));
  return (fresh.length > 0 ? fresh : names).reduce(
    (best, name) => (name.length > best.length ? name : best),
    '',
  );
}

/** Matches a comment that tells a tool what to do: `//nolint:gosec`, `# type: ignore`, `// eslint-disable-next-line`. */
const directive = /(?<!:)(?:\/\/|\/\*|#|--) ?(@?[a-z]{2,20}(?:[:-] ?[a-z][\w,/-]{1,40}){1,2})/;

/** Names that code uses, as many as are looked at, and UTF-16 units of the shortest one that is not called. */
const maxUsed = 40;
const minVariable = 6;

function newIn(names: readonly string[], known: readonly string[]): readonly string[] {
  const all = new Set(known);
  return names.filter((name) => name.length <= maxName && !all.has(name));
}

/** Matches texts in quotes and comments, each to its end or to that of the text. */
const notCode =
  /"""[^]*?(?:"""|(?![^]))|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|\/\*[^]*?(?:\*\/|(?![^]))|(?<!:)\/\/[^\n]*|(?<!\S)(?:#|--)(?=\s)[^\n]*|(?<=^[ \t]*)\*(?=[\s/]|$)[^\n]*/gm;

function blank(text: string): string {
  if (text.includes('\n')) return text.replaceAll(/[^\n]+/g, '');
  return /^["'`]/.test(text) ? '""' : '';
}

/** UTF-16 units of a line that are read: a quote without an end is searched for one to the end of its line. */
const maxLine = 1_000;

/** Returns lines with empty quotes for texts, and without comments. */
function codeIn(lines: readonly string[]): readonly string[] {
  const read = lines.map((line) => line.slice(0, maxLine));
  return read.join('\n').replaceAll(notCode, blank).split('\n');
}

/** Tells imports that are new, or else those that are gone. */
function importsOf(added: readonly string[], removed: readonly string[]): string {
  const [sign, names] = added.length > 0 ? ['+', added] : ['-', removed];
  return names.length === 0 ? '' : `imports ${sign}${names.slice(0, maxNames).join(`, ${sign}`)}`;
}

/** Matches the code of a line that imports, with its texts empty: in the forms of languages that have a word for it, and in a block of Go. */
const importing = /^\s*(?:import [^(]|from \S+ import |\} from ""|(?:pub )?us(?:e|ing) [^()]+;$|#include )/;
const inBlock = /^\s*(?:(?!return)[\w.]+ )?""$/;
const imported = /["'<\s]([\p{L}_@.][\p{L}\p{N}_@/.:\\-]*)["'>;]*\s*$/u;

/** Returns what lines import. In Go, a line with a text alone is part of a block, unless it ends a longer text. */
function importsIn(lines: readonly string[], code: readonly string[], path: string): readonly string[] {
  return lines.flatMap((line, at) => {
    const bare = code[at]!.slice(0, 300).trimEnd();
    const isText = path.endsWith('.go') && inBlock.test(bare) && !/[+,]\s*$/.test(code[at - 1] ?? '');
    return importing.test(bare) || isText
      ? (imported.exec(line.slice(0, 300))?.[1]?.split('/').slice(-2).join('/') ?? [])
      : [];
  });
}

/** Matches a name that code calls, assigns or takes a member of. */
const used = /(?<![\p{L}\p{N}_$])[\p{L}_$][\p{L}\p{N}_$]{3,}(?=\(|\.\p{L}| :?= |: |=["'$])/gu;

const definition =
  /^\s*(?:(?:export|default|public|private|protected|internal|static|async|abstract|final|open|override|unsafe|pub(?:\([a-z]+\))?) )*(?:func|function\*?|def|class|interface|type|struct|enum|trait|impl|fn|module|namespace|record|object) (?:\([^()]*\) ?)?([\p{L}_$][\p{L}\p{N}_$]*)/u;
/** Matches a value that a file defines at its margin: deeper ones are variables. */
const constant = /^(?:export )?(?:const|let|var|val) ([\p{L}_$][\p{L}\p{N}_$]*)/u;

function definitionsIn(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => {
    const start = line.slice(0, 300);
    const name = (definition.exec(start) ?? constant.exec(start))?.[1];
    return name === undefined || name.length > maxName ? [] : [name];
  });
}

function headingsIn(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => {
    const title = /^#{1,6} +(.*\p{L}.*)$/u.exec(line.slice(0, 300))?.[1];
    const bare = oneLine((title ?? '').replaceAll(/["()]/g, ''));
    return bare === '' || bare.length > maxTitle ? [] : [`"${bare}"`];
  });
}

/** Tells the only word that differs between two lines; undefined if more than that does. */
function changedWord(before: string, after: string): string | undefined {
  const [old, made] = [before, after].map((line) => line.trim().split(/([^\p{L}\p{N}_$.-]+)/u));
  if (old!.length !== made!.length) return undefined;
  const at = old!.findIndex((word, index) => word !== made![index]);
  const [from = '', to = ''] = [old![at], made![at]].map((word) => word?.replace(/(?<!\.)\.+$/, ''));
  const isOne = old!.every((word, index) => index === at || word === made![index]);
  const isWord = [from, to].every((word) => /^[\p{L}\p{N}_$.-]+$/u.test(word) && word.length <= maxName);
  return isOne && isWord ? `${from} → ${to}` : undefined;
}

// Other calls

/** Arguments that name a file. */
export const pathKeys =
  'file_path filePath absolute_path path notebook_path target_file filename file uri'.split(' ');

/** UTF-16 units of all values, and of a note for people. */
const maxAbout = 120;
const maxNote = 80;

/** Returns the short values of other arguments, those with long texts left out. */
export function valuesOf(sent: JsonRecord): string {
  // A note for people says best what a call was about.
  const texts = ['title', 'subject', 'description', 'prompt'].map((key) => sent[key]);
  const note = texts.find((value) => typeof value === 'string');
  const found = note === undefined ? [] : [quoted(note, maxNote)];
  let left = maxAbout - (found[0]?.length ?? 0);
  for (const [key, value] of Object.entries(sent)) {
    if (
      silent.test(key) ||
      pathKeys.includes(key) ||
      (typeof value !== 'string' && typeof value !== 'number') ||
      value === note
    )
      continue;
    const words = oneLine(String(value));
    const whole = found.length === 0 ? wholeWords(words, maxAbout) : words;
    if (whole === '' || whole.length > left) continue;
    found.push(whole);
    left -= whole.length + 2;
  }
  return found.filter((words) => words !== '').join(', ');
}
