/**
 * Says what a call was about if its arguments have no word for it. An edit is told by names: definitions that it adds, removes or renames, or the one that it
 * changes; headings in texts for people; else a name that is new or gone. No line of a file is quoted. Other calls are told by short values. Pure; linear in
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

/** Returns the names that tell what an edit changed, at most two; none if nothing tells it. */
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
      : namesOf(linesOf(before), linesOf(after), isProse);
  });
  return [...new Set(names)].filter((name) => name !== '').slice(0, maxNames);
}

function textOf(part: JsonRecord, key: RegExp): string | undefined {
  const value = Object.entries(part).find(([name, one]) => key.test(name) && typeof one === 'string');
  return value?.[1] as string | undefined;
}

function linesOf(text: string): readonly string[] {
  return text.slice(0, maxText).split('\n');
}

function namesOf(before: readonly string[], after: readonly string[], isProse: boolean): readonly string[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const gone = before.slice(start, before.length - end);
  const made = after.slice(start, after.length - end);
  const namesIn = isProse ? headingsIn : definitionsIn;
  const known = new Set(namesIn(before));
  const left = new Set(namesIn(after));
  const added = namesIn(made).filter((name) => !known.has(name));
  const removed = namesIn(gone).filter((name) => !left.has(name));
  if (added.length === 1 && removed.length === 1) return [`${removed[0]} → ${added[0]}`];
  if (added.length + removed.length > 0)
    return [...added.map((name) => `+${name}`), ...removed.map((name) => `-${name}`)];
  const word = gone.length === 1 && made.length === 1 ? changedWord(gone[0]!, made[0]!) : undefined;
  // A line that both have is changed, or stands above what is.
  const around = namesIn(made).at(0) ?? namesIn(before.slice(0, start)).at(-1) ?? '';
  const named = word ?? (isProse ? '' : freshName(gone, made) || importedName(gone, made));
  return [around, around + named === '' && !isProse ? plainName(gone, made) : named];
}

const imported =
  /^\s*(?:(?:import|from|use|using|require|#include)\b.*?["'<\s]|[\w.]*\s*")([\p{L}_@][\p{L}\p{N}_@/.:-]*)["'>;]*\s*[,)]?\s*$/u;

/** Tells what is imported that was not, or no longer is. */
function importedName(gone: readonly string[], made: readonly string[]): string {
  const [old, fresh] = [gone, made].map((lines) =>
    lines.flatMap((line) => imported.exec(line.slice(0, 300))?.[1]?.split('/').slice(-2).join('/') ?? []),
  );
  const added = fresh!.filter((name) => !old!.includes(name) && name.length <= maxName);
  const removed = old!.filter((name) => !fresh!.includes(name) && name.length <= maxName);
  if (added.length > 0) return `imports +${added.slice(0, maxNames).join(', +')}`;
  return removed.length > 0 ? `imports -${removed.slice(0, maxNames).join(', -')}` : '';
}

/** Matches a name that code calls, assigns or takes a member of. */
const used = /(?<![\p{L}\p{N}_$."'])[\p{L}_$][\p{L}\p{N}_$]{3,}(?=\(|\.\p{L}| :?= |: )/gu;

/** Matches a name that code calls. */
const called = /(?<![\p{L}\p{N}_$])[\p{L}_$][\p{L}\p{N}_$]{3,}(?=\()/gu;

/** Tells a name of one word that code uses anew, or no longer, or else what its changed lines call. Comments and quoted texts have none. */
function plainName(gone: readonly string[], made: readonly string[]): string {
  const [old, fresh] = [gone, made].map((lines) =>
    lines
      .filter((line) => !/^\s*(?:\/\/|#|\*|\/\*|--)/.test(line))
      .map((line) => line.slice(0, 300).replaceAll(/"[^"]*"|'[^']*'|`[^`]*`/g, ''))
      .join('\n'),
  );
  const [known, left] = [old, fresh].map((code): readonly string[] => code!.match(used) ?? []);
  const added = left!.find((name) => name.length <= maxName && !known!.includes(name));
  const removed = known!.find((name) => name.length <= maxName && !left!.includes(name));
  if (added !== undefined) return `+${added}`;
  if (removed !== undefined) return `-${removed}`;
  return (fresh!.match(called) ?? []).find((name) => name.length <= maxName) ?? '';
}

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
  const [from = '', to = ''] = [old![at], made![at]].map((word) => word?.replace(/\.+$/, ''));
  const isOne = old!.every((word, index) => index === at || word === made![index]);
  const isWord = [from, to].every((word) => /^[\p{L}\p{N}_$.-]+$/u.test(word) && word.length <= maxName);
  return isOne && isWord ? `${from} → ${to}` : undefined;
}

const telling = /(?<!\\)[\p{L}_$][\p{L}\p{N}_$]{2,}/gu;

function isName(word: string): boolean {
  return word.length <= maxName && /\p{Ll}\p{Lu}|\w_\w/u.test(word);
}

/** Returns the first name with several words in it that is new, or else gone. */
function freshName(gone: readonly string[], made: readonly string[]): string {
  const [old, fresh] = [gone, made].map((lines) => lines.join('\n').match(telling) ?? []);
  const [known, left] = [new Set(old), new Set(fresh)];
  const added = fresh!.find((word) => isName(word) && !known.has(word));
  if (added !== undefined) return `+${added}`;
  const removed = old!.find((word) => isName(word) && !left.has(word));
  return removed === undefined ? '' : `-${removed}`;
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
