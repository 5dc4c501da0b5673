/**
 * A file as the rules see it, and the one place that reads files for them. The rules themselves are pure: files in,
 * problems out, each problem a sentence that names the file.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** `path` is relative to the repository, with forward slashes. */
export type SourceFile = { readonly path: string; readonly text: string };

/** A place where a rule does not hold, and why that is right. */
export type Exception = { readonly path: string; readonly text: string; readonly reason: string };

/** Every text file of the repository that is or could be committed, as it stands on disk. */
export function repositoryFiles(): readonly SourceFile[] {
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
  });
  return list
    .split('\0')
    .filter((path) => path !== '' && existsSync(path))
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
    .filter((file) => !file.text.includes('\0'));
}

/** The TypeScript files of src, tests left out unless asked for. */
export function sourceFiles(files: readonly SourceFile[], options?: { tests: true }): readonly SourceFile[] {
  return files.filter(
    ({ path }) => /^src\/.*\.ts$/.test(path) && (options?.tests === true || !path.endsWith('.test.ts')),
  );
}
