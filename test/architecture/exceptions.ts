/** Exceptions to the wording rules, with reasons. The lists are short on purpose: a longer one means that the rule is wrong. */
import type { Exception } from './source-file.ts';

/** Provider names that are allowed in shared code. */
export const namedOnPurpose: readonly Exception[] = [
  { path: 'src/engine/in-view.ts', text: 'CLAUDE|GEMINI', reason: 'names of files with rules' },
  { path: 'src/engine/in-view.ts', text: 'windsurf|claude', reason: 'names of folders with rules' },
];

/** Allowed texts that look like a path or host of one machine. */
export const machineLike: readonly Exception[] = [];
