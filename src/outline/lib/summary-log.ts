/**
 * Writes the log of a summary: the lines that were taken, in order, and the calls between them in short. Sentences of a result stand at its call.
 * Linear, but for sorting. Pure.
 */
import { dividedLines, inLogOrder, type OutlineLine, withLead, withWhole } from '../rank.ts';
import { joinedApart, joinedSentences } from '../sentences.ts';
import { joinedQuotes, type LogItem, type Section, spellLogItem } from '../summary-text.ts';
import { maxName, type Run, runsIn, spellRuns } from './calls-in-short.ts';

export const logged: ReadonlySet<Section> = new Set(['asked', 'done', 'found', 'shown']);

/** Join lines of one message that follow each other. */
const joins: { readonly [section in Section]?: (before: string, line: string, isGap: boolean) => string } = {
  asked: (before, line, isGap) => `${before} / ${isGap ? '… / ' : ''}${line}`,
  found: (before, line, isGap) => (isGap ? joinedApart : joinedSentences)(before, line),
  shown: joinedQuotes,
};

/** The distance of sentences between which another one is left out. */
const gap = 0.0015;

/** How calls in short are told: UTF-16 units of those with all names, with names of edited files, and with the number of calls of each tool; or not at all. */
export type InShort = {
  readonly hasCalls: boolean;
  readonly named: number;
  readonly edits: number;
  readonly counted: number;
  /** False if `…` at the end of a message of the user that goes on is left out, too. */
  readonly marksCuts: boolean;
};

/** How a log is written. `isDivided`: no line joins calls on both sides of what is told. `cuts`: the places between lines where its parts end, in order. */
export type LogWay = {
  readonly way: InShort;
  readonly isDivided: boolean;
  readonly cuts: readonly number[];
};

/** An item of the log before it is written: a line that was taken, or calls in short. */
type Item = { readonly line: OutlineLine; readonly text: string | readonly Run[] };

/** Returns the items of the log, in order, for each part, with the calls between them that are not taken in short. */
export function logItems(
  taken: readonly OutlineLine[],
  done: readonly OutlineLine[],
  { way, isDivided, cuts }: LogWay,
): readonly (readonly string[])[] {
  const { named, edits, counted, marksCuts } = way;
  const items: Item[] = [];
  let last: OutlineLine | undefined;
  let text = '';
  let [until, isCut] = [0, false];
  let inShort: readonly Run[] = [];
  let begin: OutlineLine | undefined;
  const flush = (): void => {
    if (begin) items.push({ line: begin, text: inShort });
    [inShort, begin] = [[], undefined];
  };
  const end = (): void => {
    const call = items.at(-1);
    if (last?.section === 'shown' && call && isCallOf(call.line, last))
      items[items.length - 1] = { line: call.line, text: withResult(call.text as string, text) };
    else if (last) {
      const isMarked = isCut && marksCuts;
      items.push({ line: last, text: isMarked ? `${text}${last.section === 'asked' ? ' /' : ''} …` : text });
    }
    last = undefined;
  };
  const { told, others } = dividedLines(
    taken.filter(({ section }) => logged.has(section)),
    done,
    isDivided,
  );
  const isTold = new Set(told);
  const isQuoted = new Set(told.flatMap(({ section, at }) => (section === 'shown' ? [Math.floor(at)] : [])));
  let part = 0;
  const partOf = ({ at }: OutlineLine): number => cuts.filter((cut) => cut < at).length;
  for (const line of inLogOrder([...told, ...others])) {
    if (partOf(line) > part) {
      end();
      flush();
      part = partOf(line);
    }
    const join = joins[line.section];
    const isNext = last?.section === line.section && Math.floor(last.at) === Math.floor(line.at);
    if (join && isNext) {
      text =
        (line.section === 'found' && withWhole(text, line)) ||
        join(text, withLead(line, text), line.at - until > gap);
      [until, isCut] = [line.end ?? line.at, line.hasMore === true && text.endsWith(line.text)];
      continue;
    }
    end();
    if (isTold.has(line)) {
      flush();
      [last, text] = [line, withLead(line, '')];
      [until, isCut] = [line.end ?? line.at, line.hasMore === true];
    } else if (isQuoted.has(line.at)) {
      flush();
      [last, text] = [line, callInShort(line.text)];
      isCut = false;
    } else {
      const runs = runsIn(line.text);
      const { lastOriginal = line.original } = line;
      if (runs.length > 0) begin = begin ? { ...begin, lastOriginal } : line;
      inShort = [...inShort, ...runs];
    }
  }
  end();
  flush();
  let units = 0;
  const spelled = items.toReversed().map(({ line, text: words }): LogItem => {
    if (typeof words === 'string') return { ...line, text: words } as LogItem;
    const detail = units < named ? 'names' : units < edits ? 'edits' : units < counted ? 'counts' : 'changes';
    const runs = spellRuns(words, detail);
    units += runs.length;
    return { section: 'done', text: runs };
  });
  const parts: string[][] = [[], ...cuts.map(() => [])];
  let before: number | undefined;
  for (const [index, item] of spelled.toReversed().entries()) {
    const { line } = items[index]!;
    const of = parts[partOf(line)]!;
    // Each part numbers its originals.
    if (of.length === 0) before = undefined;
    const { original, lastOriginal = original } = line;
    const isRange = original !== undefined && lastOriginal! > original;
    const isNew = original !== undefined && (isRange || original !== before);
    // Behind a range, a number alone says which.
    before = isRange ? undefined : (original ?? before);
    const numbers = {
      original: isNew ? original : undefined,
      lastOriginal: isRange ? lastOriginal : undefined,
    };
    of.push(spellLogItem({ ...item, ...numbers }));
  }
  return parts;
}

/** True for the line of the call alone that a line quotes the result of. */
function isCallOf({ section, at, end = at }: OutlineLine, { at: place }: OutlineLine): boolean {
  return section === 'done' && at === end && at === Math.floor(place);
}

/** Names a call whose result is told. */
function callInShort(line: string): string {
  const call = line.replace(quoteAtEnd, '');
  if (call.length <= maxName) return call;
  const [run] = runsIn(line);
  const [name] = run?.names.keys() ?? [];
  return name === undefined ? (run?.tool ?? call) : `${run!.tool} ${name}`;
}

/** Matches the outcome of a call that is a quote. */
const quoteAtEnd = /: "([^"]*)"$/;

/** Tells a call with the sentences of its result, behind those that its line quotes whole. */
function withResult(call: string, result: string): string {
  const said = result.slice(result.indexOf(': "') + 3);
  const outcome = quoteAtEnd.exec(call);
  if (outcome === null) return `${call} → "${said}`;
  const whole = outcome[1]!.replace(/(?:^|(?<=[.!?。！？]) )[^.!?。！？]* …$/, '');
  const begin = call.slice(0, outcome.index);
  return whole === '' || said.startsWith(whole) ? `${begin}: "${said}` : `${begin}: "${whole}"; "${said}`;
}
