/**
 * Writes the sections of an extractive summary, and reads a summary back, so that the next one includes it and nothing is summarized twice. One list in order
 * of time has all that was said and done. A line that is not a title is an item and begins with `- `, so quoted text cannot be mistaken
 * for a title. Lines outside of sections were written by another summarizer and are kept as prose. Pure.
 */
import { countOf, oneLine, wholeWords, wordsOf } from './outcome.ts';
import { plain } from './sentences.ts';
import { isEditing } from './step-line.ts';

export const titles = {
  prose: 'Earlier summary:',
  log: 'In order (what USER demanded holds unless taken back later; YOU is the model):',
  files: 'Files touched:',
  open: 'Open then:',
} as const;

/** Sections of the log: what the user asked, calls, what the model said, and what results and longer texts said. */
const loggedSections = ['asked', 'done', 'found', 'shown'] as const;
type LoggedSection = (typeof loggedSections)[number];

export type Section = LoggedSection | Exclude<keyof typeof titles, 'log'> | 'named';

/** Items of a summary by section. */
export type SummaryItems = Readonly<Record<Section, readonly string[]>>;

/** An item of the log. */
export type LogItem = {
  readonly section: LoggedSection;
  readonly text: string;
  /** True for a message of the user that still stands above the summary. */
  readonly isAbove?: boolean;
};

type TitledSection = keyof typeof titles;

const sectionOf = new Map<string, TitledSection | LoggedSection | 'named'>([
  ...(Object.keys(titles) as readonly TitledSection[]).map((name) => [titles[name], name] as const),
  // Versions before this one wrote a section for each.
  ['The user asked, in order (all of it holds unless taken back later):', 'asked'],
  ['Done, in order:', 'done'],
  ['Done, in order (not all of it):', 'done'],
  ['Found:', 'found'],
  ['Tools and longer texts said:', 'shown'],
  // They also listed values of calls, which nobody can read.
  ['Calls named:', 'named'],
]);

/** Writes sections that have items. */
export function spellSections(
  items: { readonly [name in TitledSection]?: readonly string[] | undefined },
): string {
  return (Object.keys(titles) as readonly TitledSection[])
    .flatMap((section) => {
      const lines = items[section] ?? [];
      return lines.length === 0 ? [] : [titles[section], ...lines.map((line) => `- ${line}`)];
    })
    .join('\n');
}

const above = ' (message above)';

/** Writes an item of the log: it begins with who said it, or with a tool. */
export function spellLogItem({ section, text, isAbove = false }: LogItem): string {
  switch (section) {
    case 'asked':
      return `USER${isAbove ? above : ''}${/^(?:REFUSED|INTERRUPTED) /.test(text) ? ' ' : ': '}${text}`;
    case 'found':
      return `YOU: ${text}`;
    case 'shown':
      return `RESULT of ${text}`;
    case 'done':
      return text;
  }
}

function readLogItem(item: string): LogItem {
  const [begin = '', who, isAbove, of] =
    /^(?:(USER)( \(message above\))?(?:: | (?=REFUSED |INTERRUPTED ))|(YOU: |RESULT of ))/.exec(item) ?? [];
  const section = who ? 'asked' : of === undefined ? 'done' : of === 'YOU: ' ? 'found' : 'shown';
  return { section, text: item.slice(begin.length), ...(isAbove && { isAbove: true }) };
}

/** Begins a line of an earlier summary that tells how things stood when the client wrote it. */
export const stateMark = '(state at that time) ';

/** The item of a log for an interruption by the user, which is no call. */
export const interruption = 'The user interrupted.';

/** Reads a summary: its items by section, and those of the log in order. */
export function readSections(body: string): SummaryItems & { readonly log: readonly LogItem[] } {
  const items: Record<Section, string[]> = {
    asked: [],
    prose: [],
    done: [],
    found: [],
    shown: [],
    files: [],
    named: [],
    open: [],
  };
  const log: LogItem[] = [];
  let section: TitledSection | LoggedSection | 'named' | undefined;
  for (const line of body.split('\n')) {
    const title = sectionOf.get(line);
    if (title !== undefined) section = title;
    else if (section !== undefined && line.startsWith('- ')) {
      const item = section === 'log' ? readLogItem(line.slice(2)) : { section, text: line.slice(2) };
      items[item.section].push(item.text);
      if (isLogged(item)) log.push(item);
    } else if (plain(line) !== '') {
      section = undefined;
      items.prose.push(wholeWords(plain(line), 600));
    }
  }
  return { ...items, log };
}

function isLogged(item: { readonly section: Section; readonly text: string }): item is LogItem {
  return (loggedSections as readonly string[]).includes(item.section);
}

