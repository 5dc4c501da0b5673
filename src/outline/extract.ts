/**
 * Implements the extractive summarizer: no model, no invented text, the same words for the same steps. A summary is a view of an outline node: what the user
 * asked word for word, what is open, then a log of what was done, what was found and the files in turns. Linear time. Pure.
 */
import { groupBy } from '../es2024.ts';
import { type InShort, logged, logItems, type LogWay } from './lib/summary-log.ts';
import { readFileLine } from './lib/touched-files.ts';
import { askedMark } from './lib/typed-text.ts';
import { closingLine } from './lib/closings.ts';
import { type AskedLine, listedMark, nodeOf, withoutToldByUser } from './node.ts';
import { countWithin, earlierLog, firstOfEach, inTurns, openLines, type OutlineLine } from './rank.ts';
import { firstSentences } from './sentences.ts';
import type { SummaryCut, Summarizer, SummaryRequest } from './summarizer.ts';
import {
  costOf,
  groupKey,
  readFiles,
  readSections,
  type Section,
  spellFiles,
  spellSections,
  stateMark,
} from './summary-text.ts';

/** The extractive summarizer. Never rejects. */
export const extractiveSummarizer: Summarizer = {
  name: 'extractive',
  summarize: (request) => Promise.resolve(extract(request)),
};

/** Writes a summary of at most `budget.max` tokens; undefined if nothing fits or there is nothing to say. Never throws. */
export function extract(request: SummaryRequest): string | undefined {
  return extractParts(request)
    ?.filter((part) => part !== '')
    .join('\n');
}

/** Writes a summary in parts, one more than there are `cuts`; a part without lines is empty. */
export function extractParts(request: SummaryRequest): readonly string[] | undefined {
  const { budget, count } = request;
  const { lines, cuts } = historyLines(request);
  const log = lines.filter(({ section }) => section === 'done');
  // Beside a model's text, which tells the order, findings come first.
  const isDivided = request.isToldByModel !== true;
  const aim = Math.min(budget.aim, budget.max);
  const taken: OutlineLine[] = [];
  const begun = new Set<string>();
  let used = 0;
  let binding = 0;
  for (const line of lines) {
    if (line.isInShort) continue;
    const cost = costOf(line, begun, count);
    if (used + cost > (line.isBinding ? budget.max : roomBeside(binding, budget, aim))) break;
    used += cost;
    if (line.isBinding) binding += cost;
    begun.add(logged.has(line.section) ? 'log' : line.section);
    if (line.group !== undefined) begun.add(groupKey(line.group));
    taken.push(line);
  }
  // Calls that are told in short take room, too, but no word of the user gives way to them.
  for (let last = taken.at(-1); last; last = taken.at(-1)) {
    const room = last.isBinding ? budget.max : roomBeside(binding, budget, aim);
    const text = waysToTell(last, request.isToldByModel)
      .map((way) => spell(taken, way.hasCalls ? log : [], { way, isDivided, cuts }))
      .find((one) => count(one.join('\n')) <= room);
    if (text !== undefined) return text;
    taken.pop();
  }
  return undefined;
}

const inShort: InShort = { hasCalls: true, named: 800, edits: 1_200, counted: 1e6, marksCuts: true };

/** Returns the ways to tell calls in short that are tried before a line is left out, the longest first. */
function waysToTell({ isBinding, isNeeded }: OutlineLine, isToldByModel = false): readonly InShort[] {
  // Beside a model's text, names of calls give way to findings.
  const fewer = { ...inShort, named: 0 };
  if (isToldByModel && !isBinding) return [{ ...inShort, named: 200 }, fewer];
  if (!isBinding && !isNeeded) return [inShort];
  const counts = { ...fewer, edits: 0 };
  const short = [inShort, fewer, counts, { ...counts, counted: 0 }];
  const none = { ...fewer, hasCalls: false };
  return isBinding ? [...short, none, { ...none, marksCuts: false }] : short;
}

