/**
 * Writes a step in one line: the call and its outcome, such as `Edit src/a.ts: ok` or `Bash npm test: 3 failed, parse.test.ts:40`. Joins the lines
 * of similar steps, and reads the plan in a call. Words are never cut, and no content of files is quoted. Pure; linear in its input.
 */
import { isRecord, type JsonRecord, parseRecord } from '../conversation/json-scan.ts';
import { groupBy } from '../es2024.ts';
import {
  answerWords,
  commandIn,
  commandWords,
  countOf,
  isListingCall,
  isLongCommand,
  label,
  maxUserWords,
  oneLine,
  previewWords,
  quoted,
  resultEnds,
  settingsOf,
  type StepKind,
  type UserReply,
  userReply,
  wholeWords,
  wordsOf,
} from './outcome.ts';
import { changedNames, otherNames, pathKeys, valuesOf } from './lib/subject-words.ts';
import { failureWords, filesWritten, newWords, successWords } from './lib/call-outcome.ts';
import {
  isTaskCall,
  type PlanItem,
  planWords,
  type TaskChange,
  taskChanges,
  taskWords,
} from './lib/plans.ts';
import { verdictOf } from './lib/verdict.ts';
import { folderOf } from './lib/work-folders.ts';

/** A call and its result, as plain texts. */
export type StepCall = {
  readonly tool: string;
  /** The arguments as JSON text. */
  readonly input: string;
  /** Undefined while there is no result. */
  readonly result: string | undefined;
  /** Whether the wire format marks the result as an error; undefined in formats without such a mark. */
  readonly isError: boolean | undefined;
};

/** A call in words. Every text is one line of whole words. */
export type CallWords = {
  readonly kind: StepKind;
  readonly tool: string;
  /** The call's file; empty without one. It is not part of `about`. */
  readonly path: string;
  /** Other subjects of the call: a command, a pattern, ids. May be empty. */
  readonly about: string;
  /** The title that the model gave to the command; empty without one. */
  readonly title: string;
  /** The folder that a command changes to first; empty without one. */
  readonly folder: string;
  /** Arguments that say how the tool is to work and are likely to be used again: `timeout 120000`, `files_with_matches`. */
  readonly settings: readonly string[];
  /** The items of a plan; empty for other calls. */
  readonly plan: readonly PlanItem[];
  /** Files that a command or a patch writes, as far as it names them. */
  readonly writes: readonly string[];
  /** True if the result shows a text of others, in which words like error report no failure. */
  readonly isListing: boolean;
};

/** A step in words. */
export type StepWords = CallWords & {
  /** The outcome: `ok`, `not found`, `"0 issues."`. Empty if the call says enough. */
  readonly outcome: string;
  readonly hasFailed: boolean;
  /** The user's words in the result; empty for a refusal without words. Undefined if the user said nothing. */
  readonly user: UserReply | undefined;
  /** True for a report, such as that of a sub-agent. */
  readonly isReport?: boolean;
  /** Names that tell what an edit changed. Undefined for other calls. */
  readonly changes?: readonly string[];
  /** The items that a call of a tool that keeps a plan changes. Undefined for other calls. */
  readonly tasks?: readonly TaskChange[];
};

/** Reads a call and its result. */
export function stepWords(step: StepCall): StepWords {
  const { result, isError } = step;
  const call = callWords(step);
  const user = result === undefined ? undefined : userReply(result);
  if (user) return { ...call, outcome: '', hasFailed: user.isRefusal, user };
  const report =
    call.kind === 'other' && isError !== true && result !== undefined ? verdictOf(result) : undefined;
  if (report !== undefined) return { ...call, outcome: report, hasFailed: false, user, isReport: true };
  const came = outcomeOf(call, step);
  if (call.kind === 'plan' && call.plan.length === 0 && !came.hasFailed) {
    const tasks = taskChanges(sentIn(step), result ?? '');
    const made = tasks.map(({ id }) => `#${id}`).find((id) => !call.about.includes(id));
    return { ...call, hasFailed: false, outcome: made ?? '', user, tasks };
  }
  if (call.kind === 'edit') return { ...call, ...came, user, changes: changedNames(sentIn(step), call.path) };
  const isNew = call.kind === 'other' && !came.hasFailed;
  return {
    ...call,
    ...came,
    outcome: isNew ? newWords(came.outcome, call, result ?? '') : came.outcome,
    user,
  };
}

