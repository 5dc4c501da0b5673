/**
 * Tells calls in short, where a summary has no room for their lines: `Edit ×6: a.ts ×5, b.ts · Bash ×3: Run tests (last: ok)`. They are read from the lines of
 * a log, also from those that were told in short before, so that a later summary can join them. Edits behind a failed check are told behind it. Pure;
 * linear in its input.
 */
import { countOf, wholeWords, wordsOf } from '../outcome.ts';
import { isEditing, type StepWords } from '../step-line.ts';
import { hasEffect } from './effects.ts';

/** Calls of one tool: how often each file, command or title was used, and what came of the last one, if a few words tell that. */
export type Run = {
  readonly tool: string;
  readonly count: number;
  /** How many of them failed, and how many of these a later call repaired. */
  readonly failed: number;
  readonly mended?: number;
  readonly names: ReadonlyMap<string, NamedCalls>;
};

type NamedCalls = { readonly count: number; readonly failed: number; readonly outcome: string };

/** UTF-16 units of the longest name and outcome. */
export const maxName = 60;
const maxOutcome = 40;
/** Maximum files of one tool that are named, and maximum other names. */
const maxFiles = 6;
const maxNames = 3;
/** UTF-16 units of the longest line that is read. */
const maxLine = 10_000;

/** Reads the calls in a line of a log. */
export function runsIn(line: string): readonly Run[] {
  const [, inShort] = /^\(\d+ calls?(?: left out| in short)?: (.*)\)$/.exec(line) ?? [];
  const parts = split((inShort ?? line).slice(0, maxLine), ' · ');
  return parts.flatMap((part) => runIn(part.replace(/^then /, '')) ?? []);
}

/** Stands between calls of which the first ones failed and the others are an answer to that. */
const then = ' · then ';

/** Maximum parts in which calls are told; the oldest ones are one part. */
const maxParts = 4;

/** Divides calls where something was edited after a check had failed: what failed, what was changed and what worked then must not be joined. */
function partsOf(runs: readonly Run[]): readonly (readonly Run[])[] {
  const parts: Run[][] = [];
  const failing = new Set<string>();
  for (const run of runs) {
    const isEdit = isEditing(wordsOf(run.tool));
    if (parts.length === 0 || (isEdit && failing.size > 0)) {
      parts.push([]);
      failing.clear();
    }
    parts.at(-1)!.push(run);
    // A failed edit is made again, and a search that found nothing is no failed check.
    if (isEdit || isLooking(run.tool)) continue;
    for (const [name, broken] of checksIn(run))
      if (broken) failing.add(name);
      else failing.delete(name);
  }
  const oldest = parts.length - maxParts;
  return oldest <= 0 ? parts : [parts.slice(0, oldest + 1).flat(), ...parts.slice(oldest + 1)];
}

/** Returns for each thing that calls did whether it failed the last time. */
function checksIn({ tool, count, failed, names }: Run): readonly (readonly [string, boolean])[] {
  if (names.size === 0) return [[tool, failed === count]];
  return Array.from(names, ([name, { outcome }]) => [name, hasFailed(outcome)]);
}

/** True for the name of a tool that reads or searches: that it found nothing is no failed check. */
function isLooking(tool: string): boolean {
  return /^(?:read|view|open|cat|grep|glob|find|ls|list|search)/i.test(tool);
}