/** Returns the room with which what was done and found has three quarters of the aim beside many words of the user, as far as the budget allows. */
function roomBeside(binding: number, { max }: SummaryRequest['budget'], aim: number): number {
  return Math.min(max, Math.max(aim, Math.floor(binding + (aim * 3) / 4)));
}

/** UTF-16 units of another summarizer's text that come before all other lines. */
const maxProse = 2_400;

/** UTF-16 units of the last reply, if it ended a turn; with less room, so many for each token of the budget. */
const maxLast = 700;
const lastForToken = 0.5;
const minLast = 160;

/** Returns everything that a summary may say, most important first, a view of a node and of the sections of earlier summaries, and where its log is cut. */
function historyLines({
  steps,
  originals,
  earlier,
  known,
  stepsAhead = [],
  cuts = [],
  question = '',
  isPlanKnown = false,
  isToldByModel = false,
  budget,
}: SummaryRequest): { readonly lines: readonly OutlineLine[]; readonly cuts: readonly number[] } {
  const elsewhere = known.map(readSections);
  const before = earlier.map(readSections);
  const toldByModel = isToldByModel ? (before.at(-1)?.prose ?? []) : [];
  const node = nodeOf(steps, {
    goal: '',
    known: [...elsewhere.flatMap(({ found }) => found), ...toldByModel],
    breaks: cuts.map((cut) => cut.steps - 0.5),
    turns: cuts.flatMap((cut) => (cut.isTurn ? [cut.steps - 0.5] : [])),
  });
  const items = (section: Section) => [...new Set(before.flatMap((body) => body[section]))];
  const old = (section: Section): readonly OutlineLine[] => {
    const texts = items(section);
    return texts.map((text, at) => ({ section, text, at: at - texts.length })).toReversed();
  };
  const log = earlierLog(before, stepsAhead);
  // Lines of earlier summaries and of the steps have their places in one list.
  const linesAhead = (summaries: number): number => log.filter(({ of }) => of < summaries).length;
  const aheadOf = (step: number): number =>
    linesAhead(before.filter((_, index) => (stepsAhead[index] ?? 0) <= step).length);
  const moved = (at: number): number => at + aheadOf(Math.floor(at));
  const movedBack = (place: number): number => place - log.filter(({ at }) => at < place).length;
  const inPlace = <Line extends PlacedLine>(line: Line): Line => {
    const { at, end, split } = line;
    const original = line.original ?? originals?.[Math.floor(at)];
    const lastOriginal = line.lastOriginal ?? (end === undefined ? undefined : originals?.[Math.floor(end)]);
    return {
      ...line,
      at: moved(at),
      ...(end !== undefined && { end: moved(end) }),
      ...(split && { split: (places: readonly number[]) => split(places.map(movedBack)).map(inPlace) }),
      ...(original !== undefined && { original, lastOriginal }),
    };
  };
  const ofLog = (...sections: readonly Section[]): readonly OutlineLine[] =>
    log.filter(({ section }) => sections.includes(section)).toReversed();

  const [first, ...others] = askedLines(ofLog('asked').toReversed(), node.asked.map(inPlace));
  const lastSaid = firstSentences(
    node.last.text,
    Math.min(maxLast, Math.max(minLast, budget.max * lastForToken)),
  );
  const ownLast = lastSaid === '' ? [] : [closingLine(lastSaid, node.last.text, node.last.at)];
  const last = ownLast.map((line) => ({ ...inPlace(line), isBinding: true }));
  const open = openLines(node.isPlanOver || isPlanKnown ? new Map() : node.plan);
  const isOldPlanOpen = node.plan.size === 0 && !node.isPlanOver && !isPlanKnown;
  // Versions before this one told the last words there, which are mostly over.
  const stillOpen = isOldPlanOpen ? old('open').filter(({ text }) => !text.startsWith('said last: ')) : [];

  const knownFiles = new Set(elsewhere.flatMap((one) => one.files.flatMap((item) => readFiles(item).files)));
  const oldFiles = items('files')
    .map(readFiles)
    .flatMap(({ group, files }) => files.map((text, at) => readFileLine(group, text, -1 - at)));
  const files = node.files(oldFiles).filter(({ text }) => !knownFiles.has(text));
  // Files that were only read follow these.
  const edited = files.filter(({ group }) => group !== 'read');
  const wholeEdited = countWithin(edited, maxEdited);
  const ofResults = node.found.filter(
    ({ section, isFinal, isOfFile }) => section === 'shown' && isFinal && !isOfFile,
  );
  const closings = [...node.closings, ...ofResults]
    .toSorted((a, b) => Number(a.isBeside ?? false) - Number(b.isBeside ?? false) || b.at - a.at)
    .map(inPlace);
  const answered = [...cuts, { steps: steps.length, question }];
  const questions = questionsAhead(answered, [...node.closings, ...ownLast]).map(inPlace);
  const told = toldTexts([...closings, ...questions, ...last], node.asked);
  const found = node.found.map(inPlace).filter((line) => !told(line));
  const [facts, more] = firstOfEach(found.filter((line) => !line.isOfFile));
  const ofClient = node.prose.map((line) => ({ ...line, section: 'prose' as const }));
  const telling = ofClient.filter(({ worth }) => worth > 1);
  const typed = [...ofLog('asked'), ...node.asked].filter(({ text }) => !text.startsWith(listedMark));
  const demands = new Set(typed.map(({ at }) => Math.floor(at))).size;
  const allProse = [...old('prose').toReversed(), ...telling];
  // The first of these lines lists what was open; the work that the others tell of has gone on once a turn has ended.
  const pending = allProse.find(({ text }) => text.startsWith(stateMark));
  const isOver = (line: OutlineLine): boolean =>
    line === pending
      ? demands > maxDemands
      : line.text.startsWith(stateMark) && (demands > maxDemands || node.closings.length > 0);
  // The goal, and what was open then.
  const neededOfClient = telling.filter(({ text }, index) => index === 0 || text.startsWith(stateMark));
  const prose = [...old('prose').toReversed(), ...neededOfClient].filter((line) => !isOver(line));
  const whole = countWithin(prose, maxProse);
  const late = [
    // Files can be read again, if their paths are known.
    ...found.filter((line) => line.isOfFile),
    ...(pending && isOver(pending) ? [pending] : []),
    ...ofClient.filter(({ worth }) => worth <= 1),
  ];
  const done = withoutToldByUser(node.done, node.asked).map(inPlace);
  const outside = done.filter(({ isOutside }) => isOutside);
  const ownLines = new Set([
    ...done.filter(({ isUsers }) => isUsers),
    ...outside.slice(0, countWithin(outside, maxOutside)),
  ]);
  const wholeClosings = isToldByModel ? 0 : countWithin(closings, maxClosings);
  const turns = [
    {
      lines: [...closings.slice(wholeClosings), ...ofLog('found').filter(({ isFinal }) => isFinal)],
      share: isToldByModel ? 12 : 20,
    },
    { lines: telling.filter((line) => !neededOfClient.includes(line)), share: 8 },
    { lines: prose.slice(whole), share: 1 },
    { lines: others.filter(({ worth }) => worth <= 1).toReversed(), share: 1 },
    {
      lines: [...facts, ...ofLog('found').filter(({ isFinal }) => !isFinal), ...ofLog('shown')],
      // A model's text tells what was done; of what tools returned, it tells least.
      share: isToldByModel ? 12 : 4,
    },
    {
      lines: [...done.filter((line) => !ownLines.has(line)), ...ofLog('done')],
      share: isToldByModel ? 1 : 4,
    },
    { lines: files.slice(wholeEdited), share: 1 },
  ];
  const binding = [
    ...(first ? [first] : []),
    ...open,
    ...stillOpen,
    ...last,
    ...questions,
    ...others.filter(({ worth }) => worth >= 2).toReversed(),
    ...others.filter(({ worth }) => worth > 1 && worth < 2).toReversed(),
    ...closings.slice(0, wholeClosings).map((line) => ({ ...line, isNeeded: true })),
    ...ownLines,
    ...edited.slice(0, wholeEdited),
    ...prose.slice(0, whole),
  ];
  return {
    lines: [...binding, ...inTurns(turns), ...more, ...late],
    cuts: cuts.map((cut) => cut.steps + linesAhead(cut.summaries) - 0.5),
  };
}

