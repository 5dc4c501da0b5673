/**
 * Finds the files that a call shows, by the name of its tool or by the programs in its command, and the places that a search found. Pure; linear
 * in its input.
 */
import { parseRecord } from '../conversation/json-scan.ts';
import type { Steps } from '../conversation/steps.ts';
import { commandIn, countOf, printers, shellCall, wordsOf } from './outcome.ts';
import { type CallWords, kindOf, maxInput, pathIn, type StepCall } from './step-line.ts';

/** A file that a call shows, and which lines of it; empty if it shows all of them. */
export type FileRead = { readonly path: string; readonly lines: string };

/**
 * Returns the files that a call shows unchanged: by a tool that reads, or by commands such as `cat`, `nl` or `sed -n`. Output that went through a
 * pipe is not a file.
 */
export function filesRead({ tool, input }: Pick<StepCall, 'tool' | 'input'>): readonly FileRead[] {
  const sent = (input.length > maxInput ? undefined : parseRecord(input)) ?? {};
  const path = pathIn(sent);
  const kind = kindOf(tool, sent, path);
  if (kind === 'command') return filesPrinted((commandIn(sent) ?? '').replace(shellCall, ''));
  if (kind !== 'read') return [];
  const range = Object.entries(sent).filter(([key, value]) => rangeKey.test(key) && value !== null);
  return [{ path, lines: range.map((pair) => pair.join('=')).join(' ') }];
}

const rangeKey =
  /^(?:offset|limit|view_range|(?:start|end)_?line\w*|line_?(?:start|end|range)\w*|head|tail)$/i;

/** Characters of the longest command that is read. */
const maxCommand = 2_000;

