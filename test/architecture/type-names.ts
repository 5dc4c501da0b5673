/** Checks that each type name is declared once in src, exported or not: a reader who knows `Found` from one file should not meet another. */
import type { SourceFile } from './source-file.ts';

const declaration = /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class) ([A-Z]\w*)/gm;

/**
 * Returns the names that several files declare, apart from those on the list, and the names on the list that are unique by now. The list
 * must only get shorter.
 */
export function typeNameProblems(
  files: readonly SourceFile[],
  stillDuplicate: readonly string[],
): readonly string[] {
  const places = new Map<string, Set<string>>();
  for (const { path, text } of files)
    for (const [, name = ''] of text.matchAll(declaration))
      places.set(name, (places.get(name) ?? new Set()).add(path));
  const duplicates = [...places].filter(([, paths]) => paths.size > 1);
  const known = new Set(stillDuplicate);
  const isDuplicate = new Set(duplicates.map(([name]) => name));
  return [
    ...duplicates
      .filter(([name]) => !known.has(name))
      .map(
        ([name, paths]) =>
          `${name} is declared in ${[...paths].join(' and ')}: name each type after its subject`,
      ),
    ...stillDuplicate
      .filter((name) => !isDuplicate.has(name))
      .map((name) => `${name} is unique now: take it off the list`),
  ];
}