/** Returns the lines of questions whose short answers stay in the conversation. Each stands at the end of the reply ahead of its answer, unless that ends with it. */
function questionsAhead(
  cuts: readonly Pick<SummaryCut, 'steps' | 'question'>[],
  closings: readonly OutlineLine[],
): readonly OutlineLine[] {
  return cuts.flatMap(({ steps, question }): readonly OutlineLine[] => {
    const at = steps - 1;
    const text = question.replaceAll(' / ', ' ');
    const isTold = closings.some((line) => Math.floor(line.at) === at && line.text.endsWith(text));
    return question === '' || isTold
      ? []
      : [{ section: 'found', text, at: at + behindReply, isFinal: true, isBinding: true }];
  });
}

/** The place behind all sentences of a step, ahead of a cut. */
const behindReply = 0.49;

/** Returns a function that says whether a sentence stands in what is told of the same reply, or is a question that stands with its answer. */
function toldTexts(
  closings: readonly OutlineLine[],
  asked: readonly AskedLine[],
): (line: OutlineLine) => boolean {
  const byStep = groupBy(closings, ({ at }) => Math.floor(at));
  const questions = new Set(
    asked.flatMap(({ text }) => text.slice(text.indexOf(askedMark) + askedMark.length + 1, -2).split(' / ')),
  );
  return ({ text, at }) =>
    questions.has(text.replaceAll('"', "'")) ||
    byStep.get(Math.floor(at))?.some((closing) => closing.text.includes(text.slice(0, maxBeginning))) ===
      true;
}

