/**
 * Wording rules: shared code names no provider, no file contains a path of one machine or a registry's host, each file begins with a
 * comment that describes it, and comments are plain English: sentences with a subject and a verb, in words that others use.
 */
import type { Exception, SourceFile } from './source-file.ts';

const providerName = /openai|anthropic|gemini|google|claude|gpt|codex/gi;

/** Files that may name providers because they are about them. */
const providerFiles =
  /^src\/(codecs\/[^/]+\/|adapters\/|cli\/|library\/formats\.ts$|gateway\/routing\/(?:tenant|routes|named-model)\.ts$|tokens\/models\.ts$|receipts\/prices\.ts$|strategies\/lib\/no-such-tool\.ts$)|\.test\.ts$/;

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

/** Matches how the comment of a function begins: with a verb, or with the values that it returns. */
const beginsWithVerb = /^(?:[A-Z][A-Za-z-]*s\b|True\b|False\b|Undefined\b)/;

/** Reports exported functions whose comment does not begin with a verb: a reader who looks one up wants to know what it does. */
export function functionProblems(files: readonly SourceFile[]): readonly string[] {
  const documented = /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*\nexport (?:async )?function\*? (\w+)/g;
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(documented)].flatMap(([, comment = '', name]) => {
      const said = comment.replaceAll(/\s*\n\s*\* ?/g, ' ').trim();
      if (beginsWithVerb.test(said)) return [];
      return [`${path}: the comment of ${name} begins with "${said.split(' ')[0]}", not with a verb`];
    }),
  );
}

/** Words that only this project used, or that English has no longer, with those to write instead. */
const plainWords: Readonly<Record<string, string>> = {
  anew: 'again',
  ghost: 'hidden recall',
  'goes on from': 'continues',
  'had back': 'restored',
  'in vain': 'without success',
  ledger: 'fold store',
  reckoning: 'estimate',
  reckons: 'estimates',
  vault: 'encrypted store',
  workshop: 'engine state',
};

/** Reports comments with a word of our own in place of one that readers know. */
export function wordProblems(files: readonly SourceFile[]): readonly string[] {
  const word = new RegExp(`\\b(?:${Object.keys(plainWords).join('|')})\\b`, 'i');
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => {
      const [, comment = ''] =
        /^\s*\/?\*+(.*)$|(?:^|\s)\/\/(.*)$/.exec(line)?.filter((part) => part !== undefined) ?? [];
      const found = word.exec(comment)?.[0].toLowerCase();
      return found === undefined
        ? []
        : [`${path}:${index + 1} says "${found}": write "${plainWords[found]}"`];
    }),
  );
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
