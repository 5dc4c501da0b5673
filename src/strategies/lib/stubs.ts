/**
 * Writes the texts that replace folded content: what it was, how big it is, and how to read it again. They are pure functions of the original, so that the
 * same fold gives the same bytes. Quotes from the original are short: a stub is data, not instructions. Dropped messages leave a log of them.
 */
import { failureWords } from '../../outline/lib/call-outcome.ts';
import { hasEffect } from '../../outline/lib/effects.ts';
import {
  answerWords,
  countOf,
  isLongCommand,
  previewWords,
  resultEnds,
  shortNames,
} from '../../outline/outcome.ts';
import { newestPlan, planWords, wholePlan } from '../../outline/lib/plans.ts';
import { verdictOf } from '../../outline/lib/verdict.ts';
import { inFolder, projectFolders } from '../../outline/lib/work-folders.ts';
import { isTelling, type Run, runOf, spellLeftOut } from '../../outline/lib/calls-in-short.ts';
import { type Steps, runSteps } from '../../conversation/steps.ts';
import { placesFound } from '../../outline/files-shown.ts';
import { type CallWords, type StepWords, stepLines } from '../../outline/step-line.ts';

/** Replaces a tool result. Its call is right before it, so the stub describes the result alone. */
export function* resultStub(
  folded: KeptText & {
    readonly text: string;
    /** The call that returned it; undefined if it is unknown. */
    readonly call: CallWords | undefined;
    readonly isError?: boolean | undefined;
    /** True if a later call edited the file that the call read. */
    readonly isEditedSince?: boolean;
    /** True for a result that stays in view in a request with more space: the plan, or rules in a file. */
    readonly isRules?: boolean | undefined;
  },
): Steps<string> {
  const { isEditedSince = false, isRules = false, memory, recallTool } = folded;
  const since = isEditedSince ? ' (edited since)' : '';
  if (isRules) {
    const name = folded.call?.path ? ` of ${folded.call.path}` : '';
    return `[Folded instructions${name}: ${yield* size(folded.text)}${since}. The request did not fit with them, but they still hold. ${shows(memory, recallTool)}]`;
  }
  const part = [previewWords(folded.text) ?? [], yield* gist(folded)].flat().join(', ');
  return `[Folded result: ${part}${since}. ${shows(memory, recallTool)}]`;
}

/** Says what a result holds: lines of a file, places, the failing and the last line of a command, or the first line that tells something. */
function* gist({ text, call, isError }: Parameters<typeof resultStub>[0]): Steps<string> {
  const own = { kind: 'other', isListing: false, ...call, isError } as const;
  const { first, failing, last, lines } = resultEnds(own, text);
  if (failing !== undefined) return `${yield* size(text)}; ${failureWords(failing, lines)}`;
  if (call?.kind === 'read') return yield* linesRead(text);
  const places = call?.isListing ? yield* placesFound(call, text) : undefined;
  if (places !== undefined) return places;
  if (call?.kind === 'edit') return `ok, ${yield* size(text)}`;
  const report = call?.kind === 'other' && isError !== true ? verdictOf(text) : undefined;
  if (report !== undefined) return `${yield* size(text)}; it says ${report}`;
  const isEnd = call?.kind === 'command' && !call.isListing;
  const line = answerWords(text, isEnd ? last : first, 80);
  if (!line.startsWith('"')) return `${yield* size(text)}${line === '' ? '' : '; '}${line}`;
  return `${yield* size(text)}; ${isEnd ? 'at its end' : 'it begins'} ${line}`;
}

/** A pattern of the signs between the number that a tool puts before a line of a file, and the line. */
export const numberSigns = String.raw`(?:→|\t|\||: )`;

/** Matches the number of a line. */
const lineNumber = new RegExp(String.raw`[^\S\n]*(\d+)${numberSigns}`, 'y');

