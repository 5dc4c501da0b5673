/** Reads the documents for users and the code blocks in them. */
import { globSync, readFileSync } from 'node:fs';

/** `path` is relative to the repository. */
export type Document = { readonly path: string; readonly text: string };

/** A fenced block of code. `line` is the line of its fence, from 1. */
export type CodeBlock = { readonly path: string; readonly line: number; readonly code: string };

/** Returns the README, the guide for contributors, the changes, the policies and the pages of docs/, without the decisions: these are a record. */
export function documents(): readonly Document[] {
  const others = globSync(['.github/**/*.md', 'docs/*.md']).toSorted();
  return ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...others].map((path) => ({
    path,
    text: readFileSync(path, 'utf8'),
  }));
}

export function codeBlocks(language: string): readonly CodeBlock[] {
  const fenced = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms');
  return documents().flatMap(({ path, text }) =>
    [...text.matchAll(fenced)].map((match) => ({
      path,
      line: text.slice(0, match.index).split('\n').length,
      code: match[1]!,
    })),
  );
}