/** Joins the calls of several lines, in order. */
function joinedRuns(runs: readonly Run[]): readonly Run[] {
  const byTool = new Map<string, Run>();
  for (const run of runs) {
    const { count = 0, failed = 0, mended = 0, names = [] } = byTool.get(run.tool) ?? {};
    const all = new Map(names);
    for (const [name, calls] of run.names) all.set(name, joinedCalls(all.get(name), calls));
    byTool.set(run.tool, {
      tool: run.tool,
      count: count + run.count,
      failed: failed + run.failed,
      mended: mended + (run.mended ?? 0),
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

/** How much is told of calls in short: all names, those of files that were edited, how many calls of each tool there were, or of those that edit. */
export type Detail = 'names' | 'edits' | 'counts' | 'changes';

/** Writes calls in short: `(9 calls: Edit ×6: a.ts ×5, b.ts · Read ×3)`. */
export function spellRuns(runs: readonly Run[], detail: Detail = 'names'): string {
  const all = runs.reduce((sum, { count }) => sum + count, 0);
  if (detail === 'changes') {
    const edits = joinedRuns(runs.filter(({ tool }) => isEditing(wordsOf(tool))));
    const told = [
      ...edits.map((run) => spellRun(run, 'counts')),
      ...(edits.length < runs.length ? ['…'] : []),
    ];
    return `(${countOf(all, 'call')}: ${told.join(' · ')})`;
  }
  const parts = partsOf(runs).map(joinedRuns);
  const text = parts.map((part) => part.map((run) => spellRun(run, detail)).join(' · ')).join(then);
  // The name of a tool alone would read like a line that is cut off.
  return all < minCounted && / (?!·)/.test(text.replaceAll(' · ', ''))
    ? text
    : `(${countOf(all, 'call')}: ${text})`;
}

/** Reads a call that a log leaves out. Its edits, its other changes, and failures are told. */
export function runOf(step: StepWords, { shortName, repaired }: LeftOutNames): Run {
  const isEdit = step.kind === 'edit';
  const isMended = step.hasFailed && repaired.has(step);
  const failed = step.hasFailed && !isMended ? 1 : 0;
  const commands = step.kind === 'command' ? step.about.split(/&& |; |\| /) : [];
  const command =
    commands.find((about) => hasEffect({ ...step, about })) ?? (step.hasFailed ? commands[0] : undefined);
  const file = isEdit && !step.hasFailed ? shortName(step.path) : '';
  const note = step.kind === 'other' ? /^"[^"]{3,60}"/.exec(step.about)?.[0] : undefined;
  const name = file || (note ?? commandName.exec(command ?? '')?.[0].trim() ?? '');
  const names = name === '' ? [] : [[name, { count: 1, failed, outcome: '' }] as const];
  return { tool: step.tool, count: 1, failed, mended: isMended ? 1 : 0, names: new Map(names) };
}

/** `shortName` spells the file of an edit. `repaired`: failed steps that a later one repaired. */
type LeftOutNames = {
  readonly shortName: (path: string) => string;
  readonly repaired: ReadonlyMap<StepWords, StepWords>;
};

/** Matches the words that name a command: `git push origin`, `npm test`. */
const commandName = /(?<=^(?:\w+=\S* )*)[\w./-]+(?: [\w:-]+){0,2}(?= |$)/;

/** True for calls whose place tells something: edits, other changes and failures. */
export function isTelling({ names, failed, mended = 0 }: Run): boolean {
  return names.size > 0 || failed + mended > 0;
}

/** Writes calls that a log leaves out: `(8 calls left out: Edit ×3: a.ts ×2, b.ts · Bash: git push · Read ×4)`. */
export function spellLeftOut(runs: readonly Run[]): string {
  const told = joinedRuns(runs).toSorted(
    (a, b) => Math.sign(b.names.size) - Math.sign(a.names.size) || b.count - a.count,
  );
  return `(${countOf(runs.length, 'call')} left out: ${told.map((run) => spellRun(run, 'names')).join(' · ')})`;
}

function spellRun({ tool, count, failed, mended = 0, names: all }: Run, detail: Detail): string {
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
    // Without a number, it would be said of all calls.
    const isSome = calls.count > 1 || (name === missing && calls.count < count);
    return [`${name}${isSome ? ` ×${calls.count}` : ''}${cameOf(calls)}`];
  });
  const counted = [...names.values()].reduce((sum, one) => sum + one.count, 0);
  const more = names.size > told.length || (isFiles && counted < count) ? ', …' : '';
  const times = count > 1 ? ` ×${count}` : '';
  // The failures of calls that have no name here.
  const rest = failed > failedTold ? `${failed - failedTold} ${failedTold > 0 ? 'more ' : ''}failed` : '';
  const first = mended > 0 ? `${rest === '' ? `${mended} failed` : `, ${mended}`} at first` : '';
  const others = rest + first === '' ? '' : ` (${rest}${first})`;
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
  const [begin, tool, times, other = '0', isFirst, others = '0'] =
    /^([\w.$/-]+(?::[\w.$/-]+)*)(?: ×(\d{1,9})(?=:|$| \(\d+ (?:more )?failed\b))?(?: \((\d{1,9}) (?:more )?failed(?:( at first)|, (\d{1,9}) at first)?\)(?=:|$))?(?=:| |$)/.exec(
      part,
    ) ?? [];
  const mended = Number(isFirst === undefined ? others : other);
  if (begin === undefined || tool === undefined) return undefined;
  const rest = part.slice(begin.length).replace(/^:? /, '');
  const count = Number(times ?? 1);
  const pieces = split(rest, ': ');
  const outcome = pieces.length > 1 ? pieces.at(-1)! : '';
  const subject = pieces.length > 1 ? rest.slice(0, -outcome.length - 2) : rest;
  const names = new Map<string, NamedCalls>();
  let named = 0;
  let failed = isFirst === undefined ? Number(other) : 0;
  // The plan itself says how far it has come.
  if (/^\d+ of \d+ done\b/.test(subject)) return undefined;
  // A pattern that was searched says little, but that nothing was found does.
  const isSearch = /^(?:grep|glob|find|ls|list|search)/i.test(tool);
  const isEdit = isEditing(wordsOf(tool));
  // Only a line of several calls has several subjects.
  const isSeveral = times !== undefined || isEdit || isFile(subject.split(/[ ,]/, 1)[0] ?? '');
  const all = isSeveral ? split(subject, ', ') : [subject];
  const subjects = isSearch
    ? all.flatMap((one) =>
        `${one} ${outcome}`.includes(missing) ? [missing + (/ ×\d+$/.exec(one)?.[0] ?? '')] : [],
      )
    : all;
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
    const ended = isSearch ? '' : (lastOf ?? outcomeOf(outcome, name));
    const calls = { count: number, failed: failedOf, outcome: ended };
    names.set(name, joinedCalls(names.get(name), calls));
  }
  if (subjects.length === 0 && hasFailed(outcome)) failed++;
  // `Edit a.ts ×3: ok` has its number behind the file.
  const calls = times !== undefined ? count : isOneCall ? 1 : Math.max(1, named);
  return { tool, count: calls, failed, mended, names };
}

/** The outcome of a search without one. */
const missing = 'nothing found';

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
  if (isFile(first) && others.every((word) => /^\d*(?:-\d*)?,?$/.test(word))) return first;
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
