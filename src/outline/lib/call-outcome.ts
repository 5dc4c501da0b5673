/**
 * Says in a few words what came of a search or a command, also what its last line does not say: commits and pushes, the state and the history of a
 * repository; of a failure, how many there were, and the cause behind the name of a test; and which files a command wrote. Pure; linear in its input.
 */
import { type JsonRecord, parseRecord } from '../../conversation/json-scan.ts';
import {
  answerWords,
  commandIn,
  countOf,
  exitCode,
  idle,
  markup,
  nothing,
  place,
  quoted,
  type ResultEnds,
  success,
  wholeWords,
} from '../outcome.ts';
import { type CalledWords, hasEffect, trial, withoutGivenTexts } from './effects.ts';

/** Says what came of a search or a command that worked. */
export function successWords(
  { kind, isListing, about }: CalledWords,
  result: string,
  { first, last, lines }: ResultEnds,
): string {
  if (kind === 'command')
    return (
      commandOutcome(about, lines) ??
      lastWords(result, { isListing, last: wantedIn(about, lines) ?? last, lines })
    );
  if (nothing.test(first) || first === '') return 'nothing found';
  const hits = lines.filter((line) => !/^Found 1 file\b/.test(line));
  return placesIn(lines) || (hits.length === 1 ? hitWords(hits[0]!) : '');
}

/** Returns the last line of a command that worked, or how many lines it listed. */
function lastWords(
  result: string,
  { isListing, last, lines }: Pick<ResultEnds, 'last' | 'lines'> & { readonly isListing: boolean },
): string {
  if (success.test(last) || last.startsWith('--- PASS')) return 'ok';
  const size = countOf(lines.length, 'line');
  if (!isListing)
    return saysNothing(lines, last) ? size : answerWords(result, last.replace(time, '')) || 'ok';
  if (exitCode.test(last)) return 'nothing found';
  return lines.length > 1 ? placesIn(lines) || size : answerWords(result, last) || hitWords(last);
}

/** Returns the only line that was found, without most of a long path. */
function hitWords(line: string): string {
  return quoted(line.replace(/^(?:[^\s/:]*\/)+(?=[^\s/:]+\/[^\s/:]+)/, '…/'), 110);
}

/** Returns the line that a search with lines around it looked for; undefined for other commands. */
function wantedIn(command: string, lines: readonly string[]): string | undefined {
  const [, words = '\n'] =
    /\bgrep (?:-\w+ ){0,9}-\w*[ABC] ?\d+ (?:-\w+ ){0,9}["']?([^"'|\s]+)/.exec(command) ?? [];
  return lines.find((line) => line.includes(words));
}

/** Matches the time and the level ahead of the words of a log. */
const time =
  /^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?\]? +(?:[[(]?(?:TRACE|DEBUG|INFO|NOTICE)[\])]?:? +)?(?=\p{L})/iu;

/** UTF-16 units of a value whose beginning alone says nothing. */
const maxValue = 70;

