/**
 * Rules for files: a maximum of lines, a maximum for the median, a maximum of files in a folder, no small file that only one file imports, and
 * kebab-case names.
 */
import { dirname } from 'node:path/posix';
import { lateImportsOf, staticImportsOf } from './imports.ts';
import type { SourceFile } from './source-file.ts';

const maxLines = 400;
const maxMedianLines = 200;
const maxFilesInFolder = 15;
/** A file with fewer lines than this belongs in its importer if it has only one. */
const minLinesAlone = 80;

export function lengthProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter((file) => linesOf(file) > maxLines)
    .map((file) => `${file.path} has ${linesOf(file)} lines, more than ${maxLines}: split it`);
}

export function medianProblems(files: readonly SourceFile[]): readonly string[] {
  const median = files.map(linesOf).toSorted((a, b) => a - b)[Math.floor(files.length / 2)] ?? 0;
  return median > maxMedianLines ? [`the median file has ${median} lines, more than ${maxMedianLines}`] : [];
}

export function folderProblems(files: readonly SourceFile[]): readonly string[] {
  const folders = Map.groupBy(files, ({ path }) => dirname(path));
  return [...folders]
    .filter(([, { length }]) => length > maxFilesInFolder)
    .map(([folder, { length }]) => `${folder} has ${length} files, more than ${maxFilesInFolder}: divide it`);
}

/** The files that list the parts of a kind, and the folder of these parts. A part is in a file of its own, so that one more changes no other. */
const listsOfParts: Readonly<Record<string, string>> = {
  'src/strategies/by-name.ts': 'src/strategies',
  'src/triggers/default-triggers.ts': 'src/triggers',
  'src/cli/open-store.ts': 'src/store',
};

/** A file that is loaded with `import()` may be small, because its importers are meant to start without it. So may a part that a list imports. */
export function smallFileProblems(files: readonly SourceFile[]): readonly string[] {
  const late = new Set(files.flatMap(lateImportsOf));
  const imports = files.map((file) => ({ path: file.path, targets: staticImportsOf(file) }));
  return files.flatMap((file) => {
    if (linesOf(file) >= minLinesAlone || late.has(file.path)) return [];
    const importers = imports.filter(({ targets }) => targets.includes(file.path));
    const [only] = importers;
    if (only === undefined || importers.length > 1) return [];
    if (listsOfParts[only.path] === dirname(file.path)) return [];
    return [`${file.path} has ${linesOf(file)} lines and one importer, ${only.path}: merge them`];
  });
}

export function nameProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ path }) => !/\/[a-z0-9]+(-[a-z0-9]+)*((\.laws)?\.test)?\.ts$/.test(path))
    .map(({ path }) => `${path} is not in kebab-case`);
}

function linesOf({ text }: SourceFile): number {
  return text.trimEnd().split('\n').length;
}
