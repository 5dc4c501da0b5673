/** Rules for files: a maximum of lines, a maximum for the median, and kebab-case names. */
import type { SourceFile } from './source-file.ts';

const maxLines = 400;
const maxMedianLines = 200;

export function lengthProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter((file) => linesOf(file) > maxLines)
    .map((file) => `${file.path} has ${linesOf(file)} lines, more than ${maxLines}: split it`);
}

export function medianProblems(files: readonly SourceFile[]): readonly string[] {
  const median = files.map(linesOf).toSorted((a, b) => a - b)[Math.floor(files.length / 2)] ?? 0;
  return median > maxMedianLines ? [`the median file has ${median} lines, more than ${maxMedianLines}`] : [];
}

export function nameProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ path }) => !/\/[a-z0-9]+(-[a-z0-9]+)*((\.laws)?\.test)?\.ts$/.test(path))
    .map(({ path }) => `${path} is not in kebab-case`);
}

function linesOf({ text }: SourceFile): number {
  return text.trimEnd().split('\n').length;
}