function outcomeOf(call: CallWords, { result, isError }: StepCall): Pick<StepWords, 'outcome' | 'hasFailed'> {
  if (result === undefined) return { outcome: 'no result yet', hasFailed: false };
  const ends = resultEnds({ ...call, isError }, result);
  if (ends.failing !== undefined) return { outcome: failureWords(ends.failing, ends.lines), hasFailed: true };
  const { kind } = call;
  const part = previewWords(result);
  if (part !== undefined) return { outcome: part, hasFailed: false };
  if (kind === 'other') return { outcome: answerWords(result, ends.first), hasFailed: false };
  const isSilent = kind === 'edit' || kind === 'read' || kind === 'plan';
  const outcome = isSilent ? (kind === 'edit' ? 'ok' : '') : successWords(call, result, ends);
  return { outcome, hasFailed: false };
}

/** Matches the arguments of a call that may write files by a command or a patch. */
const mayWrite = />|\*\*\* |\+\+\+ |\b(?:sed|perl|tee|mv|cp|gofmt|prettier|git|patch)\b/;

/** Reads a call. */
export function callWords({ tool, input }: Pick<StepCall, 'tool' | 'input'>): CallWords {
  const sent = sentIn({ input });
  const path = pathIn(sent);
  const kind = kindOf(tool, sent, path);
  const { description } = sent;
  const title = kind === 'command' && typeof description === 'string' ? oneLine(description) : '';
  return {
    kind,
    tool: label(tool),
    path,
    about: aboutOf(kind, sent),
    title: title.length > maxTitle ? '' : title,
    folder: kind === 'command' && input.includes('cd ') ? folderOf(commandIn(sent) ?? '') : '',
    settings: settingsOf(sent),
    plan: kind === 'plan' ? (planIn(sent) ?? []) : [],
    writes: (kind === 'command' || kind === 'other') && mayWrite.test(input) ? filesWritten(sent) : [],
    isListing: isListingCall(kind, sent),
  };
}

function sentIn({ input }: Pick<StepCall, 'input'>): JsonRecord {
  return (input.length > maxInput ? undefined : parseRecord(input)) ?? {};
}

/** Writes one step as a line. `pathOf` spells its path; default: in full. */
export function stepLine(step: StepWords, pathOf: (path: string) => string = (path) => path): string {
  const { tool, user } = step;
  const call = [tool, subjectOf(step, pathOf)].filter((word) => word !== '').join(' ');
  // A name alone would say nothing.
  const told = isToldByNames(step) ? '' : step.outcome;
  const outcome = told === '' && call === tool ? 'ok' : told;
  if (!user) return outcome === '' ? call : `${call}: ${outcome}`;
  const words = user.words === '' ? '' : `: ${wholeWords(oneLine(user.words), maxUserWords)}`;
  return `${call} → ${user.isRefusal ? 'REFUSED by the user' : 'the user answered'}${words}`;
}

/**
 * Writes steps as lines, in order. Steps whose outcome is only that they worked are joined up to the next one that says more: reads, searches
 * and edits with their files, each once (`Read ×5: a.ts, b.ts ×4`), but never reads with those on the other side of an edit. Also returns the indices of the steps in each line.
 */
export function stepLines(
  steps: readonly StepWords[],
  pathOf?: (path: string) => string,
): readonly StepsLine[] {
  const lines: StepsLine[] = [];
  const stepsAt = (indices: readonly number[]) => indices.map((at) => steps[at]!);
  const lineOf = (same: readonly number[]): string => joinedLine(stepsAt(same), pathOf);
  let quiet: number[] = [];
  const flush = (): void => {
    if (quiet.length === 0) return;
    const texts = [...runsOf(quiet, steps).values()].map(lineOf);
    lines.push({ text: texts.join(' · '), steps: quiet });
    quiet = [];
  };
  const add = (same: readonly number[]): void => {
    if (same.length > 0) lines.push({ text: lineOf(same), steps: same });
  };
  // Neighbors with one tool and one outcome, such as a test that is run again.
  let alike: number[] = [];
  for (const [at, step] of steps.entries()) {
    const before = steps[alike[0] ?? -1];
    // That two lists have as many lines says nothing of both.
    const isSame =
      before?.outcome === step.outcome && (before.about === step.about || !/^\d+ lines$/.test(step.outcome));
    const isAlike = isSame && before?.tool === step.tool && !step.user && !before.user;
    if (isQuiet(step) || !isAlike) {
      add(alike);
      alike = [];
    }
    if (isQuiet(step)) quiet.push(at);
    else {
      flush();
      alike.push(at);
    }
  }
  add(alike);
  flush();
  return lines;
}

