/**
 * Finds content that stays in view: pins of the user, the agent's newest plan and notes, the newest version of each instruction file that a tool read,
 * texts that are marked with `<leporello:keep>`, and the newest failure and diff. All but the pins is bounded, so nobody can fill a window with it.
 */
import { openNotes } from '../caches.ts';
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { parseRecord } from '../conversation/json-scan.ts';
import { inputOf, rememberAt, textInSteps, textOf, textsOf } from '../conversation/messages.ts';
import { type Steps, runSteps } from '../conversation/steps.ts';
import { newestStart, type Pair, type PartPlace, pairCalls, placeKey } from '../conversation/turns.ts';
import type { Pins } from './types.ts';
import { commandIn, resultEnds, shellCall, wordsOf } from '../outline/outcome.ts';
import { callWords, planIn, type StepCall } from '../outline/step-line.ts';
import { filesRead, nameOf } from '../outline/files-shown.ts';
import type { ToolCallPart } from '../strategies/lib/editable-texts.ts';
import type { Protection } from '../strategies/strategy.ts';

/** Bytes that may stay in view, of each kind. In a small window, each kind may take about an eighth of it. */
const maxInView = { plan: 8_000, rules: 32_000, marked: 8_000, notes: 16_000 };
/** Anybody may have written the marks in a result, so they have a bound of their own. */
const maxMarkedInResults = 4_000;

/** Content that stays in view. */
export type InView = {
  /** Parts that stay, by message. */
  readonly parts: ReadonlyMap<number, ReadonlySet<number>>;
  /** The results that hold the newest failure and the newest diff. */
  readonly reports: readonly PartPlace[];
  /** Marked texts of results that do not stay as a whole, by message and part. */
  readonly texts: ReadonlyMap<number, ReadonlyMap<number, readonly string[]>>;
};

type InViewOptions = {
  readonly pins: Pins;
  /** The context window in tokens, if it is known. */
  readonly window: number | undefined;
  /** Keys of the places of recalls. */
  readonly recalled: ReadonlySet<string>;
  /** The name of the tool for notes; undefined when it is not offered. */
  readonly notesTool: string | undefined;
};

/** Finds the content that stays in view. */
export function partsInView(
  conversation: Conversation,
  { pins, window, recalled, notesTool }: InViewOptions,
): InView {
  const parts = new Map<number, Set<number>>();
  const add = ({ message, part }: PartPlace) => {
    parts.set(message, (parts.get(message) ?? new Set()).add(part));
  };
  const share = (window ?? Number.POSITIVE_INFINITY) / 2;
  const { plan = true, instructions = true } = pins;
  for (const pair of callsInView(conversation, {
    plan: plan ? Math.min(maxInView.plan, share) : 0,
    rules: instructions ? Math.min(maxInView.rules, share) : 0,
    notes: notesTool === undefined ? undefined : { tool: notesTool, bytes: Math.min(maxInView.notes, share) },
  }))
    [pair.call, pair.result].forEach(add);
  const texts = new Map<number, Map<number, readonly string[]>>();
  const left = { said: Math.min(maxInView.marked, share), result: Math.min(maxMarkedInResults, share) };
  for (const message of runSteps(noteInView(conversation))) {
    const { parts: all } = conversation.messages[message]!;
    for (const { part, spans } of marksIn(conversation, message)) {
      const { type, span } = all[part]!;
      if (recalled.has(placeKey({ message, part }))) continue;
      const kind = type === 'tool-result' ? 'result' : 'said';
      const marked = spans.reduce((sum, text) => sum + text.length, 0);
      const bytes = span.end - span.start;
      if ((kind === 'said' || marked * 2 >= bytes) && bytes <= left[kind]) {
        left[kind] -= bytes;
        add({ message, part });
      } else if (kind === 'result') {
        const fitting = spans.filter(
          (text) => text.length <= left.result && (left.result -= text.length) >= 0,
        );
        texts.set(message, (texts.get(message) ?? new Map<number, readonly string[]>()).set(part, fitting));
      }
    }
  }
  return { parts, reports: newestReports(conversation, share), texts };
}

