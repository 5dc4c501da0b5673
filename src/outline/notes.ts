/**
 * What is noted of steps while they are read once, in order: what the user demanded, what the model concluded, what failed, how the plan
 * stands, and what the calls were about. Lists keep their order, and repeat nothing. Pure.
 */
import { argumentsIn, isRecord, type JsonRecord } from '../conversation/json-record.ts';
import { clipped, endsOf, isBinding, isStrict, nameOf, plain, sentencesOf } from './sentences.ts';
import type { SummaryStep } from './summarizer.ts';
import { createValues, type Values } from './values.ts';

export type Notes = {
  /** What the user began with. */
  goal: string | undefined;
  /** Lines that the user typed, in order; those that bind are kept whatever it costs. */
  readonly said: Map<string, 'rule' | 'wish'>;
  /** Binding lines of what is too long to have been typed, or what a client said: kept where there is room. */
  readonly pasted: Set<string>;
  /** What the model said it decided, found or did. */
  readonly findings: Set<string>;
  /** Lines of results that tell of failure, each with its tool. */
  readonly errors: Map<string, string>;
  /** The newest plan, where a call gave one: items by how they stand. */
  plan: ReadonlyMap<string, readonly string[]>;
  readonly values: Values;
  calls: number;
  first: string | undefined;
  last: string | undefined;
  lastSaid: string | undefined;
  /** Lines of a summary that somebody else wrote. */
  readonly prose: string[];
};

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

/** Longer messages of a user were not typed: pages, plans, logs. */
const longestTyped = 4_000;
/** The newest of each list are kept, so that notes stay small whatever is read. */
const mostKept = 400;

export function note(notes: Notes, step: SummaryStep): void {
  if (step.type === 'called') noteCall(notes, step);
  else if (step.by === 'assistant') noteModel(notes, step.text);
  else if (step.by === 'user' && step.text.length <= longestTyped) noteUser(notes, step.text);
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

/** How a model says what it came to, rather than what it will look at next. */
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

/** A call in a line: its first value of one line stands for all. */
function callLine(tool: string, input: string): string {
  const value = /"((?:[^"\\\n]|\\.){3,200})"\s*[,}\]]/.exec(input.slice(0, 2_000))?.[1];
  return value === undefined ? nameOf(tool) : `${nameOf(tool)} "${clipped(plain(value), 160)}"`;
}

const failing =
  /^\W*(?:\w*(?:error|exception)\b|fatal|panic|fail(?:ed|ure)?\b|traceback|--- FAIL)|\b(?:error|failed|exception|cannot|could not|not found|no such|denied|refused|timed? ?out|undefined|invalid)\b/i;

/** Where failure is told: at either end of a result. */
const mostRead = 8_000;

/** The line of a result that tells of failure; undefined where none does. */
export function errorIn(result: string, failed: boolean): string | undefined {
  const lines = endsOf(result, mostRead).split('\n').map(plain);
  const telling = lines.find((line) => line.length <= 400 && failing.test(line.slice(0, 200)));
  const line = failed ? (telling ?? lines.find((one) => one !== '')) : telling;
  // A listing speaks of errors without one: what failed says so at the beginning of a line, or is marked.
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
  if (list.size <= mostKept) return;
  const [oldest] = list.keys();
  if (oldest !== undefined) list.delete(oldest);
}

const mostItems = 40;

/** Items by how they stand, in the words of the call; undefined where there is no plan. */
function planIn(argumentsJson: string): ReadonlyMap<string, readonly string[]> | undefined {
  if (!argumentsJson.includes('"status"')) return undefined;
  const list = planItems(argumentsIn(argumentsJson) ?? {});
  if (list === undefined) return undefined;
  const plan = new Map<string, string[]>();
  for (const item of list.slice(-mostItems)) {
    const { status, ...rest } = item;
    const text = Object.values(rest).find((value) => typeof value === 'string' && /\s/.test(value.trim()));
    if (typeof status !== 'string' || typeof text !== 'string') return undefined;
    const key = nameOf(plain(status));
    plan.set(key, [...(plan.get(key) ?? []), clipped(plain(text), 160)]);
  }
  return plan.size === 0 ? undefined : plan;
}

/** The list in a call's arguments whose items all say how they stand; undefined where there is none. */
export function planItems(sent: JsonRecord): readonly JsonRecord[] | undefined {
  return Object.values(sent).find(
    (inner): inner is readonly JsonRecord[] =>
      Array.isArray(inner) && inner.length > 0 && inner.every((item) => isRecord(item) && 'status' in item),
  );
}