/** Returns the files that a command prints; none if it does anything else as well. */
function filesPrinted(command: string): readonly FileRead[] {
  const line = command.slice(0, maxCommand + 1).trim();
  if (line.length > maxCommand || /[|<>`]|\$\(/.test(line)) return [];
  const files: FileRead[] = [];
  for (const one of line.split(/&&|;|\n/)) {
    const [program = '', ...words] = one.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
    if (program === 'cd' || program === '') continue;
    const options = words.filter(
      (word, at) => word.startsWith('-') || isOption(program, word, words[at - 1]),
    );
    const isPrinter =
      program === 'sed' ? (words[0]?.startsWith('-n') ?? false) : /^(?:cat|bat|nl|head|tail)$/.test(program);
    if (!isPrinter) return [];
    const lines = /^(?:sed|head|tail)$/.test(program) ? `${program} ${options.join(' ')}` : '';
    for (const word of words)
      if (!options.includes(word)) files.push({ path: word.replaceAll(/^["']|["']$/g, ''), lines });
  }
  return files;
}

/** True for a script of sed, and for a number that belongs to the option before it. */
function isOption(program: string, word: string, before = ''): boolean {
  return program === 'sed' ? /^["']?[\d,$]+p;?["']?$/.test(word) : /^-\w$/.test(before) && /^\d+$/.test(word);
}

/** True for a search tool, whose results come best first. */
export function isSearch(name: string): boolean {
  return wordsOf(name).some((word) => searchWords.has(word));
}

const searchWords = new Set(['search', 'find', 'query', 'retrieve', 'lookup', 'browse', 'recommend']);

/**
 * True if a call shows a file unchanged. An agent may edit the file by quoting its lines, so these must not be rewritten. Decided by the call
 * alone, in doubt for a file. `input` is the JSON text of the arguments.
 */
export function isFileContent({ name, input }: { readonly name: string; readonly input: string }): boolean {
  if (wordsOf(name).some((word) => fileWords.has(word))) return true;
  const command = commandIn(parseRecord(input) ?? {});
  return command !== undefined && printsFile.test(command) && !machineWritten.test(command);
}

/** Words in the names of tools that read files, or return what they changed in one. */
const fileWords = new Set(['read', 'view', 'open', 'cat', 'edit', 'write', 'replace', 'patch', 'notebook']);

/** Programs that print a file, at the start of a command; after a pipe they only filter other output. Each line is searched by itself, which takes linear time. */
const printsFile = new RegExp(
  String.raw`(?:^|[;&(\n]|\bxargs (?:-\S+ ){0,9}|-exec )[^\S\n]*(?:sudo )?(?:${printers}|more|bat)(?:\s|$)`,
);

const machineWritten = /\.(?:log|out|jsonl|csv|tsv)\b/;

// The places in the results of searches and listings. Only paths and numbers of lines are taken from a result, never its words.

/** Matches a command that searches or lists files. */
const searching =
  /^(?:\S*\/)?(?:[ef]?grep|rg|ag|ack|fd|fdfind|find|ls|tree|git (?:-\S+ \S+ ){0,9}(?:grep|ls-files))(?:\s|$)/;

/** Matches a command that lists the names in a folder, and nothing else. */
const listingNames = /^(?:\S*\/)?(?:ls|tree)(?:\s[^;&|]*)?(?:\|\|.*|\| *(?:head|tail|sort)\b[^;&|]*)?$/;

/**
 * Writes what a search or a listing found as places, joined by path: `4 hits in 2 files of src: a.ts:12,40,88; b.ts:7`. Undefined for another
 * call, and for a result of another form.
 */
export function* placesFound(
  call: Pick<CallWords, 'kind' | 'about' | 'path'>,
  text: string,
): Steps<string | undefined> {
  if (!findsPlaces(call)) return undefined;
  const { kind, about, path: within } = call;
  const list = newPlaces(kind === 'command' && listingNames.test(about), within);
  for (let start = 0, line = 1; start <= text.length; line++) {
    const end = text.indexOf('\n', start);
    const stop = end < 0 ? text.length : end;
    addLine(list, text.slice(start, Math.min(stop, start + maxLine)).trimEnd());
    start = stop + 1;
    if (line % linesPerStep === 0) yield;
  }
  const { hits, named, others } = list;
  return hits + named === 0 || hits + named < others * 2 ? undefined : spellPlaces(list, within);
}

/** True for a call that searches or lists files. */
export function findsPlaces({ kind, about }: Pick<CallWords, 'kind' | 'about'>): boolean {
  return kind === 'search' || (kind === 'command' && searching.test(about));
}

/** UTF-16 units of a line that are read, and lines that are read in one step. */
const maxLine = 400;
const linesPerStep = 2_000;

/** Places of which at most so many are remembered; the others are counted. */
const maxPaths = 400;
const maxLinesOfPath = 100;

/** The numbers of lines in one file; hits may lack them. */
type PlacesFound = { readonly lines: number[]; hits: number };

type PlaceList = {
  readonly isNames: boolean;
  /** The places by path. The path is empty where only the call names it. */
  readonly byPath: Map<string, PlacesFound>;
  /** Paths that are not in `byPath`. */
  readonly more: Set<string>;
  hits: number;
  /** Paths without hits. */
  named: number;
  context: number;
  others: number;
  /** The path above the lines that follow, and whether it was counted as one without hits. */
  heading: string;
  isOpen: boolean;
};

function newPlaces(isNames: boolean, within: string): PlaceList {
  const heading = /\.\w{1,12}$/.test(within) ? nameOf(within) : '';
  const counts = { hits: 0, named: 0, context: 0, others: 0 };
  return { isNames, byPath: new Map(), more: new Set(), ...counts, heading, isOpen: false };
}

/** A pattern of a path without spaces and quotes, so that no sentence is taken for one. */
const pathWord = String.raw`(?:[A-Za-z]:[\\/])?[\p{L}\p{N}_.@+~$%#=,()[\]{}\\/-]{1,200}`;
const numberedHit = new RegExp(String.raw`^(${pathWord}):(\d{1,7}):`, 'u');
const numberedContext = new RegExp(String.raw`^${pathWord}-\d{1,7}-`, 'u');
const hit = new RegExp(String.raw`^(${pathWord}):`, 'u');
const heading = new RegExp(String.raw`^(?:File: )?(${pathWord}):?$`, 'u');
const below = /^\s*(?:L|Line )?(\d{1,7})([:-])/;
const longListing = new RegExp(
  String.raw`^[-dlbcps][rwxsStT-]{9}[@+.]? .* (?:\d\d:\d\d|\d{4}) (${pathWord})(?: -> .*)?$`,
  'u',
);
const note = /^(?:found \d|showing |total \d|no |\(|-{2,3}$)/i;

function addLine(list: PlaceList, line: string): void {
  if (line === '') return;
  const under = below.exec(line);
  if (under) return under[2] === ':' ? addHit(list, list.heading, Number(under[1])) : void list.context++;
  const numbered = numberedHit.exec(line);
  if (numbered && isPath(numbered[1]!)) return addHit(list, numbered[1]!, Number(numbered[2]));
  if (numberedContext.test(line)) return void list.context++;
  if (note.test(line)) return;
  const [, name] = longListing.exec(line) ?? [];
  if (name !== undefined) return /^\.\.?$/.test(name) ? undefined : addNamed(list, name);
  const [, alone] = heading.exec(list.isNames ? line.replace(/^[│├└─\s]+/, '') : line) ?? [];
  if (alone !== undefined && (list.isNames || isPath(alone))) {
    addNamed(list, alone);
    list.heading = alone;
    list.isOpen = true;
    return;
  }
  const [, path] = hit.exec(line) ?? [];
  if (path !== undefined && isPath(path)) addHit(list, path);
  else list.others++;
}

/** True for a word that has a folder or an extension. */
function isPath(word: string): boolean {
  return /\p{L}/u.test(word) && /[\\/]|\.\w{1,12}$/.test(word);
}

function addHit(list: PlaceList, path: string, line?: number): void {
  list.hits++;
  if (list.isOpen && path === list.heading) list.named--;
  list.isOpen = false;
  const places = remember(list, path);
  if (!places) return;
  places.hits++;
  if (line !== undefined && places.lines.length < maxLinesOfPath) places.lines.push(line);
}

function addNamed(list: PlaceList, path: string): void {
  list.named++;
  remember(list, path);
}

function remember({ byPath, more }: PlaceList, path: string): PlacesFound | undefined {
  const known = byPath.get(path);
  if (known) return known;
  if (byPath.size >= maxPaths) return void more.add(path);
  const none: PlacesFound = { lines: [], hits: 0 };
  byPath.set(path, none);
  return none;
}

/** The approximate tokens of the places that a stub names. */
const maxTokens = 50;

function spellPlaces({ byPath, more, hits, named, context, isNames }: PlaceList, within: string): string {
  const files = byPath.size + more.size;
  const folder = folderOf([...byPath.keys()], within);
  const places = [...byPath].map(([path, one]) => ({ ...one, path: path.slice(folder.length) }));
  // All lines of all paths, or else a few of each, or else the first paths.
  const max = [maxLinesOfPath, 8, 3].find((lines) => tokensOf(places, lines) <= maxTokens) ?? 1;
  const best = fittingPlaces(places, max);
  const shown = best.reduce((sum, { lines, hits: own }) => sum + (lines.length || Math.max(1, own)), 0);
  const around = context > hits * 10 ? ` with ${countOf(context, 'line')} around` : '';
  const of = folder === '' || folder === `${within}/` ? '' : ` of ${folder.replace(/(?<=.)\/$/, '')}`;
  const isOne = files === 1;
  const what =
    hits > 0
      ? `${countOf(hits, 'hit')}${isOne ? '' : ` in ${countOf(files, 'file')}`}`
      : countOf(named, isNames ? 'name' : 'file');
  const left = Math.max(0, (hits > 0 ? hits : named) - shown);
  const rest = left === 0 ? '' : `; ${hits > 0 ? countOf(left, 'hit') : left} left out`;
  const list = best.map(spellPlace).join(hits > 0 ? '; ' : ', ');
  return `${what}${around}${of}: ${list}${rest}`;
}

type PlacesOfPath = { readonly path: string; readonly lines: readonly number[]; readonly hits: number };

/** Estimates the tokens of places with at most so many lines each. */
function tokensOf(places: readonly PlacesOfPath[], max: number): number {
  return places.reduce(
    (sum, { path, lines }) => sum + path.length / 4 + 2 + Math.min(max, lines.length) * 2,
    0,
  );
}

/** Returns the first places that fit, with at most so many lines each; of a single one, as many lines as fit. */
function fittingPlaces(places: readonly PlacesOfPath[], max: number): readonly PlacesOfPath[] {
  const lines = places.length === 1 ? 20 : max;
  const some = places.map((place) => ({ ...place, lines: place.lines.slice(0, lines) }));
  let end = 1;
  while (end < some.length && tokensOf(some.slice(0, end + 1), max) <= maxTokens) end++;
  return some.slice(0, end);
}

function spellPlace({ path, lines }: PlacesOfPath): string {
  if (path === '') return `lines ${lines.join(',')}`;
  return lines.length === 0 ? path : `${path}:${lines.join(',')}`;
}

/** Returns the folder that all paths share, with a slash at its end; empty if there is none. */
function folderOf(paths: readonly string[], within: string): string {
  const [first = '', ...others] = paths;
  let folder = first.slice(0, first.lastIndexOf('/') + 1);
  while (folder !== '' && !others.every((path) => path.startsWith(folder)))
    folder = folder.slice(0, folder.slice(0, -1).lastIndexOf('/') + 1);
  const own = `${within}/`;
  if (within !== '' && folder.startsWith(own)) return own;
  return others.length === 0 || folder.length < 4 ? '' : folder;
}

/** Returns the last segment of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Compares paths, of which one may be relative to a folder that the other names. */
export function isSamePath(one: string, other: string): boolean {
  if (one === '' || other === '') return true;
  const [short, long] = [one, other]
    .map((path) => `/${path.replace(/^(?:\.?\/)+/, '')}`)
    .toSorted((a, b) => a.length - b.length);
  return long!.endsWith(short!);
}
