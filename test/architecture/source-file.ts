/**
 * Reads the files that the rules check. The rules are pure: they take files and return problems, each a sentence that names
 * the file.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** `path` is relative to the repository, with forward slashes. */
export type SourceFile = { readonly path: string; readonly text: string };

/** A text that a rule allows in one file, and the reason. */
export type Exception = { readonly path: string; readonly text: string; readonly reason: string };

/** Returns every text file that is or could be committed, with its content on disk. */
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

/** Returns the TypeScript files of src, without tests by default. */
export function sourceFiles(files: readonly SourceFile[], options?: { tests: true }): readonly SourceFile[] {
  return files.filter(
    ({ path }) => /^src\/.*\.ts$/.test(path) && (options?.tests === true || !path.endsWith('.test.ts')),
  );
}
