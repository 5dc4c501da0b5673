/**
 * Finds files and names that a query may be about, so that the model can ask for them as they are spelled: a model that wants to read a file needs its
 * path, and one that searches for a function needs its name. A fold may have taken the text that had them. Pure.
 */
import type { Steps } from '../conversation/steps.ts';
import { lastName, maxQuery, pathIn, piecesOf, word } from './rank.ts';
import type { Searched } from './whole-matches.ts';

const maxFiles = 8;
const maxNames = 8;
/** Names that are found, because an answer has some of them already. */
const maxNamesFound = 24;

/** Characters of a path, paths that are read in one step, and files of one name that a shorter path is compared with. */
const maxPath = 200;
const pathsPerStep = 500;
const maxCompared = 50;

/** Says whether the model sees a text. */
type IsShown = ((text: string) => boolean) | undefined;

/**
 * Finds files and names that the model does not see. Returns a function that spells them as lines of an answer, without names that are in the answer
 * already; an empty text if there are none.
 */
export function* mentionsFor(
  sources: readonly Searched[],
  query: string,
  isShown: IsShown,
): Steps<(answer: string) => string> {
  const asked = query.slice(0, maxQuery);
  const words = new Set(piecesIn(asked));
  const namesFile = asked.split(/\s+/).some((chunk) => isFile(pathIn(chunk) ?? ''));
  const files = namesFile ? [] : yield* filesFor(sources, words, isShown);
  const line = files.length === 0 ? '' : `[Files not in view: ${files.join('; ')}]\n`;
  const found = yield* namesFor(sources, asked, words, isShown);
  return (answer) => {
    const names = found.filter((name) => !answer.includes(name) && !line.includes(name)).slice(0, maxNames);
    return names.length === 0 ? line : `${line}[Names not in view: ${names.join(', ')}]\n`;
  };
}

// Files

/** True for a path that a call may name: `src/app.ts` or `cmd/shop/api`, but not `feature/login`, which is rather a branch. */
function isFile(path: string): boolean {
  return path.split('/').length > 2 || /\.[A-Za-z]\w{0,4}$/.test(path);
}

/** Returns paths: first those whose names share the rarest words with the query, the newest and most frequent of them. */
function* filesFor(
  sources: readonly Searched[],
  words: ReadonlySet<string>,
  isShown: IsShown,
): Steps<readonly string[]> {
  const files = (yield* filesIn(sources)).map(({ path, count, last }) => {
    const pieces = piecesIn(lastName(path)).filter((piece) => words.has(piece));
    return { path, pieces, score: last + Math.log(count) / 2 };
  });
  const holding = new Map<string, number>();
  for (const piece of files.flatMap(({ pieces }) => pieces))
    holding.set(piece, (holding.get(piece) ?? 0) + 1);
  for (const file of files)
    for (const piece of file.pieces) file.score += Math.log(1 + files.length / holding.get(piece)!);
  yield;
  const scored = files.map(({ path, score }) => ({ text: path, score }));
  return bestOf(scored, maxFiles, (path) => !isShown?.(path));
}

type File = { readonly path: string; count: number; last: number };

