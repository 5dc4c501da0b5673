/** Checks that each type name is declared once in src, exported or not, so that a name means the same in every file. */
import type { SourceFile } from './source-file.ts';

const declaration = /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class) ([A-Z]\w*)/gm;

/** Returns the names that several files declare. */
export function typeNameProblems(files: readonly SourceFile[]): readonly string[] {
  const places = new Map<string, Set<string>>();
  for (const { path, text } of files)
    for (const [, name = ''] of text.matchAll(declaration))
      places.set(name, (places.get(name) ?? new Set()).add(path));
  return [...places]
    .filter(([, paths]) => paths.size > 1)
    .map(
      ([name, paths]) =>
        `${name} is declared in ${[...paths].join(' and ')}: name each type after its subject`,
    );
}
