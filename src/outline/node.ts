/**
 * Makes the nodes of an outline: sub-goals, phases, overviews, a whole history. A node holds what was asked, what it was for and what came of it, what was
 * found and done, files, and what is open. Records (record.ts) and summaries (extract.ts) are views of it. Linear, but for sorting. Pure.
 */
import { parseRecord } from '../conversation/json-scan.ts';
import { groupBy } from '../es2024.ts';
import { factsIn, maxTyped, textOfStep } from './facts.ts';
import { oneLine, tellingLines, wholeWords } from './outcome.ts';
import {
  doneLines,
  factLines,
  isLogged,
  lastSegment,
  type OutlineLine,
  pairsKnown,
  type SurveyedCall,
} from './rank.ts';
import { interruption, stateMark } from './summary-text.ts';
import { firstSentences, isProse, linesOf, nameOf, partsOf, plain, sentencesOf } from './sentences.ts';
import {
  clientSummary,
  interruptionNote,
  ofHook,
  questionBefore,
  typedText,
  withQuestion,
} from './lib/typed-text.ts';
import { inSummary, summaryLines } from './lib/client-summary.ts';
import { isTaskCall, newestPlan, type PlanItem } from './lib/plans.ts';
import { closingLines, olderClosing } from './lib/closings.ts';
import { fileLine, filesIn, type TouchedFile } from './lib/touched-files.ts';
import { type StepWords, planIn, stepLine, stepWords } from './step-line.ts';
import type { SummaryStep } from './summarizer.ts';

/** A part of what happened, up to all of it. */
export type OutlineNode = {
  /** 1 a sub-goal or a history, 2 a phase, 3 and more overviews. */
  readonly level: number;
  /** Its id, such as `s3`, where nodes have ids. */
  readonly id: string;
  /** The purpose of the steps; empty for higher levels. */
  readonly goal: string;
  /** The result of the steps; empty for higher levels. */
  readonly outcome: string;
  readonly children: readonly OutlineNode[];
  /** Files and other names that its calls named. */
  readonly artifacts: readonly string[];
} & NodeContent;

/** The content of the steps of a node. Lines come most important first. */
type NodeContent = {
  /** The user's requests, word for word, in order. */
  readonly asked: readonly AskedLine[];
  /** Lines of a summary that the client wrote of what came before; the goal, the user's words and what is open are worth more. */
  readonly prose: readonly AskedLine[];
  /** The beginnings of replies that ended a turn, newest first: what came of what the user asked. */
  readonly closings: readonly OutlineLine[];
  /** Sentences of replies and results. */
  readonly found: readonly OutlineLine[];
  /** The log of calls. */
  readonly done: readonly OutlineLine[];
  /** Files with what was done to them, with those of earlier summaries; edited ones first, newest first. */
  readonly files: (earlier: readonly TouchedFile[]) => readonly OutlineLine[];
  /** The newest plan in a call: items by status. */
  readonly plan: ReadonlyMap<string, readonly string[]>;
  /** True if the user has demanded so much since that nobody goes on with a plan, even with one of an earlier summary. */
  readonly isPlanOver: boolean;
  /** The reply at the very end, after which there is neither a call nor a demand, and its place. */
  readonly last: { readonly text: string; readonly at: number };
};

/** A line of a text; lines of one text have the same whole number in `at`. */
export type AskedLine = {
  readonly text: string;
  readonly worth: number;
  readonly at: number;
  /** True if the message goes on behind this line. */
  readonly hasMore?: boolean;
};

/** The content of a node that was not made of steps. */
export const noContent: NodeContent = {
  asked: [],
  prose: [],
  closings: [],
  found: [],
  done: [],
  files: () => [],
  plan: new Map(),
  isPlanOver: false,
  last: { text: '', at: 0 },
};

/** The facts of a node that its steps do not say. */
export type NodeOrigin = {
  readonly id?: string;
  readonly goal: string;
  /** The outcome that the program stated; undefined if it stated none. */
  readonly givenOutcome?: string | undefined;
  /** The id of a step, where steps have ids. */
  readonly idOfStep?: (at: number) => string;
  /** Texts that the reader has elsewhere. */
  readonly known?: readonly string[];
  /** Places between the steps, in order, where something stays that is no step: no line of the log joins calls across them. */
  readonly breaks?: readonly number[];
  /** Those of them where words of the user stay: a reply ahead of one ended a turn. */
  readonly turns?: readonly number[];
};