/** Maximum demands of the user after which the state in a client's summary may still hold. */
const maxDemands = 1;

/** UTF-16 units of what came of each demand, newest first, that come before what else was done and found. */
const maxClosings = 1_600;

/** UTF-16 units of commits, pushes and other changes outside, newest first, that come before what else was done and found. */
const maxOutside = 800;

/** UTF-16 units of the files that were edited, newest first, that come before what was found and done. */
const maxEdited = 800;

type RequestLine = OutlineLine & { readonly worth: number };

/** Returns the user's words in order: those of earlier summaries, and those in the steps that are not among them. */
function askedLines(
  earlier: readonly OutlineLine[],
  asked: readonly (AskedLine & Pick<OutlineLine, 'original'>)[],
): readonly RequestLine[] {
  const earlierTexts = new Set(earlier.map(({ text }) => text));
  const before = earlier.map((line) => ({ ...line, worth: 2, hasMore: false }));
  return [...before, ...asked.filter(({ text }) => !earlierTexts.has(text))]
    .map((line): RequestLine => ({ ...line, section: 'asked', isBinding: true }))
    .toSorted((a, b) => a.at - b.at);
}

type PlacedLine = Pick<OutlineLine, 'at' | 'end' | 'split' | 'original' | 'lastOriginal'>;

/** UTF-16 units by which a text is found again. */
const maxBeginning = 60;

function spell(taken: readonly OutlineLine[], done: readonly OutlineLine[], how: LogWay): readonly string[] {
  const items: Partial<Record<Section, readonly string[]>> = {};
  for (const [section, lines] of groupBy(taken, (line) => line.section)) {
    if (logged.has(section)) continue;
    const groups = groupBy(lines, ({ group }) => group);
    const valued = [...groups].flatMap(([group, of]) => {
      if (group === undefined) return [];
      const texts = of.map(({ text }) => text);
      return [spellFiles(group, texts)];
    });
    const inOrder = (groups.get(undefined) ?? []).toSorted((a, b) => a.at - b.at);
    items[section] = [...inOrder.map(({ text }) => text), ...valued];
  }
  const { prose, files, open } = items;
  const parts = logItems(taken, done, how);
  return parts.map((log, part) =>
    spellSections({
      ...(part === 0 ? { prose, log } : { more: log }),
      ...(part === parts.length - 1 && { files, open }),
    }),
  );
}
