/** Rules on the shape of files: small, most of them much smaller, and named the way imports expect. */
import type { SourceFile } from './source-file.ts';

const longest = 400;
const median = 180;

export function lengthProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter((file) => linesOf(file) > longest)
    .map((file) => `${file.path} has ${linesOf(file)} lines, more than ${longest}: it wants to be files`);
}

export function medianProblems(files: readonly SourceFile[]): readonly string[] {
  const middle = files.map(linesOf).toSorted((a, b) => a - b)[Math.floor(files.length / 2)] ?? 0;
  return middle > median ? [`the median file has ${middle} lines, more than ${median}`] : [];
}

export function nameProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ path }) => !/\/[a-z0-9]+(-[a-z0-9]+)*((\.laws)?\.test)?\.ts$/.test(path))
    .map(({ path }) => `${path} is not in kebab-case`);
}

function linesOf({ text }: SourceFile): number {
  return text.trimEnd().split('\n').length;
}