/** The longest goal and outcome, in UTF-16 units. */
const maxGoal = 240;
const maxOutcome = 500;
/** Newest replies that ended a turn of which so much is told. */
const maxNewest = 5;
/** Maximum demands of the user after a plan whose items still count as open. */
const maxDemands = 1;

/** Makes a node of steps: reads them once, in order. */
export function nodeOf(
  steps: readonly SummaryStep[],
  { id = '', goal, givenOutcome = '', idOfStep, known = [], breaks = [], turns = [] }: NodeOrigin,
): OutlineNode {
  const asked: AskedLine[] = [];
  const typed = { asked, known: new Set<string>() };
  const prose: AskedLine[] = [];
  const closings: (readonly OutlineLine[])[] = [];
  const calls: (SurveyedCall & { readonly input: string })[] = [];
  const interruptions: OutlineLine[] = [];
  let demandsSince = 0;
  let hasChanged = false;
  // A hook of the client that stopped what the user typed before.
  let stop = '';
  const endTurn = (at: number, question: string): void => {
    const told = closingLines(replyAt(steps, at), at, { question, isAnswer: !hasChanged });
    if (told.length > 0) closings.unshift(told);
    hasChanged = false;
  };
  const ends = new Set(turns.map((place) => Math.floor(place)));
  for (const [at, step] of steps.entries()) {
    if (ends.has(at - 1)) endTurn(at - 1, '');
    if (step.type === 'said') {
      if (step.by === 'assistant') continue;
      const { words, note } = typedText(step.text, textOfStep(steps[at - 1]));
      if (clientSummary.test(step.text)) addSummary({ asked, prose }, step.text, at);
      else if (step.by === 'user') {
        if (words !== '') demandsSince++;
        const isStop = interruptions.at(-1)?.at === at - 1;
        const replied = words === '' ? -1 : replyBefore(steps, at);
        const reply = replyAt(steps, replied);
        const question = note === '' ? questionBefore(reply, words) : '';
        if (words !== '') endTurn(replied, question);
        addAsked(typed, words, at, {
          question,
          mark: isStop ? 'INTERRUPTED the model: ' : note + stop === '' ? '' : `(${note || stop}) `,
        });
        if (words !== '') stop = '';
        else if (ofHook.test(step.text)) stop = note;
      }
      if (note === interruptionNote)
        interruptions.push({ section: 'done', text: interruption, at, isUsers: true });
      continue;
    }
    const { tool, input, result, failed } = step;
    const words = stepWords({ tool, input, result, isError: failed || undefined });
    calls.push({ at, words, input });
    hasChanged ||= words.kind === 'edit' || words.writes.length > 0;
    const { user } = words;
    if (user && user.words !== '')
      addAsked(typed, user.words, at, { mark: user.isRefusal ? `REFUSED ${callOf(words)}: ` : '' });
    if (words.plan.length > 0 || words.tasks?.length) demandsSince = 0;
  }
  const wordsOf = new Map(calls.map(({ at, words }) => [at, words]));
  const facts = factsIn(steps, wordsOf, ends).filter((fact) => !isLogged(fact, wordsOf));
  const typedAt = [...asked, ...interruptions].map(({ at }) => Math.floor(at));
  const inOrder = [...typedAt, ...breaks].toSorted((a, b) => a - b);
  const done = [...interruptions, ...doneLines(calls, { idOf: idOfStep, breaks: inOrder })];
  const last = calls.findLast(({ words }) => words.outcome !== '');
  const came = [givenOutcome, lastWords(steps, wordsOf)]
    .map((text) => firstSentences(text, maxOutcome))
    .find((text) => text !== '');
  return {
    level: 1,
    id,
    goal: wholeWords(oneLine(goal), maxGoal),
    // Without words, the newest call that returned something says how it ended, or all calls what was done.
    outcome: came ?? (last ? stepLine(last.words, lastSegment) : goal === '' ? (done[0]?.text ?? '') : ''),
    children: [],
    artifacts: [...new Set(calls.flatMap(({ words }) => (words.path === '' ? [] : [words.path])))],
    asked,
    prose,
    closings: closings.flatMap((lines, index) =>
      index < maxNewest ? lines : [olderClosing(lines, replyAt(steps, Math.floor(lines[0]!.at)))],
    ),
    found: factLines(facts, pairsKnown(known)).map((line) => {
      const kind = line.section === 'shown' ? wordsOf.get(Math.floor(line.at))?.kind : undefined;
      const isOfFile = kind === 'read' || kind === 'search';
      return {
        ...line,
        ...(idOfStep && { id: idOfStep(Math.floor(line.at)) }),
        ...(isOfFile && { isOfFile }),
      };
    }),
    done,
    files: (earlier) => filesIn(calls, earlier).map(fileLine),
    plan: byStatus(newestPlan(calls.map(({ words }) => words))?.items ?? []) ?? new Map(),
    isPlanOver: demandsSince > maxDemands,
    last: { text: replyAt(steps, steps.length - 1), at: steps.length - 1 },
  };
}

