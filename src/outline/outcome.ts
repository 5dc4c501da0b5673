/**
 * Says what came of a call: finds the telling lines of a result (the first failing one, the last one), and refusals and answers of the user that
 * clients report as results. Cuts and quotes texts in whole words, and tells what tools and commands do by their names and settings. Pure;
 * linear in its input.
 */
import { type JsonRecord, parseRecord } from '../conversation/json-scan.ts';
import { wholeBefore } from '../conversation/messages.ts';

export type StepKind = 'read' | 'search' | 'edit' | 'command' | 'plan' | 'other';

// The telling lines of results

/** Characters read at both ends of a result. */
const maxRead = 40_000;
/** Matches the last line of a command that worked, in the words of test runners and compilers. */
export const success =
  /^(?:ok|pass(?:ed)?|success(?:ful(?:ly)?)?|build successful|done)\b[ \t.!]*(?:\S+[/.]\S+.*)?$/i;

/** The known facts of a result. */
export type ResultKind = {
  readonly kind: StepKind;
  /** True if the result is a text of others, in which words like error are no failure. */
  readonly isListing: boolean;
  /** Whether the wire format marks the result as an error; undefined in formats without such a mark. */
  readonly isError: boolean | undefined;
};

/** The lines of a result that tell most; empty if there is none. */
export type ResultEnds = {
  readonly first: string;
  /** The first line that reports a failure; undefined if the call did not fail. */
  readonly failing: string | undefined;
  readonly last: string;
  readonly lines: readonly string[];
};

/** Matches the only line of a command that failed and said nothing. A search that found nothing says no more. */
export const exitCode = /^exit code:? \d+$/i;

/** Finds the telling lines of a result. */
export function resultEnds({ kind, isListing, isError }: ResultKind, result: string): ResultEnds {
  const lines = tellingLines(result);
  const first = lines.find((line) => !prelude.test(line) && !idle.test(line)) ?? lines[0] ?? '';
  const told = lines.filter((line) => !echo.test(line));
  const sorry = /(?<=\? )Sorry, .*/.exec(lines.join('\n'))?.[0];
  const last = sorry ?? told.findLast((line) => !idle.test(line)) ?? told.at(-1) ?? '';
  const isSilent = isListing && lines.length === 1 && exitCode.test(last);
  const hasExited = kind === 'command' && !isListing && exitStatus.test(last);
  const isBroken = !isSilent && (hasExited || isError === true || reportsFailure.test(result.slice(0, 400)));
  const named = isBroken || !isListing ? failureIn(lines) : undefined;
  const failing = isBroken
    ? (named ?? (hasExited ? (told.at(-2) ?? last) : brokenLine(lines)))
    : (kind === 'command' || named === first) && !(success.test(last) && !sureFailure.test(named ?? ''))
      ? named
      : undefined;
  return { first, failing, last, lines };
}

/** Returns the beginnings of a result's lines that hold more than signs, without reminders of clients. Only both ends of a long result are read. */
export function tellingLines(result: string): readonly string[] {
  const text =
    result.length > maxRead * 2 ? `${result.slice(0, maxRead)}\n${result.slice(-maxRead)}` : result;
  return text
    .split('<system-reminder>', 1)[0]!
    .split('\n')
    .map((line) => afterReturn(line.slice(0, 4_000).trim()).slice(0, 1_000).trim())
    .filter((line) => /[\p{L}\p{N}]/u.test(line) && !clientLine.test(line));
}

/** Matches what a client writes ahead of the beginning of a long result, whose rest it kept. */
const preview = /^\s*<persisted-output>\s*Output too large \(([\d.]+ ?[KMG]?B)\)/i;

/** Says that a result is only the beginning of another; undefined for a whole one. */
export function previewWords(result: string): string | undefined {
  const size = preview.exec(result.slice(0, 200))?.[1];
  return size === undefined ? undefined : `only the beginning of ${size} was shown`;
}

/** Returns what a terminal shows of a line that was written over. */
function afterReturn(line: string): string {
  return line.slice(line.lastIndexOf('\r') + 1);
}

