/**
 * Finds files that a query without a path may be about: a model that wants to read a file needs its path, and a fold may have taken the listing that
 * named it. Pure.
 */
import type { Steps } from '../conversation/steps.ts';
import { lastName, maxQuery, pathIn, piecesOf, word } from './rank.ts';
import type { Searched } from './whole-matches.ts';

const maxFiles = 8;

/** Characters of a path, paths that are read in one step, and files of one name that a shorter path is compared with. */
const maxPath = 200;
const pathsPerStep = 500;
const maxCompared = 50;

/**
 * Returns paths of files that the model does not see: first those whose names share the rarest words with the query, the newest and most frequent of
 * them. None for a query that names a path itself.
 */
export function* filesFor(
  sources: readonly Searched[],
  query: string,
  isShown: ((text: string) => boolean) | undefined,
): Steps<readonly string[]> {
  const asked = query.slice(0, maxQuery);
  if (asked.split(/\s+/).some((chunk) => pathIn(chunk) !== undefined)) return [];
  const words = new Set(piecesIn(asked));
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
  const found: string[] = [];
  for (const { path } of files.sort((one, other) => other.score - one.score)) {
    if (found.length === maxFiles) break;
    if (!isShown?.(path)) found.push(path);
  }
  return found;
}

/** Spells files as a line of an answer; an empty text if there are none. */
export function filesLine(files: readonly string[]): string {
  return files.length === 0 ? '' : `[Files not in view: ${files.join('; ')}]\n`;
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
      const [path] = /^[\w./~@+-]*/.exec(text.slice(start, start + maxPath))!;
      if (/\/[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,4}$/.test(path) && !path.includes('//'))
        files.set(path, { path, count: (files.get(path)?.count ?? 0) + 1, last: all });
      at = text.indexOf('/', start + Math.max(path.length, at + 1 - start));
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

function piecesIn(text: string): readonly string[] {
  return [...new Set((text.match(word) ?? []).flatMap(piecesOf))];
}