/** Leaves out of a log what the words of the user tell at the same place. */
export function withoutToldByUser(
  done: readonly OutlineLine[],
  asked: readonly AskedLine[],
): readonly OutlineLine[] {
  const told = new Set(asked.map(({ at }) => Math.floor(at)));
  return done.filter(
    ({ isUsers, text, at }) => !isUsers || !(told.has(at) || (text === interruption && told.has(at + 1))),
  );
}

/** Returns the index of the reply ahead of the user's words; texts that the client sent between are none. */
function replyBefore(steps: readonly SummaryStep[], before: number): number {
  let at = before - 1;
  for (let step = steps[at]; step?.type === 'said' && step.by !== 'assistant'; step = steps[--at]) {
    const { words, note } = typedText(step.text, textOfStep(steps[at - 1]));
    if ((step.by === 'user' && words !== '') || note === interruptionNote) return -1;
  }
  return at;
}

/** Returns the reply that is a step; empty for another step. */
function replyAt(steps: readonly SummaryStep[], at: number): string {
  const step = steps[at];
  return step?.type === 'said' && step.by === 'assistant' ? step.text : '';
}

/** The part of a message that is kept word for word before all else, and its longest last line that is. */
const maxQuoted = 400;
const maxEnd = 160;
/** A message of so many UTF-16 units may have a last line of twice that length, such as the request of a comment. */
const maxComment = 1_000;