/** Matches a line that a client adds to the results of commands, or writes around the beginning of a long one. */
const clientLine =
  /^Shell cwd was reset to \S+$|^<\/?persisted-output>$|^Output too large \(.*saved to:|^Preview \(first /;

/** Matches a result that says at its beginning that the call failed. */
const reportsFailure =
  /^\s*(?:<(?:tool_use_)?error>|error\b|exit code:? [1-9]|command failed|traceback|\{"?error|request failed|failed to\b)|^\s*(?:file|path|directory) (?:does not exist|not found)/i;

/** Matches a line that every file of its kind, or every failed command, begins with. */
const prelude = /^(?:\d+\s*(?:[→:|]\s*)?)?(?:package|import|from|use|using|#include|exit code:?)\s\S+/i;

/** Matches a line in which a shell or a task runner repeats a command. */
export const echo = /^(?:\[[\w:.-]+\] )?[$>] /;

/** Matches the last line of a program that was run and failed. */
const exitStatus = /^exit status [1-9]\d*$/;

/** Matches a line that says nothing of what came: packages without tests, fetches, files taken back, questions of git, beginnings, bytes, bars of progress, rows of tables. */
export const idle =
  /^\?\s+\S+\s+\[no test files\]$|^testing: warning: no tests|-> FETCH_HEAD$|^Updated \d+ paths? from |^\(\d+\/\d+\) Stage .*\?(?: @@.*)?$|^From \S+[:/]\S+$|^(?:=== |==> )|^[^\d]{1,60}:$|^(?:0x)?[\da-f]{4,8}:? +(?:[\da-f]{2,8} +){3}|[█▓▒░■━]{3}|[=#]{4}[^=#\n]{0,40}\d%|\d% ?\|?[=#]{4}|^[|│┃║┌├└]/i;

export const nothing =
  /^(?:no (?:files?|match(?:es)?|results?)(?: were)? found|0 (?:results|matches)|nothing found|no match(?:es)?)\b/i;

/** Match a line that reports a failure, in the words of compilers, test runners and linters. */
const failureLine =
  /^(?:\S+ )?(?:fatal|panic|error|fehler|erreur)(?:\[\w+\])?:|^traceback|^conflict \(|request interrupted by user|\b[1-9]\d* (?:failed|failing|failures?|errors?|issues)\b|command not found|permission denied|no such file|错误|失败|エラー|失敗/i;
const failureMark =
  /\(HTTP [45]\d\d\)|^(?:-+ ?)?(?:FAIL(?:ED|URE)?\b|not ok\b|✗|✘|✖|×)|^[\w.]*(?:Error|Exception)\b.*:|^E\s{2,}|^\S+?[.:(]\w*\d+(?:[:,]\d+)?\)?:? .*(?:\b(?:error|undefined|cannot|not used|not enough|too many|missing return|mismatched|redeclared|invalid operation)\b| \([a-z][\w-]+\)$)|(?<!`)\bERROR\b(?!`)/;

/** Matches a line that reports a failure even where the last line says that all is well: others may be what a test prints. */
const sureFailure =
  /\bFAIL|\bfailed\b|\bpanic\b|\bundefined\b|\bcannot\b|\b[1-9]\d* (?:errors?|issues)\b|✗|✘|✖/;

const harmless =
  /\b(?:0|no) (?:errors?|failures?|failed|failing|problems?)\b|^(?:---? ?)?(?:PASS|ok|=== RUN)\b/i;

/** True for a line that names what failed. A bare word, such as FAIL, does not, and a task runner's last line names only the task. */
function isNamed(line: string): boolean {
  return /\s\S/.test(line) && !/^\[[\w:.-]+\] ERROR/.test(line);
}

/** Matches a line that names no failure where another one does: a warning, or a bare count. */
const vague = /^(?:warning\b|traceback\b|\d+ \w+:?$)/i;
const compiled = /\.\w{1,6}:\d+:\d+: \S/;
/** Match a line that a test wrote, which may have passed, and the line of one that failed. */
const ofTest = /^\S*(?:test|spec)\w{0,60}\.\w{1,6}:\d+: /i;
const testFailed = /^--- FAIL: /;

function failureIn(lines: readonly string[]): string | undefined {
  const failures = lines.filter((line) => isFailure(line.slice(0, 300)));
  const named = failures.filter(isNamed);
  const plain = named.find((line) => !vague.test(line));
  const clear = ofTest.test(plain ?? '') ? (named.find((line) => testFailed.test(line)) ?? plain) : plain;
  if (clear !== undefined || failures.length === 0) return clear;
  const placed = lines.find((line) => compiled.test(line)) ?? lines.find((line) => place.test(line));
  return placed ?? named[0] ?? failures[0];
}

/** Returns the line that says most about a failure which no line names: one with a place, or the first one, or the last behind a beginning that says nothing. */
function brokenLine(lines: readonly string[]): string {
  const named = lines.filter((line) => !/^(?:exit code:? \d+$|#|\$ )/i.test(line));
  const [first = lines[0] ?? ''] = named;
  return named.find((line) => place.test(line)) ?? (prelude.test(first) ? (named.at(-1) ?? first) : first);
}

function isFailure(line: string): boolean {
  return (failureMark.test(line) || failureLine.test(line)) && !harmless.test(line);
}

export const place = /(?<![\w./@-])[\w./@-]+\.\w{1,6}:\d+/;
/** Matches tags around what a tool says. */
export const markup = /<\/?(?:\w{1,60}[_-]\w{1,60}|error)>/g;

/** Names of JSON members that say what came of a call. */
const verdicts = ['error', 'status', 'state', 'result', 'message', 'title', 'name'];

/** Returns what a tool answered: its verdict in JSON, or this line in quotes. */
export function answerWords(result: string, line: string, max = 70): string {
  if (line === '') return 'no output';
  if (!/^\s*(?:\{\s*["'}]|\[\s*[\d"'[{\](])/.test(result))
    return nothing.test(line) ? 'nothing found' : quoted(line.replaceAll(markup, ''), max);
  const answer = result.length > maxRead ? undefined : parseRecord(result);
  const key = verdicts.find((name) => typeof answer?.[name] === 'string' && answer[name] !== '');
  return key === undefined ? '' : `${key} ${quoted(answer![key] as string, 60)}`;
}

/** The words in which clients say that the text of an edit is not in its file. */
export const textNotFound: readonly RegExp[] = [
  /String to replace not found in file/,
  /Failed to find (?:expected lines|context '.*') in /,
  /oldString not found in content|Could not find oldString in the file/,
  /0 occurrences found for old_string|could not find the string to replace/,
  /SEARCH\/REPLACE blocks? failed to match|SEARCH block failed to exactly match/,
  /Could not find (?:the exact text|edits\[\d+\]) in /,
  /No replacement was performed, old_str .{0,2000}did not appear verbatim/s,
];

/** True for a result that says that the text of an edit is not in its file. */
export function saysTextNotFound(result: string): boolean {
  return textNotFound.some((words) => words.test(result.slice(0, 4_000)));
}

// The user's words in results

/** Maximum UTF-16 units of the user's words in one line. */
export const maxUserWords = 800;

/** The user's words in a result: a refusal of the call, with or without words, or answers to questions. */
export type UserReply = { readonly isRefusal: boolean; readonly words: string };

const refusing =
  /^\W*(?:the )?user (?:doesn['’]t want|does not want|has (?:rejected|denied|declined)|rejected|denied|declined|refused|cancell?ed)\b|^\W*[^.\n]{0,60}\b(?:rejected|denied|declined|cancell?ed) by (?:the )?user\b|^\W*request interrupted by (?:the )?user/i;
const reasoned = /(?:the user said|feedback|reason given|user's message):\s*(?:<feedback>)?/i;
const answered = /^\W*(?:the )?user (?:has )?answered[^:\n]{0,60}:/i;

/** Finds the user's words in a result: a refusal of the call, or answers to questions. */
export function userReply(result: string): UserReply | undefined {
  const text = result.slice(0, maxRead);
  const answers = answered.exec(text);
  if (answers) return { isRefusal: false, words: behind(text, answers, 'You can now continue') };
  if (!refusing.test(text.slice(0, 400))) return undefined;
  const reason = reasoned.exec(text);
  return { isRefusal: true, words: reason ? behind(text, reason, '</feedback>') : '' };
}

/** Returns the text behind a match, up to a text that may follow. */
function behind(text: string, match: RegExpExecArray, end: string): string {
  const rest = text.slice(match.index + match[0].length);
  const at = rest.indexOf(end);
  return (at < 0 ? rest : rest.slice(0, at)).trim();
}

/** Returns a text without line ends and control characters. */
export function oneLine(text: string): string {
  return text
    .slice(0, maxRead)
    .toWellFormed()
    .replaceAll(/[\s\p{Cc}\p{Zl}\p{Zp}\uFFFD]+/gu, ' ')
    .trim();
}

/** Returns a text of at most `max` UTF-16 units unchanged, of a longer one the whole words that fit and an ellipsis; empty if not one fits. */
export function wholeWords(text: string, max: number): string {
  if (text.length <= max) return text;
  const end = wholeBefore(text, max - 2);
  const cut = text.slice(0, end);
  // Some languages write no spaces: there, a text may end behind any character of theirs.
  const isBetween =
    /\s/.test(text[end]!) ||
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]$/u.test(cut);
  const at = isBetween ? end : cut.search(/\s\S*$/);
  return at <= 0 ? '' : `${cut.slice(0, at).trimEnd()} …`;
}

/** Quotes one line of somebody else's text. */
export function quoted(text: string, max: number): string {
  const words = wholeWords(oneLine(text), max);
  return words === '' ? '' : `"${words.replaceAll('"', "'")}"`;
}

/** Counts things in words: `1 line`, `2 lines`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

// Tools and commands

/** Writes the name of a tool. Clients and models choose names, so anything unusual is quoted. */
export function label(tool: string): string {
  return /^[\w.:/-]{1,64}$/.test(tool) ? tool : quoted(tool.slice(0, 200), 64);
}

const commandKeys = ['command', 'cmd', 'script'];

/** Returns the command in a call's arguments; undefined if there is none. */
export function commandIn(sent: JsonRecord): string | undefined {
  const found = commandKeys.map((name) => sent[name]).find((value) => value !== undefined);
  if (typeof found === 'string') return found;
  // Some clients send the words of a command: ["bash", "-lc", "npm test"].
  return Array.isArray(found) ? found.filter((word) => typeof word === 'string').join('\n') : undefined;
}

/** Matches what comes ahead of a command: the folder that it is run in, a comment, a line that goes on. */
export const ahead = /^(?:\\\s+|#[^\n]*\n\s*|\(?cd (?:"[^"\n]*"|'[^'\n]*'|\S+) *(?:&&|;|\n)\s*)+/;

/** Returns a command without what comes ahead of it. */
function bareCommand(command: string): string {
  const text = command.replace(shellCall, '').trim();
  return text.replace(ahead, '') || text;
}

/** Returns the first line of a command, without the folder that it is run in; of a text that it is given, the first line. */
export function commandWords(command: string, max = 120): string {
  const bare = bareCommand(command);
  const [first = '', second = ''] = bare.split('\n', 2);
  const line = oneLine(first);
  const given = line.replace(/["']?(?:\$\()?(?:cat )?<<-?\s*["']?\w+["']?$/, '');
  if (given.length < line.length) return `${wholeWords(given, max)}${quoted(second, max)}`;
  const whole = wholeWords(line, max);
  if (bare.length === first.length || whole.endsWith('…')) return whole;
  // A text in quotes goes on in the next line.
  return `${whole} …${(line.split('"').length - 1) % 2 === 1 ? '"' : ''}`;
}

/** True for a command of more than 100 UTF-16 units or several lines: its title alone tells it. */
export function isLongCommand(about: string): boolean {
  return about.length > 100 || about.endsWith('…');
}

/** Matches a command that changes a repository or takes back changes of files. */
export const gitChange =
  /(?:^|&& |; )git (?:-\S+ \S+ ){0,9}(?:commit|push|pull|merge|rebase|cherry-pick|checkout|switch|restore|revert|reset|clean|am|stash(?! (?:list|show)))\b/;

/** Returns the words in a tool's name: `read_file`, `ReadFile` and `mcp__files__read` all contain the word read. */
export function wordsOf(tool: string): readonly string[] {
  return tool
    .slice(0, 200)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}

/** Matches the words ahead of a command that a shell is given. */
export const shellCall = /^(?:\S*\/)?(?:ba|z|)sh\n-\w+\n/;

/** A pattern of the programs that print files. */
export const printers = String.raw`cat|head|tail|sed|awk|nl|less|git (?:-\S+ \S+ ){0,9}(?:show|diff|blame)`;

/** Matches a command that prints texts of others, in which a word like error is no failure. */
const printing = new RegExp(
  String.raw`^(?:sudo |\w+=\S+ )*(?:${printers}|grep|rg|egrep|ag|ls|find|tree|wc|echo|jq|gh \w+ (?:diff|view)|git (?:-\S+ \S+ ){0,9}(?:log|grep|status|branch|ls-\w+))(?:\s|$)`,
);

/** True for a call whose result is a text of others. */
export function isListingCall(kind: StepKind, sent: JsonRecord): boolean {
  if (kind !== 'command') return kind === 'read' || kind === 'search';
  return printing.test(bareCommand(commandIn(sent) ?? ''));
}

// Settings in the arguments of calls, which later calls are likely to use again

/** Arguments that are content, or say how a tool is to work: no line quotes them. */
export const silent =
  /^(?:content|(?:new|old)_?(?:string|str|text|source|content)|text|body|patch|diff|code|prompt|description|explanation|thought|reason(?:ing)?|timeout\w*|limit|offset|head_limit|output_mode|replace_all|run_in_background|multiline|block|type|language|encoding|-\w+)$/i;

/** Matches a line that ends every message of a commit. */
const trailer = /^(?:[A-Z][\w-]{0,40}-[Bb]y): [^\n]{1,100}$/m;

/**
 * Returns what says how a tool is to work, and so is used again: large numbers, such as limits of time, names in snake case, and the trailer of
 * a commit.
 */
export function settingsOf(sent: JsonRecord): readonly string[] {
  const [signed] = trailer.exec((commandIn(sent) ?? '').slice(0, maxScript)) ?? [];
  return (signed === undefined ? [] : [oneLine(signed).replace(/(?<!["')])["')]+$/, '')]).concat(
    scalarsOf(sent),
  );
}

/** UTF-16 units of a command that are searched. */
const maxScript = 10_000;

function scalarsOf(sent: JsonRecord): readonly string[] {
  return Object.entries(sent).flatMap(([key, value]) => {
    if (!silent.test(key) || key === 'offset' || key === 'limit') return [];
    if (typeof value === 'number') return value >= 100 ? [`${key} ${value}`] : [];
    return typeof value === 'string' && /^[a-z]{1,20}(?:_[a-z]{1,20}){1,4}$/.test(value) ? [value] : [];
  });
}

/** Maximum segments of a path in its short name. */
const maxSegments = 8;

/** Names a path by its last segment, or by as many as tell it from the other paths. The end of a longer path is the same file. */
export function shortNames(paths: Iterable<string>): (path: string) => string {
  const times = new Map<string, number>();
  for (const path of [...new Set(paths)].toSorted((a, b) => b.length - a.length)) {
    if (times.has(path)) continue;
    for (const end of endsOfPath(path)) times.set(end, (times.get(end) ?? 0) + 1);
  }
  return (path) => endsOfPath(path).find((end) => (times.get(end) ?? 0) < 2) ?? path;
}

function endsOfPath(path: string): readonly string[] {
  const segments = path.split('/').filter((segment) => segment !== '');
  return segments.slice(0, maxSegments).map((_, at) => segments.slice(-1 - at).join('/'));
}