/** Turns the text of another summarizer into a summary body: all of its lines are prose, whatever titles it contains. */
export function asProse(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => wholeWords(plain(line).replace(/^[-*•]\s+/, ''), 600))
    .filter((line) => line !== '');
  return spellSections({ prose: lines });
}

/** Returns the lines of a summary that another summarizer wrote, for example a model. */
export function proseOf(body: string): readonly string[] {
  return readSections(body).prose;
}

// Items with a name before a colon

/** Writes an item that somebody else's text is quoted in. */
export function spellQuote(name: string, text: string): string {
  return `${name}: ${JSON.stringify(oneLine(text))}`;
}

/** Joins items in which texts of the same name are quoted; others stand side by side. */
export function joinedQuotes(before: string, item: string, isGap: boolean): string {
  const at = item.indexOf(': "') + 3;
  const isSame = at > 2 && before.startsWith(item.slice(0, at)) && before.endsWith('"');
  return isSame ? `${before.slice(0, -1)} ${isGap ? '… ' : ''}${item.slice(at)}` : `${before}; ${item}`;
}

/** UTF-16 units of the shortest folder that is named once for its files. */
const minFolder = 12;

/** Writes an item of files, with the folder of all of them once: `edited in /app/src/: a.ts ×2, lib/b.ts`. */
export function spellFiles(group: string, files: readonly string[]): string {
  const [first = '', ...others] = files;
  let folder = first.slice(0, first.lastIndexOf('/') + 1);
  while (folder !== '' && !others.every((file) => file.startsWith(folder)))
    folder = folder.slice(0, folder.slice(0, -1).lastIndexOf('/') + 1);
  if (others.length === 0 || folder.length < minFolder || folder.includes(': '))
    return `${group}: ${files.join(', ')}`;
  return `${group} in ${folder}: ${files.map((file) => file.slice(folder.length)).join(', ')}`;
}

/** Reads an item of files: paths with how often something was done to them. */
export function readFiles(item: string): { readonly group: string; readonly files: readonly string[] } {
  const at = Math.max(0, item.indexOf(': '));
  const [, group = '', folder = ''] = /^(.*?)(?: in (\S.*\/))?$/s.exec(item.slice(0, at)) ?? [];
  return {
    group,
    files: item
      .slice(at + 2)
      .split(', ')
      .map((file) => folder + file),
  };
}

// Calls in short, where a summary has no room for their lines: `Edit ×6: a.ts ×5, b.ts · Bash ×3: Run tests (last: ok)`. They are read from the lines of a
// log, also from those that were told in short before, so that a later summary can join them.

/** Calls of one tool: how often each file, command or title was used, and what came of the last one, if a few words tell that. */
export type Run = {
  readonly tool: string;
  readonly count: number;
  /** How many of them failed. */
  readonly failed: number;
  readonly names: ReadonlyMap<string, NamedCalls>;
};

type NamedCalls = { readonly count: number; readonly failed: number; readonly outcome: string };

/** UTF-16 units of the longest name and outcome. */
const maxName = 60;
const maxOutcome = 40;
/** Maximum files of one tool that are named, and maximum other names. */
const maxFiles = 6;
const maxNames = 3;
/** UTF-16 units of the longest line that is read. */
const maxLine = 10_000;

/** Reads the calls in a line of a log. */
export function runsIn(line: string): readonly Run[] {
  const [, told = 'in short', inShort] = /^\(\d+ calls? (left out|in short): (.*)\)$/.exec(line) ?? [];
  const text = (inShort ?? line).slice(0, maxLine);
  const parts = split(text, told === 'left out' ? ', ' : ' · ');
  return parts.flatMap((part) => runIn(part) ?? []);
}

/** Joins the calls of several lines, in order. */
function joinedRuns(runs: readonly Run[]): readonly Run[] {
  const byTool = new Map<string, Run>();
  for (const run of runs) {
    const { count = 0, failed = 0, names = [] } = byTool.get(run.tool) ?? {};
    const all = new Map(names);
    for (const [name, calls] of run.names) all.set(name, joinedCalls(all.get(name), calls));
    byTool.set(run.tool, {
      tool: run.tool,
      count: count + run.count,
      failed: failed + run.failed,
      names: all,
    });
  }
  return [...byTool.values()];
}

function joinedCalls(before: NamedCalls | undefined, { count, failed, outcome }: NamedCalls): NamedCalls {
  return { count: (before?.count ?? 0) + count, failed: (before?.failed ?? 0) + failed, outcome };
}

/** So many calls are said to be told in short. */
const minCounted = 4;