/** Groups steps by their tool, between edits and reads: no line may tell those in another order. */
function runsOf(
  quiet: readonly number[],
  steps: readonly StepWords[],
): ReadonlyMap<string, readonly number[]> {
  let run = 0;
  return groupBy(quiet, (at, index) => {
    const { kind, tool } = steps[at]!;
    const before = steps[quiet[index - 1] ?? at]!.kind;
    if ((before === 'edit') !== (kind === 'edit')) run++;
    return `${run} ${kind} ${tool}`;
  });
}

/** A line, and the indices of its steps. */
export type StepsLine = { readonly text: string; readonly steps: readonly number[] };

/** True for a step that worked and returned nothing to say in one line. */
function isQuiet({ kind, hasFailed, user }: StepWords): boolean {
  return !hasFailed && !user && (kind === 'read' || kind === 'search' || kind === 'edit');
}

function joinedLine(steps: readonly StepWords[], pathOf?: (path: string) => string): string {
  const [first] = steps;
  if (steps.length === 1) return stepLine(first!, pathOf);
  // A search is told by its pattern; other calls are by their file, with its places behind it.
  const alike = groupBy(steps, ({ kind, path, about }) =>
    kind === 'search' || path === '' ? `${about}\n${path}` : path,
  );
  const isSearch = first!.kind === 'search';
  const subjects = [...alike.values()].map((same) => {
    const abouts = new Set(same.map(({ about }) => about).filter((about) => about !== ''));
    const title = same.find((step) => step.title !== '')?.title ?? '';
    const about = joinedRanges([...abouts])
      .slice(0, maxPlaces)
      .join(', ');
    const changes = [...new Set(same.flatMap((step) => step.changes ?? []))];
    const subject = subjectOf({ ...same[0]!, about, title, changes }, pathOf);
    const found = isSearch ? (same.find(({ outcome }) => outcome !== '')?.outcome ?? '') : '';
    const times = same.length > Math.max(1, abouts.size) ? `×${same.length}` : '';
    return [subject, times, found === '' ? '' : `(${found})`].filter((words) => words !== '').join(' ');
  });
  const named = subjects.filter((subject) => subject !== '').slice(0, maxJoined);
  const more = subjects.length > maxJoined ? `, and ${subjects.length - maxJoined} more` : '';
  const worked = isSearch || steps.every(isToldByNames) ? '' : first!.outcome;
  const all = first!.hasFailed ? `all ${first!.outcome}` : worked;
  const outcome = all === '' ? '' : `: ${all}`;
  const count = named.length > 1 ? ` ×${steps.length}:` : '';
  return `${first!.tool}${count} ${named.join(', ')}${more}${outcome}`;
}

/** Joins ranges of lines that follow each other or overlap. */
function joinedRanges(abouts: readonly string[]): readonly string[] {
  const joined: string[] = [];
  for (const about of abouts) {
    const [from = NaN, to = NaN] = about.split('-').map(Number);
    const [start = NaN, end = NaN] = (joined.at(-1) ?? '').split('-').map(Number);
    if (from <= end + 1 && to >= start - 1)
      joined[joined.length - 1] = `${Math.min(start, from)}-${Math.max(end, to)}`;
    else joined.push(about);
  }
  return joined;
}

/** Maximum items that one line names; the rest are counted. */
const maxJoined = 12;

/** Maximum places of one file in a joined line. */
const maxPlaces = 4;

/** Maximum names of what edits of one file changed. */
const maxChanges = 3;

/** True for an edit that worked, if its line says what it changed. */
function isToldByNames({ outcome, changes = [] }: StepWords): boolean {
  return outcome === 'ok' && changes.length > 0;
}