/** Adds the lines of what the user typed, with the question that a short answer needs, behind a mark of what the user refused. */
function addAsked(
  { asked, known }: { readonly asked: AskedLine[]; readonly known: Set<string> },
  words: string,
  step: number,
  { question = '', mark = '' }: { readonly question?: string; readonly mark?: string },
): void {
  if (words.length > maxTyped) {
    const [begin = '', title = ''] = sentencesOf(words.slice(0, 2_000));
    // `Implement the following plan:` says nothing without the title of the plan.
    const text = /[:：]$/.test(begin) ? `${begin} ${title}` : begin;
    if (asked.length === 0 && text !== '') asked.push({ text, worth: 2, at: step });
    return;
  }
  const lines = piecesOf(words.replaceAll(/^[^\S\n]*(?:```|~~~).*$/gm, ''));
  // Code that the user pasted takes the room that the other words leave.
  const own = new Set(piecesOf(words));
  const longest = words.length <= maxComment ? 2 * maxEnd : maxEnd;
  const last = lines.findLast((line) => own.has(line) && line.length <= longest);
  let quoted = 0;
  // A repeated message is told once. A demand that repeats some lines of an earlier one is told whole.
  const isKnown = lines.every((line) => known.has(line));
  if (isKnown && question === '' && mark === '') return;
  for (const [place, line] of lines.entries()) {
    const isOwn = own.size === lines.length || own.has(line);
    quoted += isOwn ? line.length : 0;
    // The last words often say what must not be done.
    const isBinding = quoted <= maxQuoted || line === last;
    const ofEnd = quoted > maxQuoted && line.length > maxEnd ? 1.5 : 2;
    const worth = asked.length === 0 ? 3 : isOwn && isBinding ? ofEnd : 1;
    const isAnswer = place === lines.length - 1 && question !== '';
    const text = (place === 0 ? mark : '') + (isAnswer ? withQuestion(line, question) : line);
    known.add(line);
    asked.push({ text, worth, at: step + place / 1_000, hasMore: place < lines.length - 1 });
  }
}

/** Returns the lines of what the user typed, long ones in sentences. */
function piecesOf(words: string): readonly string[] {
  return linesOf(words).flatMap((line) => (line.length > maxQuoted ? partsOf(line) : [line]));
}

/** Names a call that the user refused. */
function callOf({ tool, path, title, about }: StepWords): string {
  const subject = path === '' ? title || about : lastSegment(path);
  return subject === '' ? tool : `${tool} ${wholeWords(subject, 80)}`;
}

/** The maximum lines of a client's summary that are kept. */
const maxProseLines = 400;

/** Begins the user's words as a client's summary lists them. */
export const listedMark = '(in the part that the client summarized) ';

/**
 * Adds what a client's summary says: the user's words, which it lists, to what was asked; of the other lines, the goal, what was solved and what was open come
 * first and are worth more.
 */
function addSummary(
  { asked, prose }: { readonly asked: AskedLine[]; readonly prose: AskedLine[] },
  text: string,
  step: number,
): void {
  const lines = summaryLines(text, inSummary);
  for (const line of lines)
    if (line.isQuoting) asked.push({ text: listedMark + line.text, worth: 2, at: step });
  const first = lines
    .filter((line) => !line.isQuoting)
    .map((line) => (line.isState ? stateMark : '') + line.text);
  // The other lines of a summary in sections repeat in more words what these say.
  const isInSections = first.some((line) => line.startsWith(stateMark));
  const rest = (isInSections ? [] : linesOf(text.replace(clientSummary, ''), 20_000))
    .map((line) => line.replaceAll('**', ''))
    .filter((line) => !/[:：]$/.test(line) && !lines.some((one) => one.text.includes(line)))
    .slice(0, maxProseLines);
  for (const [place, line] of [...first, ...rest].entries())
    prose.push({
      text: wholeWords(line, 900),
      worth: place < first.length ? 2 : 1,
      at: step + place / 1_000,
    });
}

/**
 * Returns the reply after which no call follows, or else the last line of the last result, if it is a sentence. A tool that edits always says the
 * same.
 */
function lastWords(steps: readonly SummaryStep[], calls: ReadonlyMap<number, StepWords>): string {
  const at = steps.findLastIndex((step) => step.type === 'called' || step.by === 'assistant');
  const last = steps[at];
  if (last === undefined) return '';
  if (last.type === 'said') return last.text;
  const words = calls.get(at);
  if (words?.user) return stepLine(words, lastSegment);
  if (words?.kind === 'edit' || words?.kind === 'plan' || words?.isListing) return '';
  const line = oneLine(tellingLines(last.result ?? '').at(-1) ?? '');
  return line.length <= 300 && isProse(line) ? line : '';
}

// Plans

const maxItems = 40;

/** Returns the newest items of a plan by status, in their own words; undefined if some have none. */
function byStatus(items: readonly PlanItem[]): ReadonlyMap<string, readonly string[]> | undefined {
  if (items.some(({ words }) => words === '')) return undefined;
  return new Map(
    Array.from(
      groupBy(items.slice(-maxItems), ({ status }) => nameOf(plain(status))),
      ([status, of]) => [status, of.map(({ words }) => wholeWords(oneLine(words), 160))],
    ),
  );
}

/** True for a call that says how far a plan has come. */
export function tellsPlan(tool: string, argumentsJson: string): boolean {
  const sent = parseRecord(argumentsJson) ?? {};
  return isTaskCall(tool, sent) || planIn(sent)?.every(({ words }) => words !== '') === true;
}