/** Returns the paths in texts: how often each occurs, and how late, from 0 to 1. One that is the end of a longer one counts as that. */
function* filesIn(sources: readonly Searched[]): Steps<readonly File[]> {
  const files = new Map<string, File>();
  let all = 0;
  for (const { text, within } of sources.toSorted((one, other) => one.order - other.order))
    for (let at = text.indexOf('/', within.start); at >= 0 && at < within.end; all++) {
      if (all % pathsPerStep === 0) yield;
      let start = at;
      while (at - start < maxPath && /[\w.~@+-]/.test(text[start - 1] ?? '')) start--;
      // The letter of an escape is no part of a name.
      if (text[start - 1] === '\\' && start < at) start++;
      const [run] = /^[\w./~@+-]*/.exec(text.slice(start, start + maxPath))!;
      // Searches put the number of a line behind the path of a line beside a match: `src/app.ts-12-`.
      const path = /^(.*?\.[A-Za-z]\w{0,4})-\d+-/.exec(run)?.[1] ?? run;
      if (/\/[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,4}$/.test(path) && !path.includes('//'))
        files.set(path, { path, count: (files.get(path)?.count ?? 0) + 1, last: all });
      at = text.indexOf('/', start + Math.max(run.length, at + 1 - start));
    }
  const longest = [...files.values()].sort((one, other) => other.path.length - one.path.length);
  const whole = new Map<string, File[]>();
  for (const file of longest) {
    file.last /= all;
    const name = lastName(file.path);
    const named = whole.get(name) ?? [];
    whole.set(name, named);
    const same = named.slice(0, maxCompared).find(({ path }) => path.endsWith(`/${file.path}`));
    if (same === undefined) named.push(file);
    else [same.count, same.last] = [same.count + file.count, Math.max(same.last, file.last)];
  }
  return [...whole.values()].flat();
}

// Names

/** Matches names with a sign of their own, of 6 to 61 characters: `readFile`, `max_size`, `sha256`. */
const ownName = /(?<![A-Za-z])(?=\w{0,60}(?:[a-z][A-Z]|_[A-Za-z]|\d))[A-Za-z]\w{5,60}/g;

/** Names that are read, or compared, in one step. */
const namesPerStep = 1_000;

/**
 * Returns names that share words with the query and are not in it: first those whose shared words are rare among names and most of the name, then the
 * newest and most frequent.
 */
function* namesFor(
  sources: readonly Searched[],
  asked: string,
  words: ReadonlySet<string>,
  isShown: IsShown,
): Steps<readonly string[]> {
  const uses = new Map<string, { count: number; last: number }>();
  let all = 0;
  for (const { text, within } of sources.toSorted((one, other) => one.order - other.order)) {
    ownName.lastIndex = 0;
    for (const [name] of text.slice(within.start, within.end).matchAll(ownName)) {
      if (all++ % namesPerStep === 0) yield;
      const use = uses.get(name) ?? { count: 0, last: 0 };
      uses.set(name, { count: use.count + 1, last: all });
    }
  }
  const holding = new Map<string, number>();
  const names: {
    readonly name: string;
    readonly pieces: readonly string[];
    readonly shared: readonly string[];
  }[] = [];
  for (const name of uses.keys()) {
    if (names.length % namesPerStep === 0) yield;
    const pieces = piecesIn(name);
    for (const piece of pieces) holding.set(piece, (holding.get(piece) ?? 0) + 1);
    names.push({ name, pieces, shared: pieces.filter((piece) => words.has(piece)) });
  }
  yield;
  const scored = names.flatMap(({ name, pieces, shared }) => {
    if (shared.length === 0) return [];
    const { count, last } = uses.get(name)!;
    const rarity = shared.reduce((sum, piece) => sum + Math.log(1 + names.length / holding.get(piece)!), 0);
    return [{ text: name, score: rarity / Math.sqrt(pieces.length) + last / all / 2 + Math.log(count) / 4 }];
  });
  return bestOf(scored, maxNamesFound, (name) => !asked.includes(name) && !isShown?.(name));
}

/** Returns the texts with the highest scores that are wanted, `max` at most. Only as many are asked about as are needed. */
function bestOf(
  scored: readonly { readonly text: string; readonly score: number }[],
  max: number,
  isWanted: (text: string) => boolean,
): readonly string[] {
  const found: string[] = [];
  for (const { text } of scored.toSorted((one, other) => other.score - one.score)) {
    if (found.length === max) break;
    if (isWanted(text)) found.push(text);
  }
  return found;
}

function piecesIn(text: string): readonly string[] {
  return [...new Set((text.match(word) ?? []).flatMap(piecesOf))];
}
