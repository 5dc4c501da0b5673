/**
 * Wording rules: shared code names no provider, no file contains a path of one machine or a registry's host, and each file
 * begins with a comment that describes it.
 */
import type { Exception, SourceFile } from './source-file.ts';

const providerName = /openai|anthropic|gemini|google|claude|gpt|codex/gi;

/** Files that may name providers because they are about them. */
const providerFiles =
  /^src\/(codecs\/[^/]+\/|adapters\/|cli\/|library\/request-body\.ts$|gateway\/routing\/(?:tenant|routes)\.ts$|tokens\/models\.ts$|receipts\/prices\.ts$|strategies\/lib\/no-such-tool\.ts$)|\.test\.ts$/;

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

/** Reports exceptions that no longer apply. */
function staleProblems(files: readonly SourceFile[], exceptions: readonly Exception[]): readonly string[] {
  return exceptions
    .filter(({ path, text }) => !files.some((file) => file.path === path && file.text.includes(text)))
    .map(({ path, text }) => `${path} no longer says "${text}": take the exception off the list`);
}

export function headerProblems(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ text }) => !/^(#!.*\n)?\/\*\*\s[^]*?\w[^]*?\*\//.test(text))
    .map(({ path }) => `${path} does not begin with a comment that describes it`);
}

/** Matches the beginning of a relative clause that stands as a sentence, at the start of a comment or after another sentence. */
const relativeClause = /^(?:What|Where|Whoever|Of)\b|[.!] (?:What|Where|Whoever|Of) [a-z]/;

/** Reports comments with a sentence that begins with a relative clause: a sentence begins with its subject. */
export function clauseProblems(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap(({ path, text }) => {
    const lines = text.split('\n');
    return lines.flatMap((line, index) => {
      const [, mark, said = ''] = /^\s*(\/\*\*|\/\/|\*(?!\/))\s*(.*)$/.exec(line) ?? [];
      const before = lines[index - 1]?.trim() ?? '';
      const begins = mark === '/**' || before === '/**' || (mark === '//' && !before.startsWith('//'));
      const found = relativeClause.exec(said);
      const isClause = found && (found.index > 0 || begins);
      return isClause
        ? [`${path}:${index + 1} begins a sentence with "${found[0].replace(/^[.!] /, '')}"`]
        : [];
    });
  });
}

// The pattern is joined from parts so that this file does not violate its own rule.
const machineFolders = ['work', 'tmp', 'root', 'Users'].join('|');
const machinePath = new RegExp(`(?<![\\w.*@)}-])/(?:${machineFolders})/|\\b[A-Z]:\\\\Users\\\\`, 'g');
const registryHost = /\b(?:registry|npm|artifactory|nexus)\.[\w.-]+\.\w+(?=[/:])|"resolved"[:]/g;

export function machineProblems(
  files: readonly SourceFile[],
  exceptions: readonly Exception[],
): readonly string[] {
  return [
    ...files.flatMap((file) => {
      const text = withoutExceptions(file, exceptions);
      return [
        ...linesWith(text, machinePath).map(
          ({ line, match }) => `${file.path}:${line} has the machine path ${match}`,
        ),
        ...linesWith(text, registryHost).map(
          ({ line, match }) => `${file.path}:${line} names a registry: ${match}`,
        ),
      ];
    }),
    ...staleProblems(files, exceptions),
  ];
}

/** Returns the text without the excepted texts; line numbers stay the same. */
function withoutExceptions(file: SourceFile, exceptions: readonly Exception[]): string {
  return exceptions
    .filter(({ path }) => path === file.path)
    .reduce((rest, { text }) => rest.replaceAll(text, ''), file.text);
}

function linesWith(text: string, pattern: RegExp): readonly { line: number; match: string }[] {
  return text
    .split('\n')
    .flatMap((content, index) =>
      [...content.matchAll(pattern)].map(([match]) => ({ line: index + 1, match })),
    );
}