/** True if the last line says nothing of a result: it is one of many alike, a statement, or the beginning of a value. */
function saysNothing(lines: readonly string[], last: string): boolean {
  if (last === '') return false;
  const isValue = last.length > maxValue && /^[[{<(]/.test(last) && !/^\s*[[{]\s*["'}\]\d]/.test(last);
  return (
    isListed(lines) ||
    (idle.test(last) && !last.startsWith('Updated ')) ||
    isValue ||
    /^(?:return|func|def|const|let|var)\s/.test(last)
  );
}

/** True for code, a list of things alike, or the members of a value: their last line says nothing of the others. */
function isListed(lines: readonly string[]): boolean {
  const [second, last] = lines.slice(-2);
  if (second === undefined || last === undefined) return false;
  if (/^["'][^"']+["']: |[,;{}([]$/.test(last) || (lines.length > 3 && /^[-*•+] /.test(last))) return true;
  return lines.length > 3 && shapeOf(second) === shapeOf(last) && /\d/.test(last);
}

function shapeOf(line: string): string {
  return line.replaceAll(/[\p{L}\p{N}_./-]+/gu, 'x');
}

/** Names the lines that a search found, if they are few. */
function placesIn(lines: readonly string[]): string {
  const found = lines.slice(0, 40).flatMap((line) => {
    const [, path = '', at] = /^((?:\S*\/)?[\w.@+-]+\.\w+:)?(\d+):/.exec(line) ?? [];
    return at === undefined ? [] : [path.slice(path.lastIndexOf('/') + 1) + at];
  });
  if (found.length === 0 || found.length > 3) return '';
  return `${/^\d/.test(found[0]!) ? 'line ' : ''}${found.join(', ')}`;
}

/** Leaves out of an outcome what its call says: `Task #5 created successfully: Fix the bug` tells only `#5`. Adds the id of what a call made. */
export function newWords(outcome: string, call: CalledWords, result: string): string {
  const { about, tool } = call;
  const made =
    hasEffect(call) && /^\s*\{/.test(result) ? idIn(parseRecord(result.slice(0, maxJson)) ?? {}) : '';
  if (made !== '' && !about.includes(made)) return [outcome, made].filter(Boolean).join(', ');
  if (/^"async agent launched\b/i.test(outcome)) return 'started in the background';
  if (/^"launching skill: /i.test(outcome)) return 'ok';
  if (!/\b(?:updated|created|saved|added|deleted|removed|sent)\b/i.test(outcome)) return outcome;
  const said = `${tool} ${about}`.toLowerCase();
  const ids = outcome.match(/#?[\p{L}-]*\d[\p{L}\d-]*/gu) ?? [];
  const others = ids.filter((id) => !said.includes(id.replace('#', '').toLowerCase()));
  return ['ok', ...new Set(others.slice(0, 2))].join(' ');
}

/** UTF-16 units of an answer in JSON in which an id is looked for. */
const maxJson = 40_000;

/** Names of members that name a thing, the best first. */
const idNames = [/^(?:identifier|key|number)$/i, /(?:^|_)id$/i, /(?:^|_)url$/i];

function idIn(answer: JsonRecord): string {
  const names = Object.keys(answer).filter((name) => typeof answer[name] === 'string');
  const name = idNames
    .map((wanted) => names.find((one) => wanted.test(one)))
    .find((one) => one !== undefined);
  return name === undefined ? '' : wholeWords(String(answer[name]), maxId);
}

const maxId = 60;

// Failures

const counted = /\b([1-9]\d*) (?:tests? |specs? )?(failed|failing|failures?|errors?|issues?|problems?)\b/i;

/** Maximum UTF-16 units of a line that reports a failure, and of the name of a test. */
const maxFailure = 110;

/** Returns how many failed, the line that reports the failure, and the cause behind the name of a test. */
export function failureWords(failing: string, lines: readonly string[]): string {
  if (/request interrupted by user/i.test(failing)) return 'interrupted by the user';
  const count = lines
    .slice(-15)
    .map((line) => counted.exec(line))
    .findLast((found) => found !== null);
  const at = lines.indexOf(failing);
  const said = (line: string): string => quoted(shortPlace(line.replaceAll(markup, '')), maxFailure);
  const failed =
    count && !failing.includes(count[0])
      ? `${count[1]} ${count[2]!.toLowerCase().replace(/s$/, count[1] === '1' ? '' : 's')}`
      : 'failed';
  const cause = causeOf(lines, at);
  if (cause !== undefined)
    return [failed, wholeWords(testName(failing), maxFailure), said(cause)].filter(Boolean).join(', ');
  const where = lines
    .slice(Math.max(0, at), at + 4)
    .map((line) => place.exec(line)?.[0])
    .find((found) => found);
  if (count && where && !placed.test(failing)) return `${failed === 'failed' ? count[0] : failed}, ${where}`;
  return [failed, [failing, ...lines].map(said).find(Boolean) ?? ''].filter(Boolean).join(', ');
}

type RepairedStep = Pick<CalledWords, 'kind' | 'about'> & {
  readonly path: string;
  readonly hasFailed: boolean;
  readonly user: object | undefined;
};

/** Returns the failed steps that a later one repaired, each with the next of these: an edit of the same file that worked, or the same command without a failure. */
export function repairedSteps<Step extends RepairedStep>(steps: readonly Step[]): ReadonlyMap<Step, Step> {
  const repaired = new Map<Step, Step>();
  const edited = new Map<string, Step>();
  const worked = new Map<string, Step>();
  for (const step of steps.toReversed()) {
    const { kind, path, hasFailed, user } = step;
    if (user || (kind !== 'edit' && kind !== 'command')) continue;
    const names = kind === 'edit' ? [path] : commandNames(step.about);
    const seen = kind === 'edit' ? edited : worked;
    const repair = seen.get(names.at(-1) ?? '');
    if (!hasFailed) for (const name of names) seen.set(name, step);
    else if (repair) repaired.set(step, repair);
  }
  return repaired;
}

/** Returns the commands of a line, without the parts that only show or redirect their output. They tell whether a command was run again. */
function commandNames(about: string): readonly string[] {
  return about
    .split(/&&|;|\|\|/)
    .map((command) =>
      command
        .replace(/\||\d?>.*$/s, '')
        .trim()
        .replaceAll(/ (?:-v|-count=\d+|--verbose)(?= |$)/g, ''),
    )
    .filter((command) => command !== '' && !/^(?:cd|echo) /.test(command));
}

// Commands

/** Returns the outcome of a command that worked; undefined if its last line says it. `lines` are those of its result, trimmed. */
function commandOutcome(command: string, lines: readonly string[]): string | undefined {
  const verbs = new Set(
    Array.from(command.matchAll(/\bgit (?:-\S+ \S+ ){0,9}([a-z]+)/g), ([, verb]) => verb),
  );
  if (/\s(?:--help|-h|help)\b/.test(command) && lines.length > 3) return countOf(lines.length, 'line');
  const total = lines.findLast((line) => sum.test(line));
  if (verbs.has('diff') || verbs.has('show')) return total;
  if (verbs.has('log')) return historyIn(lines);
  return changedIn(command, lines, total) ?? (verbs.has('status') ? stateIn(lines) : undefined);
}

/** Tells the newest commit, and how many there are. */
function historyIn(lines: readonly string[]): string | undefined {
  const commits = lines.filter((line) => /^[*|\\/ ]*[0-9a-f]{7,40} \S/.test(line));
  if (commits.length === 0 || commits.length * 2 <= lines.length) return undefined;
  return `${commits.length > 1 ? `${commits.length} commits, newest ` : ''}${quoted(commits[0]!, 90)}`;
}

const sum = /^\d+ files? changed\b/;
const made = /^\[(?:\S+ )+([0-9a-f]{7,40})\] (.*)$/;
const sent = /^([+*=]?) ?(?:([0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40})|\[new \w+\]) +\S+ +-> +(\S+)/;

/** Tells commits and pushes. The subject of a commit is left out where the command tells it. */
function changedIn(command: string, lines: readonly string[], total: string | undefined): string | undefined {
  const said: string[] = [];
  const commit = lines.map((line) => made.exec(line)).findLast((found) => found !== null);
  if (commit) {
    const [, hash = '', subject = ''] = commit;
    // A repository that begins with this command is one to try something in.
    const isNew = lines.some((line) => made.test(line) && line.includes('(root-commit) '));
    const told = command.includes(subject) ? '' : quoted(subject, 90);
    const inNew = commit[0].includes('(root-commit) ')
      ? 'first commit of a new repository'
      : 'commits in a new repository';
    said.push([isNew ? inNew : `commit ${hash}`, told].join(' ').trim());
    if (total !== undefined) said.push(total.replace(/ changed,.*$/, ' changed'));
  }
  // A fetch lists the same, behind where it comes from.
  for (const line of lines.some((one) => /^To \S+$/.test(one)) ? lines : []) {
    const [, sign, range = 'as new', branch = ''] = sent.exec(line) ?? [];
    if (branch !== '') said.push(`pushed ${sign === '+' ? 'by force ' : ''}${range} to ${branch}`);
  }
  return said.length === 0 ? undefined : said.join(', ');
}

/** Maximum files that a state names. */
const maxFiles = 3;

/** Tells the state of a repository: clean, or which files changed. */
function stateIn(lines: readonly string[]): string | undefined {
  if (lines.some((line) => line.startsWith('nothing to commit, working tree clean'))) return 'clean';
  const files = lines.flatMap((line) => {
    const [, long, short] =
      /^(?:modified|new file|deleted|renamed|both modified): +(.+)$|^(?:[MADRCU?!]{1,2}) +(\S+)$/.exec(
        line,
      ) ?? [];
    const path = long ?? short;
    return path === undefined ? [] : [path.slice(path.lastIndexOf('/', path.length - 2) + 1)];
  });
  if (files.length === 0) return undefined;
  const more = files.length > maxFiles ? `, and ${files.length - maxFiles} more` : '';
  return `changed: ${files.slice(0, maxFiles).join(', ')}${more}`;
}

// Causes

/** Matches a line that names a test that failed, and the lines that begin and end what other tests say. */
const failedTest = /^(?:-+ ?)?(?:FAIL(?:ED)?:?|not ok \d+|✗|✘|✖|×)[\s:-]+\S/;
const otherTest = /^(?:=== |--- |FAIL\b|PASS\b|ok\b|not ok\b)/;
const otherMark = /^(?:ok\b|not ok\b|✓|✗|✘|✖|×)/;

const placed = /^(?:\S*[\\/])?([\w.@+-]+\.\w{1,6}[:(]\d+(?:[:,]\d+)?\)?:?) +\S/;
const inTest = /^\S*(?:test|spec)\w{0,60}\.\w{1,6}[:(]\d/i;
const thrown = /^(?:E\s|\w*(?:Error|Exception|Failure)\b\s*:|panic:|expected\b|assert)/i;

/** Matches words in which a test says what it wanted and what it got. */
const complaint =
  /\b(?:expect(?:ed|s)?|want(?:ed)?|got|should|must|fail(?:ed|s|ure)?|error|unable|cannot|could ?n[o']t|not found|no such|unexpected|mismatch\w*|invalid|missing|undefined|nil|null)\b/i;
/** Matches a line about a package in which a test failed. */
const failedPackage = /^FAIL\s+\S[^\s/]*\/\S+\s+[\d.]+m?s$/;

/** Lines that are searched on either side of the name of a test: tests may log much. */
const maxLines = 400;

/** Returns the line that says why a test failed whose name is at `at`; undefined for other lines, and if none says it. */
function causeOf(lines: readonly string[], at: number): string | undefined {
  const line = lines[at] ?? '';
  if (/\[(?:build|setup) failed\]/.test(line)) return lines.find((one) => placed.test(one));
  const before = lines.slice(Math.max(0, at - maxLines), at);
  if (failedPackage.test(line)) return before.findLast((one) => placed.test(one) && complaint.test(one));
  if (!failedTest.test(line)) return undefined;
  // The failed parts of a test are listed behind it.
  const part = lines[at + 1] ?? '';
  if (failedTest.test(part) && testName(part).startsWith(`${testName(line)}/`)) return causeOf(lines, at + 1);
  const after = lines.slice(at + 1, at + 1 + maxLines);
  // A test in words may log lines with marks.
  const other = otherMark.test(line) ? otherMark : otherTest;
  const end = after.findIndex((one) => other.test(one));
  const start = before.findLastIndex((one) => other.test(one));
  return causeIn(end < 0 ? after : after.slice(0, end)) ?? causeIn(before.slice(start + 1));
}

/** Tests log before they fail, so the last line with a place that complains is the cause, or else the last one of a test. */
function causeIn(lines: readonly string[]): string | undefined {
  const places = lines.filter((line) => placed.test(line));
  const cause =
    places.findLast((line) => inTest.test(line) && complaint.test(line)) ??
    lines.find((line) => thrown.test(line)) ??
    places.findLast((line) => complaint.test(line)) ??
    places.findLast((line) => inTest.test(line));
  // A line that ends with a colon says its point in the next one.
  return cause?.endsWith(':') ? `${cause} ${lines[lines.lastIndexOf(cause) + 1] ?? ''}`.trim() : cause;
}

/** Returns the name of the test in a line that says that it failed; empty for a line about a package that was not built. */
function testName(line: string): string {
  if (/\[(?:build|setup) failed\]/.test(line) || failedPackage.test(line)) return '';
  return line
    .replace(/^(?:-+ ?)?(?:FAIL(?:ED)?:?|not ok \d+|✗|✘|✖|×)[\s:-]+/, '')
    .replace(/ \([\d.]+ ?m?s\)$/, '');
}

/** Returns a line that begins with a place in a file, with two segments of its path at most. */
function shortPlace(line: string): string {
  return line.replace(/^(?:\.{0,2}\/)?(?:[\w.@~+-]+\/)+(?=[\w.@~+-]+\/[\w.@+-]+\.\w{1,6}[:(]\d)/, '');
}

// Files that commands write

/** UTF-16 units of a command or a patch that are read. */
const maxScript = 20_000;

/** Matches the line of a patch that names a file which it changes. */
const patched =
  /^(?:\*\*\* (?:Update|Add) File: |\+\+\+ (?:b\/)?)([^\s/][^\n\t]*|\/(?!dev\/null)[^\n\t]+)$/gm;
/** Matches a file that a shell writes its output to. */
const redirected = /(?:^|[^\d&<>=-])>{1,2} ?(?!\/dev\/)([\w.@~+/-]+)/g;
/** Matches commands that change the files that they name last. */
const changing =
  /^(?:sudo )?(?:sed (?:-\S+ )*-i|perl (?:-\S+ )*-\w*i|tee|mv|cp|gofmt -\w*w|prettier (?:\S+ )*--write|git (?:checkout|restore)\b(?=.* -- | .*\.\w+$)|patch)\s/;

/** Returns the files that a command or a patch writes, as far as it names them; none of a file that it removes. */
export function filesWritten(args: JsonRecord): readonly string[] {
  const command = commandIn(args);
  // Files in a folder for trials are none of the work.
  if (trial.test(command ?? '')) return [];
  const texts = command === undefined ? Object.values(args) : [command];
  const files = texts.flatMap((text) =>
    (typeof text === 'string' && text.includes('** ')) || (typeof text === 'string' && text.includes('+++ '))
      ? Array.from(text.slice(0, maxScript).matchAll(patched), ([, path = '']) => path.trim())
      : [],
  );
  const script = withoutGivenTexts((command ?? '').slice(0, maxScript));
  for (const one of script.split(/&&|\|\|?|;|\n/)) {
    for (const [, path = ''] of one.replaceAll(/"[^"]*"|'[^']*'/g, '""').matchAll(redirected))
      files.push(path);
    if (!changing.test(one.trim())) continue;
    const words = one.match(/"[^"]*"|'[^']*'|[^\s"'>]+/g) ?? [];
    const last = words.at(-1)?.replaceAll(/["']/g, '') ?? '';
    if (/^[\w.@~+/-]*\.\w+$/.test(last)) files.push(last);
  }
  return [...new Set(files)];
}