/** Says which lines of a file a result shows. It reads them from the last to the first, in steps and without a list of them: there can be millions. */
function* linesRead(text: string): Steps<string> {
  let count = 0;
  let to: string | undefined;
  for (let at = text.length - 1; at >= -1; at--) {
    if (at % unitsPerStep === unitsPerStep - 1) yield;
    if (at >= 0 && text[at] !== '\n') continue;
    count++;
    to ??= numberAt(text, at + 1);
  }
  const from = numberAt(text, 0);
  return `${from === undefined ? countOf(count, 'line') : `lines ${from}-${to}`} of the file as it was then`;
}

function numberAt(text: string, lineStart: number): string | undefined {
  lineNumber.lastIndex = lineStart;
  return lineNumber.exec(text)?.[1];
}

/** UTF-16 units that are read in one step: less than 1 ms. */
const unitsPerStep = 131_072;

/** Replaces one long text in the arguments of a call. The original is the whole arguments; `path` leads to this text in them. */
export function argumentStub({
  text,
  memory,
  path,
  recallTool,
}: KeptText & Readonly<Record<'text' | 'path', string>>): string {
  // A long path would be rejected, or cost more than the whole arguments.
  const shortPath = path.length > 200 ? undefined : path;
  return (
    `[${runSteps(size(text))} were written here; this note stands in their place and is not what was written. ` +
    `${shows(memory, recallTool, shortPath)}]`
  );
}

/** Replaces an image, document or sound. `from` says which step it came from. */
export function mediaStub(folded: KeptText & Readonly<Record<'name' | 'size' | 'from', string>>): string {
  const { name, size: measured, from, memory, recallTool } = folded;
  return `[Folded ${name === 'PDF' ? name : name.toLowerCase()}: ${measured}, ${from}. ${shows(memory, recallTool)}]`;
}

/** An entry of a log: words, which may be about the result of the step `on`, or a step. A short answer needs its `answered` reply. `verdict`: the same in fewer words. */
export type LogEntry =
  | Readonly<{ kind: keyof typeof speakers; text: string; said?: string; verdict?: string; on?: StepWords }>
  | { readonly kind: 'step'; readonly step: StepWords };

/** Messages that one id recalls, how many they are, and what was said and done in them, in order. */
export type LogPage = Readonly<{ memory: string; messages: number; entries: readonly LogEntry[] }>;

type LogOptions = {
  readonly pages: readonly LogPage[];
  /** Characters of the lines; of the user's words with what came of them; and of these words, of which the first are in the log even if it is 0. */
  readonly maxCharacters: number;
  readonly maxVerdicts: number;
  readonly maxWords: number;
  readonly known: KnownNames;
  readonly recallTool: string | undefined;
};

/**
 * Replaces whole messages that were dropped by a log of them, in order: what the user said, word for word, and each step with its outcome. If
 * space is short, it keeps words of the user, then failures, edits with failed checks that were mended and the newest plan, findings, outcomes of commands,
 * replies, what was read, and last what was searched.
 */
export function* messagesLog(log: LogOptions): Steps<string> {
  const { pages, recallTool } = log;
  const messages = pages.reduce((sum, page) => sum + page.messages, 0);
  const isOne = pages.length === 1;
  const ids = isOne ? pages[0]!.memory : 'the id ahead of a line or of one above it';
  const call =
    recallTool === undefined
      ? `kept as ${ids}`
      : `${recallTool} ${isOne ? JSON.stringify({ id: ids }) : `with ${ids}`} shows them`;
  const fitting = yield* fittingLines(log);
  const filled = fitting.filter(({ lines: own }) => own.length > 0);
  const lines = (filled.length > 0 ? filled : fitting.slice(0, 1)).flatMap(({ memory, lines: own }) =>
    isOne ? own : [`${memory}: ${own[0] ?? '…'}`, ...own.slice(1)],
  );
  const head = `Folded ${messages} earlier messages, in order; ${call}`;
  return `[${lines.length === 0 ? head : [`${head}:`, ...lines].join('\n')}]`;
}

type PageLines = { readonly memory: string; readonly lines: readonly string[] };