/** Returns the protection that a request gets if it would not fit otherwise: what is only kept in view gives way, pins stay. */
export function withoutInView(protects: Protection): Protection {
  const { isPinned = () => false } = protects;
  return { ...protects, part: isPinned, keptTexts: () => [], hasGivenWay: true };
}

/** Adds the marked texts of a result to the stub in its place. */
export function withKeptTexts({ keptTexts }: Protection, edit: Edit): Edit {
  if (edit.kind !== 'replace-text' || !keptTexts) return edit;
  const lost = keptTexts(edit.at.message, edit.at.part).filter((text) => !edit.stub.includes(text));
  return lost.length === 0 ? edit : { ...edit, stub: [edit.stub, ...lost].join('\n') };
}

type AnsweredPair = Pair & { readonly result: PartPlace };

/** Returns the calls that hold the plan, the notes and the instruction files, within these numbers of bytes, the newest first. */
function* callsInView(
  conversation: Conversation,
  left: { plan: number; rules: number; notes: { readonly tool: string; bytes: number } | undefined },
): Generator<AnsweredPair> {
  const { body, messages } = conversation;
  const bytesOf = ({ message, part }: PartPlace) => {
    const { span } = messages[message]!.parts[part]!;
    return span.end - span.start;
  };
  let isPlanWhole = false;
  /** The tasks whose newest status was seen; true for those that are done. */
  const tasks = new Map<string, boolean>();
  const seen = new Set<string>();
  const { pairs } = pairCalls(conversation);
  const mayHold = new Set(runSteps(noteInView(conversation)));
  for (let at = pairs.length - 1; at >= 0; at--) {
    const pair = pairs[at]!;
    const { call, result } = pair;
    if (!left.notes && !mayHold.has(call.message)) continue;
    if (left.notes?.tool === pair.name) {
      const noteBytes = result ? bytesOf(call) + bytesOf(result) : Number.POSITIVE_INFINITY;
      if (!result || noteBytes > left.notes.bytes) continue;
      left.notes.bytes -= noteBytes;
      yield { ...pair, result };
      continue;
    }
    const note = noteOf(body, messages[call.message]!, call.part);
    if (!note || !result) continue;
    const answer = messages[result.message]!;
    const part = answer.parts[result.part]!;
    if (part.type !== 'tool-result' || part.isError === true) continue;
    const bytes = bytesOf(call) + bytesOf(result);
    const kind = note.kind === 'rules' ? 'rules' : 'plan';
    if (note.kind === 'rules') {
      if (note.versions.some(({ path, lines }) => seen.has(path) || seen.has(`${path}\n${lines}`))) continue;
      // A short answer only says that the file has not changed.
      if (bytesOf(result) >= minFileBytes)
        for (const { path, lines } of note.versions) seen.add(lines === '' ? path : `${path}\n${lines}`);
    } else if (note.kind === 'plan') {
      if (isPlanWhole) continue;
      isPlanWhole = !note.isChange;
    } else if (isPlanWhole) {
      continue;
    } else {
      if (bytes > maxInView.plan) continue;
      const id = note.id ?? taskIdIn(textsOf(part).map((span) => textOf(body, answer, span)));
      const isKnown = id !== undefined && tasks.has(id);
      if (id !== undefined && !isKnown && note.isDone !== undefined) tasks.set(id, note.isDone);
      // The creation of a task and its newest status stay until it is done.
      if (id === undefined || (isKnown ? note.isDone !== undefined || tasks.get(id)! : note.isDone)) continue;
    }
    if (bytes > left[kind]) continue;
    left[kind] -= bytes;
    yield { ...pair, result };
  }
}

/** Bytes of the smallest result that holds a file. */
const minFileBytes = 300;

/** Returns the id of a task from the answer to its creation: `Task #7 created`. */
function taskIdIn(texts: readonly string[]): string | undefined {
  return /#(\d{1,6})\b/.exec(texts.join(' ').slice(0, 400))?.[1];
}

