/**
 * Takes notes of steps, read once in order: what the user demanded, what the model concluded, what failed, the status of the plan, and which
 * values calls used. Lists keep their order without duplicates. Pure.
 */
import { parseRecord, isRecord, type JsonRecord } from '../conversation/json-scan.ts';
import { clipped, endsOf, isBinding, isStrict, nameOf, plain, sentencesOf } from './sentences.ts';
import type { SummaryStep } from './summarizer.ts';
import { createValues, type Values } from './values.ts';

/** Notes of a conversation. */
export type Notes = {
  /** The user's first sentence. */
  goal: string | undefined;
  /** Lines that the user typed, in order; binding ones are always kept. */
  readonly said: Map<string, 'rule' | 'wish'>;
  /** Binding lines of texts too long to be typed, or by a client; kept if there is space. */
  readonly pasted: Set<string>;
  /** Sentences in which the model says what it decided, found or did. */
  readonly findings: Set<string>;
  /** Lines of results that report a failure, each with its tool. */
  readonly errors: Map<string, string>;
  /** The newest plan in a call: items by status. */
  plan: ReadonlyMap<string, readonly string[]>;
  readonly values: Values;
  calls: number;
  first: string | undefined;
  last: string | undefined;
  lastSaid: string | undefined;
  /** Lines of a summary that another summarizer wrote. */
  readonly prose: string[];
};

/** Creates empty notes. */
export function emptyNotes(): Notes {
  return {
    goal: undefined,
    said: new Map(),
    pasted: new Set(),
    findings: new Set(),
    errors: new Map(),
    plan: new Map(),
    values: createValues(),
    calls: 0,
    first: undefined,
    last: undefined,
    lastSaid: undefined,
    prose: [],
  };
}

/** Longer user messages, in UTF-16 units, were not typed: pages, plans, logs. */
const maxTyped = 4_000;
/** Maximum entries of each list, newest kept, so that notes stay small whatever is read. */
const maxKept = 400;

/** Adds a step to the notes. */
export function note(notes: Notes, step: SummaryStep): void {
  if (step.type === 'called') noteCall(notes, step);
  else if (step.by === 'assistant') noteModel(notes, step.text);
  else if (step.by === 'user' && step.text.length <= maxTyped) noteUser(notes, step.text);
  else notePasted(notes, step);
}

function noteUser(notes: Notes, text: string): void {
  const sentences = sentencesOf(text);
  notes.goal ??= sentences[0];
  for (const sentence of sentences) notes.said.set(sentence, isBinding(sentence) ? 'rule' : 'wish');
}

function notePasted(notes: Notes, { by, text }: SummaryStep & { type: 'said' }): void {
  const sentences = sentencesOf(text);
  if (by === 'user') notes.goal ??= clipped(sentences.slice(0, 6).join(' '), 400);
  for (const sentence of sentences) if (isStrict(sentence)) addNewest(notes.pasted, sentence);
}

/** Words by which a model states a conclusion, rather than its next action. */
const concluding =
  /\b(?:because|since|so that|decid\w+|chos\w+|instead|root cause|the (?:issue|problem|cause|fix|reason|bug) (?:is|was)|turns out|found|fixed|implemented|added|changed|removed|created|updated|works?|pass(?:es|ed)?|fail(?:s|ed)?|confirmed|means|need(?:s|ed)? to|will use|done|complete[d]?)\b/i;

function noteModel(notes: Notes, text: string): void {
  const sentences = sentencesOf(text);
  if (sentences.length === 0) return;
  notes.lastSaid = clipped(sentences.join(' '), 700);
  for (const sentence of sentences) {
    if (concluding.test(sentence)) addNewest(notes.findings, clipped(sentence, 300));
  }
}

function noteCall(notes: Notes, { tool, input, result, failed }: SummaryStep & { type: 'called' }): void {
  notes.calls++;
  notes.values.add(tool, input);
  const said = callLine(tool, input);
  notes.first ??= said;
  notes.last = said;
  const plan = planIn(input);
  if (plan !== undefined) notes.plan = plan;
  const error = result === undefined ? undefined : errorIn(result, failed);
  if (error === undefined) return;
  notes.errors.delete(error);
  notes.errors.set(error, nameOf(tool));
  trim(notes.errors);
}

/** Writes a call as one line: the tool, and its first one-line value. */
function callLine(tool: string, input: string): string {
  const value = /"((?:[^"\\\n]|\\.){3,200})"\s*[,}\]]/.exec(input.slice(0, 2_000))?.[1];
  return value === undefined ? nameOf(tool) : `${nameOf(tool)} "${clipped(plain(value), 160)}"`;
}

const failing =
  /^\W*(?:\w*(?:error|exception)\b|fatal|panic|fail(?:ed|ure)?\b|traceback|--- FAIL)|\b(?:error|failed|exception|cannot|could not|not found|no such|denied|refused|timed? ?out|undefined|invalid)\b/i;

/** Characters read at both ends of a result, where failures are reported. */
const maxRead = 8_000;

/** Returns the line of a result that reports a failure; undefined if there is none. */
export function errorIn(result: string, failed: boolean): string | undefined {
  const lines = endsOf(result, maxRead).split('\n').map(plain);
  const telling = lines.find((line) => line.length <= 400 && failing.test(line.slice(0, 200)));
  const line = failed ? (telling ?? lines.find((one) => one !== '')) : telling;
  // Listings mention errors without a failure. A failure begins a line, or the result is marked as failed.
  if (line === undefined || (!failed && !/^\W*\w*(?:error|exception|fatal|panic|fail|traceback)/i.test(line)))
    return undefined;
  return clipped(line, 200);
}

function addNewest(list: Set<string>, item: string): void {
  list.delete(item);
  list.add(item);
  trim(list);
}

function trim(list: Set<string> | Map<string, string>): void {
  if (list.size <= maxKept) return;
  const [oldest] = list.keys();
  if (oldest !== undefined) list.delete(oldest);
}

const maxItems = 40;

/**
 * Finds a plan in the arguments of a call: a list of items with a status. Tools for plans have many names, but share this shape. Returns the
 * items by status, in the words of the call; undefined if there is no plan.
 */
function planIn(argumentsJson: string): ReadonlyMap<string, readonly string[]> | undefined {
  if (!argumentsJson.includes('"status"')) return undefined;
  const list = planItems(parseRecord(argumentsJson) ?? {});
  if (list === undefined) return undefined;
  const plan = new Map<string, string[]>();
  for (const item of list.slice(-maxItems)) {
    const { status, ...rest } = item;
    const text = Object.values(rest).find((value) => typeof value === 'string' && /\s/.test(value.trim()));
    if (typeof status !== 'string' || typeof text !== 'string') return undefined;
    const key = nameOf(plain(status));
    plan.set(key, [...(plan.get(key) ?? []), clipped(plain(text), 160)]);
  }
  return plan.size === 0 ? undefined : plan;
}

/** Returns the list in a call's arguments whose items all have a status; undefined if there is none. */
export function planItems(sent: JsonRecord): readonly JsonRecord[] | undefined {
  return Object.values(sent).find(
    (inner): inner is readonly JsonRecord[] =>
      Array.isArray(inner) && inner.length > 0 && inner.every((item) => isRecord(item) && 'status' in item),
  );
}