/** The entries that a log keeps: all below a rank, and the newest of that rank; of the user's words, the others in brief, if `from` is no more than their number. */
type LogCut = { readonly rank: number; readonly from: number };

/** Ranks of entries: the lower, the longer they stay. */
const ranks = { words: 0, verdict: 1, failed: 2, edit: 3, found: 4, outcome: 5, read: 6, plan: 7, search: 8 };

function rankOf(entry: LogEntry, known: KnownNames): number {
  const { plan, repaired, repairs } = known;
  if (entry.kind === 'user' || entry.kind === 'summary') return ranks.words;
  // Words on a failure stay as long as the failure: it may be no fault at all.
  if (entry.kind === 'found')
    return entry.on?.hasFailed ? rankOf({ kind: 'step', step: entry.on }, known) : ranks.found;
  if (entry.kind !== 'step')
    return entry.kind === 'answered' || entry.verdict !== undefined ? ranks.verdict : ranks.outcome;
  const { step } = entry;
  if (step.user) return ranks.words;
  if (step.kind === 'plan') return step === plan?.call ? ranks.edit : ranks.plan;
  // A failed check stays as long as the edits that it led to, and no longer than its repair: alone, it would read as if it were still there.
  if (repaired.has(step) && step.kind !== 'command') return ranks.search;
  if (repaired.has(step) || repairs.has(step)) return ranks.edit;
  if (step.hasFailed) return ranks.failed;
  if (step.kind === 'edit' || step.writes.length > 0 || step.isReport) return ranks.edit;
  if (step.kind === 'read' || step.kind === 'search') return ranks[step.kind];
  if (hasEffect(step)) return ranks.verdict;
  return step.isListing ? ranks.search : ranks.outcome;
}

/** Returns the characters of a log that leaves nothing out. */
export function* wholeLogCharacters(pages: readonly LogPage[], known: KnownNames): Steps<number> {
  return charactersOf(yield* spellPages({ pages, known }, { rank: ranks.search, from: 0 }));
}

function charactersOf(pages: readonly PageLines[]): number {
  const named = pages.filter(({ lines }) => lines.length > 0);
  return named.reduce((sum, { lines }) => sum + idCharacters + lines.join('\n').length + 1, 0);
}

/** Finds the longest log that fits. */
function* fittingLines(log: LogOptions): Steps<readonly PageLines[]> {
  const total = log.pages.reduce((sum, { entries }) => sum + entries.length, 0);
  function* fits(cut: LogCut): Steps<readonly PageLines[] | undefined> {
    const spelled = yield* spellPages(log, cut);
    const { maxWords, maxCharacters, maxVerdicts } = log;
    const verdicts = maxCharacters > 0 ? Math.min(maxWords, Math.max(maxVerdicts, maxCharacters)) : 0;
    return charactersOf(spelled) <= ([maxWords, verdicts][cut.rank] ?? maxCharacters) ? spelled : undefined;
  }
  const whole = yield* fits({ rank: ranks.search, from: 0 });
  if (whole) return whole;
  let rank = ranks.search;
  while (rank > ranks.words && !(yield* fits({ rank, from: total }))) rank--;
  // The newest entries of the rank that does not fit as a whole stay.
  let [low, high] = [0, rank === ranks.words ? total * 2 : total];
  while (low < high) {
    const from = (low + high) >> 1;
    if (yield* fits({ rank, from })) high = from;
    else low = from + 1;
  }
  return yield* spellPages(log, { rank, from: low });
}

/** Characters that are as many tokens as an id. */
const idCharacters = 45;