/** How much is told of calls in short: all names, those of files that were edited, or only how many calls there were. */
export type Detail = 'names' | 'edits' | 'counts';

/** Writes calls in short: `(9 calls in short: Edit ×6: a.ts ×5, b.ts · Read ×3)`. */
export function spellRuns(runs: readonly Run[], detail: Detail = 'names'): string {
  const joined = joinedRuns(runs);
  const all = joined.reduce((sum, { count }) => sum + count, 0);
  const text = joined.map((run) => spellRun(run, detail)).join(' · ');
  // The name of a tool alone would read like a line that is cut off.
  return all < minCounted && / (?!·)/.test(text.replaceAll(' · ', ''))
    ? text
    : `(${countOf(all, 'call')} in short: ${text})`;
}

function spellRun({ tool, count, failed, names: all }: Run, detail: Detail): string {
  const isTold = detail === 'names' || (detail === 'edits' && isEditing(wordsOf(tool)));
  const names = isTold ? all : new Map<string, NamedCalls>();
  const isFiles = [...names.keys()].some(isFile);
  const most = [...names]
    .toSorted(([, a], [, b]) => b.count - a.count)
    .slice(0, isFiles ? maxFiles : maxNames);
  const chosen = new Set(most.map(([name]) => name));
  let failedTold = 0;
  const told = [...names].flatMap(([name, calls]) => {
    if (!chosen.has(name)) return [];
    failedTold += calls.failed;
    return [`${name}${calls.count > 1 ? ` ×${calls.count}` : ''}${cameOf(calls)}`];
  });
  const counted = [...names.values()].reduce((sum, one) => sum + one.count, 0);
  const more = names.size > told.length || (isFiles && counted < count) ? ', …' : '';
  const times = count > 1 ? ` ×${count}` : '';
  // The failures of calls that have no name here.
  const others =
    failed > failedTold ? ` (${failed - failedTold} ${told.length > 0 ? 'more ' : ''}failed)` : '';
  if (told.length === 0) return `${tool}${times}${others}`;
  // One thing that was used each time needs its number once.
  const [only] = names.size === 1 && [...names.values()][0]!.count === count ? names : [];
  const subject = only ? told[0]!.replace(` ×${count}`, '') : `${told.join(', ')}${more}`;
  return `${tool}${times}${others}${count > 1 || others !== '' || !isFiles ? ':' : ''} ${subject}`;
}

/** Says what came of calls with one name: how many failed, unless the outcome of the last one says it, and that outcome. */
function cameOf({ failed, outcome }: NamedCalls): string {
  const isSaid = failed === 0 || (failed === 1 && hasFailed(outcome));
  const said = [isSaid ? '' : `${failed} failed`, outcome === '' ? '' : `last: ${outcome}`];
  const words = said.filter((one) => one !== '').join(', ');
  return words === '' ? '' : ` (${words})`;
}

/** Matches what `cameOf` writes. */
const came = / \((?:(\d{1,9}) failed)?(?:, )?(?:last: ([^()]*))?\)$/;

/** True for an outcome that tells of a failure. */
function hasFailed(outcome: string): boolean {
  return /^(?:all )?(?:failed\b|interrupted by|[1-9]\d* (?:failed|failing|failures?|errors?|issues?|problems?)\b)/.test(
    outcome,
  );
}