/** The part that a call has in the agent's state. */
type CallNote =
  /** `isChange`: the call changes some items, so that earlier calls hold the others. */
  | { readonly kind: 'plan'; readonly isChange: boolean }
  /** `isDone` is undefined for the creation of a task, whose result holds its id. */
  | { readonly kind: 'task'; readonly id: string | undefined; readonly isDone: boolean | undefined }
  | {
      readonly kind: 'rules';
      readonly versions: readonly { readonly path: string; readonly lines: string }[];
    };

/** Notes by call: bodies with the same bytes share the call. */
const callNotes = openNotes<Part, { readonly note: CallNote | undefined }>('part');

function noteOf(body: Uint8Array, message: Message, at: number): CallNote | undefined {
  const call = message.parts[at]!;
  if (call.type !== 'tool-call') return undefined;
  const known = callNotes.get(call);
  if (known) return known.note;
  const isLong = call.input.end - call.input.start > maxInView.plan;
  const note = isLong ? undefined : readNote(call.name, inputOf(body, message, call));
  callNotes.set(call, { note });
  return note;
}

function readNote(tool: string, input: string): CallNote | undefined {
  if (/skill/i.test(tool) && wordsOf(tool).includes('skill'))
    return { kind: 'rules', versions: [{ path: `${tool} ${input}`, lines: '' }] };
  if (/\.mdc?\b|rules/i.test(input)) {
    const versions = filesRead({ tool, input }).filter(({ path }) =>
      instructionFile.test(path.replaceAll('\\', '/')),
    );
    if (versions.length > 0) return { kind: 'rules', versions };
  }
  if (!/"(?:status|subject)"|\[[ xX]\] /.test(input)) return undefined;
  const sent = parseRecord(input) ?? {};
  const isPlanner = wordsOf(tool).some((word) => /^(?:plan|todos?|tasks?|checklist|progress)$/.test(word));
  const items = planIn(sent);
  const isList =
    isPlanner && Object.values(sent).some((value) => typeof value === 'string' && checklist.test(value));
  if (isList || (items && (isPlanner || items.some((item) => item.words !== ''))))
    return { kind: 'plan', isChange: sent['merge'] === true };
  if (!isPlanner) return undefined;
  const { status, subject } = sent;
  const id = ['taskId', 'task_id', 'id']
    .map((key) => sent[key])
    .find((value) => typeof value === 'string' || typeof value === 'number');
  if (typeof status === 'string' && id !== undefined)
    return { kind: 'task', id: String(id), isDone: /^(?:completed?|done|deleted|cancell?ed)$/i.test(status) };
  return typeof subject === 'string' && id === undefined
    ? { kind: 'task', id: undefined, isDone: undefined }
    : undefined;
}

/** Matches an item of a list in Markdown. */
const checklist = /^[ \t]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?\[[ xX~-]\] \S/m;

/** The marked texts of a part; of arguments and of what was said, all of the part counts. */
type MarkedPart = { readonly part: number; readonly spans: readonly string[] };

const [keepStart, keepEnd] = ['<leporello:keep>', '</leporello:keep>'];
const noMarks: readonly MarkedPart[] = [];

/** Marks by the parts of a message: bodies with the same bytes share them. */
const marks = openNotes<Message['parts'], readonly MarkedPart[]>('block');

function marksIn({ body, messages }: Conversation, index: number): readonly MarkedPart[] {
  const message = messages[index]!;
  return marks.get(message.parts) ?? runSteps(noteMarks(body, message));
}

function* noteMarks(body: Uint8Array, message: Message): Steps<readonly MarkedPart[]> {
  const found: MarkedPart[] = [];
  if (yield* mayHoldMarks(body, message))
    for (let at = 0; at < message.parts.length; at++) {
      if (at % partsPerStep === partsPerStep - 1) yield;
      const part = message.parts[at]!;
      const spans = part.type === 'reasoning' ? [] : textsOf(part);
      for (const span of spans)
        if (span.end - span.start > longBytes) yield* textInSteps(body, message, span);
      const texts =
        part.type === 'tool-call'
          ? [inputOf(body, message, part)]
          : spans.map((span) => textOf(body, message, span));
      const marked = texts.flatMap(markedTexts);
      if (marked.length > 0) found.push({ part: at, spans: marked });
    }
  const result = found.length === 0 ? noMarks : found;
  marks.set(message.parts, result);
  return result;
}

