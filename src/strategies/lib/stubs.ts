/**
 * Writes the texts that replace folded content: what it was, how big it is, and how to read it again. They are pure functions of
 * the original, so that the same fold gives the same bytes. Quotes from the original are JSON-quoted and short: a stub is data,
 * not instructions. Also describes calls for these texts.
 */
import { spellValue, inputOf } from '../../conversation/messages.ts';
import { type Steps, runSteps } from '../../conversation/steps.ts';
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { parseRecord } from '../../conversation/json-scan.ts';
import { answerWords, countOf, quoted, resultEnds } from '../../outline/outcome.ts';
import { type CallWords, wordsOf } from '../../outline/step-line.ts';

/** Replaces a tool result. Its call is right before it, so the stub describes the result alone. */
export function resultStub(folded: {
  readonly text: string;
  /** The call that returned it; undefined if it is unknown. */
  readonly call: CallWords | undefined;
  readonly isError?: boolean | undefined;
  /** True if a later call edited the file that the call read. */
  readonly isEditedSince?: boolean;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { isEditedSince = false, memory, recallTool } = folded;
  const since = isEditedSince ? ' (edited since)' : '';
  return `[Result folded: ${gist(folded)}${since}. ${shows(memory, recallTool)}]`;
}

type FoldedResult = Pick<Parameters<typeof resultStub>[0], 'text' | 'call' | 'isError'>;

/** Says what a result holds: the lines of a file, the failing and the last line of a command, or the first line that tells something. */
function gist({ text, call, isError }: FoldedResult): string {
  const { first, failing, last } = resultEnds({ ...(call ?? unknownCall), isError }, text);
  if (call?.kind === 'read' && failing === undefined) return linesRead(text);
  if (failing !== undefined && failing !== last)
    return `${size(text)}; in it ${quoted(failing, 80)}, at its end ${quoted(last, 60)}`;
  if (call?.kind === 'edit') return `ok, ${size(text)}`;
  const isEnd = call?.kind === 'command' && !call.isListing;
  const line = answerWords(text, isEnd ? last : first, 80);
  if (!line.startsWith('"')) return line === '' ? size(text) : `${size(text)}; ${line}`;
  return `${size(text)}; ${isEnd ? 'at its end' : 'it begins'} ${line}`;
}

const unknownCall = { kind: 'other', isListing: false } as const;

/** Matches the number that a tool puts before a line of a file. */
const lineNumber = /^\s*(\d+)(?:→|\t|\||: )/;

function linesRead(text: string): string {
  const lines = text.split('\n');
  const from = lineNumber.exec(lines[0]!)?.[1];
  const to = lines.findLast((line) => lineNumber.test(line));
  const which =
    from === undefined ? countOf(lines.length, 'line') : `lines ${from}-${lineNumber.exec(to!)![1]}`;
  return `${which} of the file as it was then`;
}

/** Replaces one long text in the arguments of a call. The original is the whole arguments; `path` leads to this text in them. */
export function argumentStub(folded: {
  readonly text: string;
  readonly memory: string;
  readonly path: string;
  readonly recallTool: string | undefined;
}): string {
  const { text, memory, path, recallTool } = folded;
  // A long path would be rejected, or cost more than the whole arguments.
  const shortPath = path.length > 200 ? undefined : path;
  return (
    `[${size(text)} were written here; this note stands in their place and is not what was written. ` +
    `${shows(memory, recallTool, shortPath)}]`
  );
}

/** Replaces an image, document or sound. `from` says which step it came from. */
export function mediaStub(folded: {
  readonly name: string;
  readonly size: string;
  readonly from: string;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { name, size: measured, from, memory, recallTool } = folded;
  return `[${name} folded: ${measured}, ${from}. ${shows(memory, recallTool)}]`;
}

/** Replaces whole messages that were dropped. */
export function messagesStub(folded: {
  readonly messages: number;
  /** Names of the called tools, with their number of calls. */
  readonly calls: ReadonlyMap<string, number>;
  /** Values in the calls, already quoted. */
  readonly values: readonly string[];
  /** Beginnings of the model's replies to the user, already quoted. */
  readonly said: readonly string[];
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const calls = [...folded.calls].map(([name, times]) => `${label(name)} ×${times}`).join(', ');
  const named = folded.values.length === 0 ? '' : `Their calls named ${folded.values.join(', ')}. `;
  return (
    `[Folded ${folded.messages} earlier messages of this conversation${calls === '' ? '' : ` (calls: ${calls})`}. ` +
    named +
    (folded.said.length === 0 ? '' : `Replies in them began ${folded.said.join(', ')}. `) +
    `${way(folded.memory, folded.recallTool)}]`
  );
}

/** Replaces the middle of a text. */
export function clipStub(clipped: {
  readonly characters: number;
  readonly fromLine: number;
  readonly toLine: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { characters, fromLine, toLine, memory, recallTool } = clipped;
  const lines = fromLine === toLine ? `of line ${fromLine}` : `with lines ${fromLine}-${toLine}`;
  return `[Folded ${characters} characters ${lines} of this text. ${way(memory, recallTool)}]`;
}

/** Ends a result that was shortened on arrival. */
export function shrunkNote(shrunk: {
  /** Length of the whole result. */
  readonly characters: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
}): string {
  const { characters, memory, recallTool } = shrunk;
  return `[Shortened from ${characters} characters. ${way(memory, recallTool)}]`;
}

/** Ends a result whose items were shortened. */
export function itemsNote(shortened: {
  readonly items: number;
  readonly of: number;
  readonly memory: string;
  readonly recallTool: string | undefined;
  /** True if the items were rewritten in other words. */
  readonly isReworded?: boolean;
}): string {
  const { items, of, memory, recallTool, isReworded = false } = shortened;
  const which = items === of ? `All ${of} items` : `${items} of ${of} items, the least relevant,`;
  const how = isReworded
    ? 'told in fewer words, or shortened where it says […]'
    : 'shortened where it says […]';
  return `[${which} ${how}. ${way(memory, recallTool)}]`;
}

/** Says in one sentence what to call. */
function shows(memory: string, recallTool: string | undefined, path?: string): string {
  return recallTool === undefined
    ? `Kept as ${memory}`
    : `${recallTool} ${JSON.stringify({ id: memory, path })} shows it`;
}

function way(memory: string, recallTool: string | undefined, path?: string): string {
  return recallTool === undefined
    ? `It is kept as ${memory}.`
    : `To read it again call ${recallTool} with ${JSON.stringify({ id: memory, path })}.`;
}

/** Writes the name of a tool. Clients and models choose names, so anything unusual is quoted. */
export function label(name: string): string {
  return /^[\w.:/-]{1,64}$/.test(name) ? name : quote(name, 64);
}

function size(text: string): string {
  const lines = text.split('\n').length;
  return lines > 1 ? `${lines} lines` : `${text.length} characters`;
}

/** Quotes at most `max` UTF-16 units of a text as a JSON string, never cutting a character. */
export function quote(text: string, max: number): string {
  return JSON.stringify(
    text.length > max
      ? `${text
          .slice(0, max)
          .toWellFormed()
          .replace(/\uFFFD$/, '')}…`
      : text,
  );
}

// Descriptions of calls: whether a call shows a file or searches, its name in references, and the short values that it names. A stub with these
// values spares the model a recall just to find out what something was called.

/**
 * True if a call shows a file unchanged. An agent may edit the file by quoting its lines, so these must not be rewritten. Decided by the call
 * alone, in doubt for a file. `input` is the JSON text of the arguments.
 */
export function isFileContent({ name, input }: { readonly name: string; readonly input: string }): boolean {
  if (wordsOf(name).some((word) => fileWords.has(word))) return true;
  const command = commandIn(input);
  return command !== undefined && printsFile.test(command) && !machineWritten.test(command);
}

/** Words in the names of tools that read files, or return what they changed in one. */
const fileWords = new Set(['read', 'view', 'open', 'cat', 'edit', 'write', 'replace', 'patch', 'notebook']);

/** Programs that print a file, at the start of a command; after a pipe they only filter other output. */
const printsFile =
  /(?:^|[;&(\n]\s*|\bxargs (?:-\S+ )*|-exec )\s*(?:sudo )?(?:cat|head|tail|sed|awk|nl|less|more|bat|git (?:-\S+ \S+ )*(?:show|diff|blame))(?:\s|$)/;

const machineWritten = /\.(?:log|out|jsonl|csv|tsv)\b/;

function commandIn(input: string): string | undefined {
  const { command, cmd, script } = parseRecord(input) ?? {};
  const found = command ?? cmd ?? script;
  if (typeof found === 'string') return found;
  // Some clients send the words of a command: ["bash", "-lc", "cat a.ts"].
  return Array.isArray(found) ? found.filter((word) => typeof word === 'string').join('\n') : undefined;
}

/** True for a search tool, whose results come best first. */
export function isSearch(name: string): boolean {
  return wordsOf(name).some((word) => searchWords.has(word));
}

const searchWords = new Set(['search', 'find', 'query', 'retrieve', 'lookup', 'browse', 'recommend']);

/**
 * Returns a call's name in references, such as `Read(src/app.ts)`. Short; other calls may have the same name. `input` is the JSON text of the
 * arguments.
 */
export function callLabel({ name, input }: { readonly name: string; readonly input: string }): string {
  const about = firstText(input);
  return about === undefined ? name.slice(0, 60) : `${name.slice(0, 60)}(${about})`;
}

const MAX_LABEL = 48;

/** Names of arguments that say what a call was about. */
const descriptive = /path|file|command|cmd|query|pattern|url|id$/i;

function firstText(input: string): string | undefined {
  const fields = input.length > MAX_NAMED ? undefined : parseRecord(input);
  let first: string | undefined;
  for (const key in fields) {
    const value = fields[key];
    if (typeof value !== 'string' || value.trim() === '') continue;
    if (descriptive.test(key)) return oneLine(value);
    first ??= value;
  }
  return first === undefined ? undefined : oneLine(first);
}

/** UTF-16 units of the longest arguments that are parsed for a name. */
const MAX_NAMED = 1_000_000;

/** Shortens a text to one line: the end of a path, or the beginning of another text. */
function oneLine(text: string): string {
  const line = text.trim().split('\n', 1)[0]!;
  if (/^\S*\/\S+$/.test(line)) return line.split('/').slice(-2).join('/').slice(-MAX_LABEL);
  return line.length > MAX_LABEL ? `${line.slice(0, MAX_LABEL).toWellFormed()}…` : line;
}

/** Maximum length of a value: a longer one is content, not a name. */
const maxLength = 160;
const minLength = 4;

/** Smaller numbers are counts and flags, which a model chooses itself. */
const minNumber = 100;

/** Returns one-line values in the arguments of the calls in these messages, up to `max` characters in total, without those in the text `known`. */
export function keyValues(
  conversation: Conversation,
  messages: readonly Message[],
  options: KeyValueOptions,
): readonly string[] {
  return runSteps(keyValuesInSteps(conversation, messages, options));
}

type KeyValueOptions = { readonly max: number; readonly known: string };

/** Does the same in steps. */
export function* keyValuesInSteps(
  conversation: Conversation,
  messages: readonly Message[],
  { max, known }: KeyValueOptions,
): Steps<readonly string[]> {
  const times = new Map<string, number>();
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type !== 'tool-call') continue;
      yield;
      for (const value of shortValues(inputOf(conversation.body, message, part))) {
        const before = times.get(value) ?? 0;
        // Moves the value to the end, as used last.
        times.delete(value);
        times.set(value, before + 1);
      }
    }
  }
  const chosen: string[] = [];
  let left = max;
  const byUse = [...times].toReversed().toSorted(([, one], [, other]) => other - one);
  for (const [value] of byUse) {
    const spelled = spellValue(value);
    if (spelled.length + 2 > left || known.includes(spelled)) continue;
    chosen.push(spelled);
    left -= spelled.length + 2;
  }
  return chosen;
}

/** Returns the one-line values in arguments, in order. */
function shortValues(argumentsJson: string): readonly string[] {
  try {
    return leavesOf(JSON.parse(argumentsJson));
  } catch {
    return [];
  }
}

/** Returns the values inside a value, in order. Without recursion: a model's arguments may be very deep. */
function leavesOf(root: unknown): readonly string[] {
  const leaves: string[] = [];
  const open: { readonly key: string; readonly value: unknown }[] = [{ key: '', value: root }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { key, value } = next;
    if (typeof value === 'string') {
      const text = value.trim();
      const isName =
        text.length >= minLength && text.length <= maxLength && !text.includes('\n') && text.isWellFormed();
      if (isName) leaves.push(text);
    } else if (typeof value === 'number') {
      // A number without a name would say nothing.
      if (value >= minNumber && /^[\w-]{1,40}$/.test(key)) leaves.push(`${key}=${value}`);
    } else if (Array.isArray(value)) {
      for (const member of value.toReversed()) open.push({ key: '', value: member });
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value).toReversed())
        open.push({ key: name, value: member });
    }
  }
  return leaves;
}