/** Reads the calls of one tool; undefined for a text that does not begin with the name of a tool. */
function runIn(part: string): Run | undefined {
  const [begin, tool, times, other = '0'] =
    /^([\w.$/-]+(?::[\w.$/-]+)*)(?: ×(\d{1,9})(?=:|$| \(\d+ (?:more )?failed\)))?(?: \((\d{1,9}) (?:more )?failed\)(?=:|$))?(?=:| |$)/.exec(
      part,
    ) ?? [];
  if (begin === undefined || tool === undefined) return undefined;
  const rest = part.slice(begin.length).replace(/^:? /, '');
  const count = Number(times ?? 1);
  const pieces = split(rest, ': ');
  const outcome = pieces.length > 1 ? pieces.at(-1)! : '';
  const subject = pieces.length > 1 ? rest.slice(0, -outcome.length - 2) : rest;
  const names = new Map<string, NamedCalls>();
  let named = 0;
  let failed = Number(other);
  // The plan itself says how far it has come.
  if (/^\d+ of \d+ done\b/.test(subject)) return undefined;
  // A pattern that was searched says little.
  const isUnnamed = /^(?:grep|glob|find|ls|list|search)/i.test(tool);
  const isEdit = isEditing(wordsOf(tool));
  // Only a line of several calls has several subjects.
  const isSeveral = times !== undefined || isEdit || isFile(subject.split(/[ ,]/, 1)[0] ?? '');
  const subjects = isUnnamed ? [] : isSeveral ? split(subject, ', ') : [subject];
  // A call without a number is one, however many items it names; a file may have a number or ranges of lines.
  const isOneCall = times === undefined && subjects.length > 1 && !isFile(subjects[0]!.split(' ', 1)[0]!);
  for (const one of subjects) {
    if (/^\d+-\d*$/.test(one)) named++;
    const name = nameIn(isEdit ? one.replace(/(?<=^\S+) \([^()]*\)(?= ×|$)/, '') : one);
    const [end, ofThese, lastOf] = came.exec(one) ?? [];
    const number = Number(/ ×(\d{1,9})$/.exec(end === undefined ? one : one.slice(0, -end.length))?.[1] ?? 1);
    const isFailure = hasFailed(lastOf ?? outcome);
    const failedOf = Number(ofThese ?? (isFailure ? (outcome.startsWith('all ') ? number : 1) : 0));
    failed += failedOf;
    if (name === '') continue;
    named += number;
    const calls = { count: number, failed: failedOf, outcome: lastOf ?? outcomeOf(outcome, name) };
    names.set(name, joinedCalls(names.get(name), calls));
  }
  if (subjects.length === 0 && hasFailed(outcome)) failed++;
  // `Edit a.ts ×3: ok` has its number behind the file.
  return { tool, count: times !== undefined ? count : isOneCall ? 1 : Math.max(1, named), failed, names };
}

/** Returns what a few words say of the outcome; that a file was read or edited goes without saying. */
function outcomeOf(outcome: string, name: string): string {
  if (/^\d+ lines?$/.test(outcome)) return '';
  if (outcome.length > maxOutcome || /[()]/.test(outcome)) return hasFailed(outcome) ? 'failed' : '';
  return isFile(name) && !hasFailed(outcome) ? '' : outcome;
}

/** Returns what a call was about: the title of a command, a file without its lines, or a few words. A pattern that was searched says little. */
function nameIn(subject: string): string {
  const text = subject.replace(came, '').replace(/ ×\d{1,9}$/, '');
  const title = / ?\(([^()]{3,80})\)$/.exec(text)?.[1];
  if (title !== undefined && !/^\d+ lines?$/.test(title)) return wholeWords(title, maxName);
  const [first = '', ...others] = text.replace(/ \(\d+ lines?\)$/, '').split(' ');
  if (isFile(first) && others.every((word) => /^\d*-?\d*,?$/.test(word))) return first;
  const quoted = /^"([^"]+)"$/.exec(text)?.[1];
  if (quoted !== undefined) return wholeWords(quoted.replaceAll(/[()]/g, ''), maxName);
  return /^["\d]/.test(text) || !/\s/.test(text) || /[()×:{}|]/.test(text) ? '' : wholeWords(text, maxName);
}

function isFile(name: string): boolean {
  return /^[\w.@~+…-]*[./][\w./@~+-]*$/.test(name) && /[a-z]/i.test(name);
}

/** Divides a text at separators that stand outside of quotes and brackets. */
function split(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let [from, depth, quote] = [0, 0, ''];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]!;
    if (quote !== '' || sign === '"' || sign === '`')
      quote = quote === '' ? sign : quote === sign ? '' : quote;
    else if (sign === '(') depth++;
    else if (sign === ')') depth = Math.max(0, depth - 1);
    else if (depth === 0 && text.startsWith(separator, at)) {
      parts.push(text.slice(from, at));
      from = at + separator.length;
    }
  }
  return [...parts, text.slice(from)].filter((part) => part !== '');
}

/** Identifies a folder among the sections that were begun. */
export function groupKey(group: string): string {
  return `= ${group}`;
}

/** Returns the tokens that a line adds to a summary. `begun`: the sections and folders that have lines already. */
export function costOf(
  { section, text, group }: { readonly section: Section; readonly text: string; readonly group?: string },
  begun: ReadonlySet<string>,
  count: (text: string) => number,
): number {
  const item = { section, text };
  const titled = isLogged(item) ? 'log' : (section as keyof typeof titles);
  const title = begun.has(titled) ? 0 : count(`${titles[titled]}\n`);
  if (group === undefined) return title + count(`- ${isLogged(item) ? spellLogItem(item) : text}\n`);
  // Files are told by their paths in a folder.
  return (
    title +
    count(`${text.split('/').slice(-2).join('/')}, `) +
    (begun.has(groupKey(group)) ? 0 : count(`- ${group}: \n`))
  );
}