/** True if the name of the marks stands in the bytes: JSON writers may escape the signs around it, but not its letters. */
function* mayHoldMarks(body: Uint8Array, { span }: Message): Steps<boolean> {
  for (let start = span.start; start < span.end; start += searchedBytes) {
    // Two pieces overlap by the name, which has only ASCII letters.
    const end = Math.min(span.end, start + searchedBytes + markName.length);
    if (decoder.decode(body.subarray(start, end)).includes(markName)) return true;
    if (end < span.end) yield;
  }
  return false;
}

const markName = 'leporello:keep';

/** Bytes that are searched in one step: less than 1 ms. */
const searchedBytes = 131_072;

const decoder = new TextDecoder();

/** Parts of one message that are handled in one step: a message may have very many. */
const partsPerStep = 500;

/** Returns the marked texts in a text, with their marks. */
function markedTexts(text: string): readonly string[] {
  const found: string[] = [];
  for (let from = text.indexOf(keepStart); from >= 0; from = text.indexOf(keepStart, from)) {
    const end = text.indexOf(keepEnd, from);
    if (end < 0) break;
    found.push(text.slice(from, end + keepEnd.length));
    from = end + keepEnd.length;
  }
  return found;
}

/** True for a result in which a small text is marked: it is not made smaller on arrival either. */
export function isMarkedResult(conversation: Conversation, { message, part }: PartPlace): boolean {
  const { span } = conversation.messages[message]!.parts[part]!;
  if (span.end - span.start > maxInView.marked) return false;
  return marksIn(conversation, message).some((marked) => marked.part === part);
}

/** Reads all new messages for what stays in view, so that later steps find it at once. Returns the indices of messages with marks, or with calls that may stay. */
export function* noteInView({ body, messages }: Conversation): Steps<readonly number[]> {
  const { from, before } = newestStart(messages, notedMessages) ?? { from: -1, before: [] };
  // Another branch may have continued from the same message.
  const all = before.filter((index) => index <= from);
  for (let index = from + 1; index < messages.length; index++) {
    const message = messages[index]!;
    if (!marks.has(message.parts)) {
      yield* noteMarks(body, message);
      for (let at = 0; at < message.parts.length; at++) {
        noteOf(body, message, at);
        if (at % partsPerStep === partsPerStep - 1) yield;
      }
      yield;
    }
    if (marks.get(message.parts) !== noMarks || message.parts.some((_, at) => noteOf(body, message, at)))
      all.push(index);
  }
  rememberAt(notedMessages, messages, from + 1, all);
  return all;
}

/** The same indices, by the newest messages of requests that were read for what stays in view. */
const notedMessages = openNotes<Message, readonly number[]>('message');

/** Bytes of a text that takes long to decode. */
const longBytes = 65_536;

/** Matches a file with rules for agents: those of coding agents and editors, and skills. */
const instructionFile =
  /(?:^|\/)(?:(?:AGENTS?|CLAUDE|GEMINI|QWEN|CRUSH|WARP|CONVENTIONS|SKILL|copilot-instructions)(?:\.(?:local|override))?\.md|[\w.-]{1,80}\.instructions\.md|\.(?:cursor|windsurf|cline|roo)rules|\.rules)$|(?:^|\/)\.(?:(?:cursor|windsurf|claude|roo|clinerules|continue|kiro|github|junie|agents?)\/(?:rules|steering|instructions|guidelines)|clinerules)(?:[/-][^\n]{1,200})?\.mdc?$/i;

// The newest failure and the newest diff. An agent works with a failure until the same program has run again, and with a diff until its files
// have changed or a newer one shows them.