function* spellPages(
  { pages, known }: Pick<LogOptions, 'pages' | 'known'>,
  { rank, from }: LogCut,
): Steps<readonly PageLines[]> {
  const names = namesOnce(known);
  const all = pages.flatMap((page) => page.entries);
  const demand = all.findIndex(({ kind }) => kind === 'user');
  const start = rank === ranks.words ? from - all.length : from;
  let at = 0;
  const spelled: { readonly memory: string; readonly lines: string[] }[] = [];
  const leftOut: Run[] = [];
  for (const { memory, entries } of pages) {
    yield;
    const lines: string[] = [];
    const steps: StepWords[] = [];
    const flush = (): void => {
      lines.push(...stepLines(steps.splice(0), names.pathOf).map(({ text }) => text));
    };
    for (const entry of entries) {
      const own = rankOf(entry, known);
      const isKept = own < rank || (own === rank && at >= start) || at === Math.max(0, demand);
      at++;
      if (at % entriesPerStep === 0) yield;
      if (!isKept && entry.kind === 'step') leftOut.push(runOf(entry.step, known));
      if (!isKept) continue;
      // Calls of a turn stay ahead of its end and of the words of the user.
      const isSaid = own <= ranks.verdict && (entry.kind !== 'step' || entry.step.user !== undefined);
      // Edits and failures are told where they were.
      const isTold = isSaid || leftOut.some(isTelling);
      if (leftOut.length >= (isTold ? 1 : minLeftOut)) {
        flush();
        lines.push(spellLeftOut(leftOut.splice(0)));
      }
      if (entry.kind === 'step') {
        // Steps beyond this number are joined in another line, because a line is written at once.
        if (steps.length >= entriesPerStep) flush();
        const named = namedOnce(entry.step, known, names.isNew);
        const step = known.isOfProject(named.folder) ? named : inFolder(named, names.pathOf);
        // How far an older plan had come says nothing without words that are new.
        const isOld = step.kind === 'plan' && step.user === undefined && entry.step !== known.plan?.call;
        if (isOld && (step.tasks !== undefined || !step.about.includes('"'))) continue;
        steps.push(step);
      } else {
        flush();
        const whole = entry.kind === 'user' ? ranks.words : ranks.outcome;
        const isBrief = rank < whole || (rank === whole && at <= from);
        lines.push(speakers[entry.kind] + ((isBrief && entry.verdict) || entry.text));
      }
    }
    flush();
    // An id holds for the lines behind it, also for calls that are left out.
    if (lines.length > 0 && leftOut.length > 0) lines.push(spellLeftOut(leftOut.splice(0)));
    spelled.push({ memory, lines });
  }
  if (leftOut.length > 0)
    (spelled.findLast(({ lines }) => lines.length > 0) ?? spelled[0])?.lines.push(spellLeftOut(leftOut));
  return spelled;
}

/** Leaves out of a step what the reader has elsewhere, and adds its settings to its title. */
function namedOnce(step: StepWords, { plan }: KnownNames, isNew: (words: string) => boolean): StepWords {
  const { kind, about, plan: items, settings } = step;
  if (kind === 'plan') {
    if (step === plan?.call)
      return { ...step, ...(step.tasks && { tool: 'Tasks', outcome: '' }), about: wholePlan(plan.items) };
    return { ...step, about: step.tasks ? about : planWords(items, isNew) };
  }
  const title = isNew(step.title) || isLongCommand(about) ? step.title : '';
  return { ...step, title: [title, ...settings.filter(isNew)].filter((words) => words !== '').join(', ') };
}

/** Entries that are written in one step. */
const entriesPerStep = 500;

/** So many calls that are left out get a line; fewer are counted with the next ones. */
const minLeftOut = 3;

const speakers = { user: 'USER: ', summary: '', reply: 'YOU: ', found: 'YOU: ', answered: 'YOU: ', note: '' };

/** The names that a reader of a log has elsewhere, and facts about its steps together. */
export type KnownNames = {
  /** Paths in full that the reader has elsewhere, with the folders above them. */
  readonly full: Set<string>;
  /** Names a path that was given in full before. */
  readonly shortName: (path: string) => string;
  /** True for a folder of the project, which is not told. */
  readonly isOfProject: (folder: string) => boolean;
  /** Titles of commands, settings of calls, and items of plans that the reader has elsewhere. */
  readonly words: Set<string>;
  /** The newest plan and its step, if no call that stays has it: a log tells it as a whole. */
  readonly plan: ReturnType<typeof newestPlan<StepWords>>;
  /** Failed steps that a later one repaired, each with that one. */
  readonly repaired: ReadonlyMap<StepWords, StepWords>;
  readonly repairs: ReadonlySet<StepWords>;
};

