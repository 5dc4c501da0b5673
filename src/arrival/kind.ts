/**
 * Defines the interface of a kind of tool result, and guards that recognize texts which must not change. A kind takes the text of one tool result
 * and returns a smaller one. All kinds are pure, synchronous, linear in the length of the text, and deterministic across processes.
 */

import type { Steps } from '../conversation/steps.ts';

/** The kinds of tool results. */
export type Kind =
  /** Files with line numbers, as `cat -n` and agents' file readers print them. */
  | 'numbered-lines'
  /** The output of `grep -n` and `rg`. */
  | 'search'
  | 'json'
  /** Listings, logs and test runs: lines with a common beginning, or repeated lines. */
  | 'lines'
  | 'html'
  /** Text with escape sequences, carriage returns or backspaces. */
  | 'terminal'
  /** Text with base64 in it. */
  | 'blob';

export type ShrinkOptions = {
  /** If true, every value, line and number stays readable in the result. */
  readonly lossless: boolean;
  /** Counts tokens. Without it, sizes are compared in UTF-16 units. */
  readonly count?: ((text: string) => number) | undefined;
  /** Counts the same as `count`, in steps. */
  readonly countInSteps?: ((text: string) => Steps<number>) | undefined;
  /** True for the text of a file that may be edited: its lines do not change, only padding before line numbers is removed. */
  readonly mayBeEdited?: boolean | undefined;
  /** Selects the line numbers of a file listing that stay. Every fifth saves twice as much, but the model must count up to four lines. */
  readonly lineNumbers?: 'every' | 'every-fifth' | undefined;
  /** Kinds that are not changed. Default: none. */
  readonly without?: readonly Kind[] | undefined;
};

/** A text that was made smaller. */
export type Shrunk = {
  readonly text: string;
  readonly kind: Kind;
  /** True if the original can be restored from `text`, except for insignificant white space. */
  readonly isLossless: boolean;
  /** The steps taken, one clause each. */
  readonly notes: readonly string[];
};

/** A smaller version of a text. The caller decides whether it is small enough to be used. */
export type ShrinkDraft = { readonly text: string; readonly isLossless: boolean; readonly note: string };

/** A text that was recognized as a kind, with its smaller versions. */
export type RecognizedKind = {
  readonly kind: Kind;
  /** Returns smaller versions: none if there is nothing to shrink, several if only a count can tell which is smallest. */
  readonly drafts: (options: ShrinkOptions) => readonly ShrinkDraft[];
};

/** Recognizes texts of one kind; returns undefined for other texts. */
export type Reader = (text: string) => RecognizedKind | undefined;

/** True if a lossy draft of the text is allowed at all. The kind checks for code itself, since JSON looks like code. */
export function mayLose(text: string): boolean {
  return !reportsFailure(text) && !isChange(text) && !isDocument(text);
}

/** Maximum UTF-16 units that are searched for a stack trace. In longer texts, which fit few models, only both ends are searched. */
const maxSearched = 1_000_000;

/** True for a text with a stack trace anywhere, or with a nonzero exit code or an error message at its start or end. */
export function reportsFailure(text: string): boolean {
  const edges = [text.slice(0, 600), text.slice(-600)];
  const searched =
    text.length > maxSearched ? [text.slice(0, maxSearched / 2), text.slice(-maxSearched / 2)] : [text];
  return (
    searched.some(tracesIn) ||
    edges.some((edge) => failureWord.test(edge) && (exitCode.test(edge) || message.test(edge)))
  );
}

/**
 * Returns a test that is true for a text in which the expression matches at the beginning of a line. `first` are the characters with which
 * such a match begins. The test reads other lines no further, so it takes a fraction of the time that the expression takes for a text.
 */
export function atLineStart(first: string, expression: RegExp): (text: string) => boolean {
  const isFirst = new Uint8Array(128);
  for (const character of first) isFirst[character.charCodeAt(0)] = 1;
  const everywhere = new RegExp(`^(?:${expression.source})`, 'm');
  const here = new RegExp(expression.source, 'my');
  return (text) => {
    // To an expression, these end a line too.
    if (text.includes('\r') || text.includes('\u2028') || text.includes('\u2029'))
      return everywhere.test(text);
    for (let start = 0; ; ) {
      const code = text.charCodeAt(start);
      if (code < 128 && isFirst[code] === 1) {
        here.lastIndex = start;
        if (here.test(text)) return true;
      }
      const newline = text.indexOf('\n', start);
      if (newline < 0) return false;
      start = newline + 1;
    }
  };
}

const tracesIn = atLineStart(
  'TpgCt \t',
  /Traceback \(most recent call last\)|panic: |goroutine \d+ \[|[ \t]+at [^\n]{0,300}:\d+(?::\d+)?\)?$|[ \t]+at [\w.$<>]{1,200}\([\w.: ]{1,100}\)$|Caused by: |thread '[^'\n]{0,80}' panicked| +File "[^"\n]{0,300}", line \d/,
);

/** Matches every text that `exitCode` or `message` matches, and is faster. */
const failureWord = /exit|fatal|error|fail|exception|unhandled|uncaught|panic|abort|npm ERR/i;

const exitCode = /\bexit(?:ed with)?(?: status| code)?:? ?(?:code |status )?[1-9]\d{0,2}\b/i;

const message =
  /^\W{0,3}(?:[\w.-]{1,60}: ){0,3}\W{0,3}(?:fatal|error|failed|failure|exception|unhandled|uncaught|panic|abort(?:ed)?)\b|\b[A-Z]\w{0,60}(?:Error|Exception): |<error>|^(?:--- )?FAIL\b|^npm ERR!/im;

/** True for patches and diffs, which are applied, quoted and reviewed line by line. */
export const isChange = atLineStart(
  'd@I*',
  /diff --(?:git|cc|combined) |@@ -\d+(?:,\d+)? \+\d+|Index: \S|\*\*\* (?:Begin|End) Patch/,
);

/** True for documents that may contain instructions: Markdown with headings or fences, front matter, or tags that agents use. */
export function isDocument(text: string): boolean {
  const beginning = text.slice(0, 20_000);
  const headings = beginning.includes('# ') ? (beginning.match(/^#{1,6} \S/gm)?.length ?? 0) : 0;
  return headings >= 2 || /^---\n[\w-]+:/.test(text) || hasFence(text) || text.includes('<system');
}

const hasFence = atLineStart(' `~', / {0,3}(?:```|~~~)/);