/** Names what a call was about. A long command is told by its title alone. */
function subjectOf(
  { kind, path, about, title, changes = [] }: StepWords,
  pathOf?: (path: string) => string,
): string {
  const file = path === '' || !pathOf ? path : pathOf(path);
  if (kind === 'edit') {
    const names = changes.filter((name) => name !== otherNames);
    const isCut = names.length > maxChanges || names.length < changes.length;
    const named = isCut ? [...names.slice(0, maxChanges - 1), otherNames] : names;
    const told = [...named, about.slice(1, -1)].filter((words) => words !== '');
    return told.length === 0 ? file : `${file} (${told.join(', ')})`;
  }
  const isLong = title !== '' && isLongCommand(about);
  const subject =
    kind === 'command' && isLong
      ? ''
      : about === '' || file === ''
        ? about + file
        : kind === 'search'
          ? `${about} in ${file}`
          : `${file} ${about}`;
  return [subject, title === '' ? '' : `(${title})`].filter((words) => words !== '').join(' ');
}

// The subject of a call

/** Longer arguments, in UTF-16 units, are not parsed. */
export const maxInput = 1_000_000;
const maxTitle = 60;

export function pathIn(sent: JsonRecord): string {
  const key = pathKeys.find((name) => typeof sent[name] === 'string');
  return key === undefined ? '' : pathWords(sent[key] as string);
}

/** Returns a path on one line; of a very long one, whole segments of its end. */
function pathWords(path: string): string {
  const line = oneLine(path);
  if (line.length <= 200) return line;
  const end = line.slice(-160);
  const at = end.indexOf('/');
  return at < 0 ? '' : `…${end.slice(at)}`;
}

const editWords = new Set('edit write replace patch insert append create delete multiedit'.split(' '));
const readWords = new Set(['read', 'view', 'open', 'cat', 'show']);
const findWords = new Set(['grep', 'glob', 'search', 'find', 'ls', 'list']);

export function kindOf(tool: string, sent: JsonRecord, path: string): StepKind {
  const words = wordsOf(tool);
  if (commandIn(sent) !== undefined && path === '') return 'command';
  if (path !== '' && isEditing(words)) return 'edit';
  if (planIn(sent) !== undefined) return 'plan';
  if (typeof sent['pattern'] === 'string') return 'search';
  if (path !== '' && words.some((word) => readWords.has(word))) return 'read';
  if (path !== '' && words.some((word) => findWords.has(word))) return 'search';
  return isTaskCall(tool, sent) ? 'plan' : 'other';
}

/** True for the words in the name of a tool that edits files. */
export const isEditing = (words: readonly string[]): boolean => words.some((word) => editWords.has(word));

function aboutOf(kind: StepKind, sent: JsonRecord): string {
  switch (kind) {
    case 'command':
      return commandWords(commandIn(sent) ?? '');
    case 'edit': {
      const { content } = sent;
      return typeof content === 'string' ? `(${countOf(content.split('\n').length, 'line')})` : '';
    }
    case 'plan':
      return planIn(sent) === undefined ? taskWords(sent) : planWords(planIn(sent)!);
    case 'search':
      return typeof sent['pattern'] === 'string' ? quoted(sent['pattern'], 80) : '';
    case 'read':
      return linesOf(sent);
    case 'other':
      return valuesOf(sent);
  }
}

/** Returns the lines that a call reads, if it names them. */
function linesOf({ offset, limit }: JsonRecord): string {
  if (typeof offset !== 'number') return '';
  return typeof limit === 'number' ? `${offset}-${offset + limit - 1}` : `${offset}-`;
}

// Plans in the arguments of calls

/**
 * Finds a plan in the arguments of a call: a list of items with a status. Tools for plans have many names, but share this shape. Undefined
 * if there is no plan.
 */
export function planIn(sent: JsonRecord): readonly PlanItem[] | undefined {
  const list = planItems(sent) ?? [];
  const items = list.flatMap(({ status, ...rest }) => {
    const texts = Object.values(rest).filter((value) => typeof value === 'string');
    const [words = '', also = ''] = texts.filter((text) => severalWords.test(text.trim()));
    return typeof status === 'string' ? [{ status, words, also }] : [];
  });
  return items.length > 0 && items.length === list.length ? items : undefined;
}

const severalWords = /[\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;

/** Returns the list in a call's arguments whose items all have a status; undefined if there is none. */
export function planItems(sent: JsonRecord): readonly JsonRecord[] | undefined {
  return Object.values(sent).find(
    (inner): inner is readonly JsonRecord[] =>
      Array.isArray(inner) && inner.length > 0 && inner.every((item) => isRecord(item) && 'status' in item),
  );
}