/** Sources of the names: texts of other logs, calls that stay, dropped steps, and the paths and folders of all calls. */
export type NameSources = {
  readonly logs: string;
  readonly staying: readonly CallWords[];
  readonly dropped: readonly StepWords[];
  readonly all: readonly Pick<CallWords, 'path' | 'folder'>[];
  readonly repaired: ReadonlyMap<StepWords, StepWords>;
};

/** Collects what logs need to know. */
export function knownNames({ logs, staying, dropped, all, repaired }: NameSources): KnownNames {
  const known: KnownNames = {
    full: new Set(),
    shortName: shortNames(all.flatMap(({ path, folder }) => [path, folder])),
    isOfProject: all.some(({ folder }) => folder !== '') ? projectFolders(all) : () => true,
    words: new Set(),
    plan:
      dropped.some(({ kind }) => kind === 'plan') && !staying.some(({ plan }) => plan.length > 0)
        ? newestPlan(dropped)
        : undefined,
    repaired,
    repairs: new Set(repaired.values()),
  };
  for (const { path, title, settings, plan: items } of staying) {
    if (path.includes('/')) addPath(known, path);
    for (const words of [title, ...settings, ...items.map((item) => item.words)]) known.words.add(words);
  }
  return addNamesIn(logs, known);
}

/** Adds the names in the text of a log. */
export function addNamesIn(text: string, known: KnownNames): KnownNames {
  for (const [, title] of text.matchAll(/ \(([^()\n]{4,120})\)(?::? |,|$)/gm))
    for (const words of [title!, ...title!.split(', ')]) known.words.add(words);
  for (const [, item] of text.matchAll(/"([^"\n]{4,80})"/g)) known.words.add(item!);
  for (const path of text.match(/(?<![\w.@~+-])[\w.@~+-]*(?:\/[\w.@~+-]+)+/g) ?? []) addPath(known, path);
  return known;
}

function addPath({ full }: Pick<KnownNames, 'full'>, path: string): void {
  let folder = path;
  for (let depth = 0; depth < 30 && folder !== '' && !full.has(folder); depth++) {
    full.add(folder);
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')));
  }
}

/** Returns what spells a path in full once and then by its short name, and what is true for words that were not given yet. */
function namesOnce({ full, shortName, words, plan }: KnownNames) {
  const paths = { full: new Set(full) };
  // The plan as it stands at the end repeats the items of older ones.
  const given = new Set([...words, ...(plan?.items ?? []).map((item) => item.words)]);
  return {
    pathOf: (path: string): string => {
      if (paths.full.has(path)) return shortName(path);
      addPath(paths, path);
      return path;
    },
    isNew: (text: string): boolean => text !== '' && !given.has(text) && given.add(text) !== undefined,
  };
}

/** The id of an original, and the tool that shows it. */
export type KeptText = { readonly memory: string; readonly recallTool: string | undefined };

/** Says in one sentence what to call. */
function shows(memory: string, recallTool: string | undefined, path?: string): string {
  return recallTool === undefined
    ? `Kept as ${memory}`
    : `${recallTool} ${JSON.stringify({ id: memory, path })} shows it`;
}

/** Says in a sentence how to read an original again. */
export function way(memory: string, recallTool: string | undefined, path?: string): string {
  return recallTool === undefined
    ? `It is kept as ${memory}.`
    : `To read it again call ${recallTool} with ${JSON.stringify({ id: memory, path })}.`;
}

function* size(text: string): Steps<string> {
  let lines = 1;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\n') lines++;
    if (at % unitsPerStep === unitsPerStep - 1) yield;
  }
  return lines > 1 ? `${lines} lines` : `${text.length} characters`;
}