/** Bytes of the largest result that is read, UTF-16 units of the largest failure that stays, and lines of the largest diff. */
const maxReadBytes = 40_000;
const maxFailure = 12_000;
const maxDiffLines = 200;
/** Calls, newest first, among which they are looked for. */
const maxCalls = 100;

/** A result, with what a newer one of the same kind supersedes it by: the program of a command with its first word, the names of files. */
type CommandReport = { readonly kind: 'failure' | 'diff' | 'other'; readonly subjects: readonly string[] };

/** Returns the places of the newest failure and of the newest diff that nothing has superseded, each of at most `maxBytes`. */
function newestReports(conversation: Conversation, maxBytes: number): readonly PartPlace[] {
  const found = new Map<CommandReport['kind'], PartPlace>();
  const seen = new Set<string>();
  for (const { call, result } of pairCalls(conversation).pairs.slice(-maxCalls).toReversed()) {
    if (!result) continue;
    const { kind, subjects } = reportOf(conversation, call, result);
    const { start, end } = conversation.messages[result.message]!.parts[result.part]!.span;
    const isOpen = kind !== 'other' && subjects.some((one) => !seen.has(one));
    if (isOpen && end - start <= maxBytes && !found.has(kind)) found.set(kind, result);
    for (const one of subjects) seen.add(one);
  }
  return [...found.values()];
}

/** Reports by result: bodies with the same bytes share the result. */
const reports = openNotes<Part, CommandReport>('part');

function reportOf({ body, messages }: Conversation, call: PartPlace, result: PartPlace): CommandReport {
  const message = messages[result.message]!;
  const part = message.parts[result.part]!;
  const known = reports.get(part);
  if (known) return known;
  const asked = messages[call.message]!.parts[call.part] as ToolCallPart;
  const input = inputOf(body, messages[call.message]!, asked);
  const isRead = part.span.end - part.span.start <= maxReadBytes;
  const texts = isRead ? textsOf(part).map((span) => textOf(body, message, span)) : [];
  const isError = part.type === 'tool-result' ? part.isError : undefined;
  const report = readReport({ tool: asked.name, input, result: texts.join('\n'), isError });
  reports.set(part, report);
  return report;
}

function readReport({ result, ...call }: StepCall & { readonly result: string }): CommandReport {
  const { kind, path, isListing } = callWords(call);
  if (kind === 'edit') return { kind: 'other', subjects: [nameOf(path)] };
  if (diffStart.test(result) && result.split('\n').length <= maxDiffLines)
    return { kind: 'diff', subjects: [...result.matchAll(diffFile)].map(([, file = '']) => nameOf(file)) };
  if (isListing || (kind !== 'command' && kind !== 'other')) return { kind: 'other', subjects: [] };
  const { failing } = resultEnds({ kind, isListing, isError: call.isError }, result);
  const isFailure = failing !== undefined && result.length <= maxFailure;
  return { kind: isFailure ? 'failure' : 'other', subjects: [programOf(call)] };
}

const diffStart = /^(?:diff --git |--- \S.*\n\+\+\+ \S)/m;
/** Matches a line that names a file of a diff. Only a diff that adds or removes a file names no file on one side. */
const diffFile = /^(?:---|\+\+\+) (?!\/dev\/null)(?:[ab]\/)?(\S+)/gm;

/** Returns the program that a command runs, with its first word, such as `npm test`; of another call, the name of the tool. */
function programOf({ tool, input }: Pick<StepCall, 'tool' | 'input'>): string {
  const command = commandIn((input.length > maxReadBytes ? undefined : parseRecord(input)) ?? {});
  const line = command?.slice(0, 2_000).replace(shellCall, '').trim().replace(aheadOfProgram, '') ?? tool;
  const words = line.split(/\s+/).filter((word) => !word.startsWith('-'));
  return words.slice(0, 2).join(' ');
}

/** Matches the folder, the variables and the wrappers that a command begins with. */
const aheadOfProgram = /^(?:cd \S+\s*(?:&&|;|\n)\s*|\w+=\S+\s+|(?:sudo|time|npx)\s+|timeout \S+\s+)+/;
