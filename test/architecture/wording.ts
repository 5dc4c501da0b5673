/**
 * Rules on what a file may say: no provider by name in shared code, no path of somebody's machine, no registry's host,
 * and a first comment that tells what the file is.
 */
import type { Exception, SourceFile } from './source-file.ts';

const providerName = /openai|anthropic|gemini|google|claude|gpt|codex/gi;

/** Where providers are what the file is about. */
const providerFiles =
  /^src\/(codecs\/[^/]+\/|cli\/|gateway\/routing\/(?:provider-of|routes)\.ts$|tokens\/models\.ts$|receipts\/prices\.ts$|strategies\/lib\/no-such-tool\.ts$)|\.test\.ts$/;

export function providerProblems(
  files: readonly SourceFile[],
  exceptions: readonly Exception[],
): readonly string[] {
  const shared = files.filter((file) => !providerFiles.test(file.path));
  return [
    ...shared.flatMap((file) => {
      const found = linesWith(withoutExceptions(file, exceptions), providerName);
      return found.map(
        ({ line, match }) => `${file.path}:${line} says "${match}": shared code names no provider`,
      );
    }),
    ...staleProblems(files, exceptions),
  ];
}

/** An exception that no longer applies is taken off the list. */
function staleProblems(files: readonly SourceFile[], exceptions: readonly Exception[]): readonly string[] {
  return exceptions
    .filter(({ path, text }) => !files.some((file) => file.path === path && file.text.includes(text)))
    .map(({ path, text }) => `${path} no longer says "${text}": take the exception off the list`);
}

export function headerProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ text }) => !/^(#!.*\n)?\/\*\*\s[^]*?\w[^]*?\*\//.test(text))
    .map(({ path }) => `${path} does not open with a comment that says what it is`);
}

// Put together from pieces, so that this file keeps the rule it holds.
const machineFolders = ['work', 'tmp', 'root', 'Users'].join('|');
const machinePath = new RegExp(`(?<![\\w.*@)}-])/(?:${machineFolders})/|\\b[A-Z]:\\\\Users\\\\`, 'g');
const registryHost = /\b(?:registry|npm|artifactory|nexus)\.[\w.-]+\.\w+(?=[/:])|"resolved"[:]/g;

export function machineProblems(
  files: readonly SourceFile[],
  exceptions: readonly Exception[],
): readonly string[] {
  return [
    ...files.flatMap((file) => {
      const told = withoutExceptions(file, exceptions);
      return [
        ...linesWith(told, machinePath).map(
          ({ line, match }) => `${file.path}:${line} has the machine path ${match}`,
        ),
        ...linesWith(told, registryHost).map(
          ({ line, match }) => `${file.path}:${line} names a registry: ${match}`,
        ),
      ];
    }),
    ...staleProblems(files, exceptions),
  ];
}

/** The text with what is excepted blanked out, line numbers kept. */
function withoutExceptions(file: SourceFile, exceptions: readonly Exception[]): string {
  return exceptions
    .filter(({ path }) => path === file.path)
    .reduce((told, { text }) => told.replaceAll(text, ''), file.text);
}

function linesWith(text: string, pattern: RegExp): readonly { line: number; match: string }[] {
  return text
    .split('\n')
    .flatMap((content, index) =>
      [...content.matchAll(pattern)].map(([match]) => ({ line: index + 1, match })),
    );
}
