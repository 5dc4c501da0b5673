/**
 * The words of this room. A shrinker takes the text of one tool result and gives a smaller one; all are pure, synchronous, linear in the
 * length of the text, and give the same output for the same input in every process.
 */

export type Kind =
  /** What `cat -n` prints, and what agents' own file readers print. */
  | 'numbered-lines'
  /** What `grep -n` and `rg` print. */
  | 'search'
  | 'json'
  /** Listings, logs, test runs: lines that begin alike or repeat. */
  | 'lines'
  | 'html'
  /** Text with escape sequences, carriage returns or backspaces. */
  | 'terminal'
  /** Text with base64 in it. */
  | 'blob';

export type ShrinkOptions = {
  /** True allows only what leaves every value, line and number readable in the result. */
  readonly lossless: boolean;
  /** Counts tokens. Without it, sizes are compared in characters. */
  readonly count?: ((text: string) => number) | undefined;
  /** True for the text of a file that may be edited: its lines stay as they are, only padding before line numbers goes. */
  readonly mayBeEdited?: boolean | undefined;
  /** Which line numbers of a file listing stay. Every fifth saves twice as much, and leaves the model to count up to four lines. */
  readonly lineNumbers?: 'every' | 'every-fifth' | undefined;
  /** Kinds that stay as they are. Default: none. */
  readonly without?: readonly Kind[] | undefined;
};

export type Shrunk = {
  readonly text: string;
  readonly kind: Kind;
  /** True where the original can be had back from `text`, up to white space without meaning. */
  readonly isLossless: boolean;
  /** What was done, a clause each. */
  readonly notes: readonly string[];
};

/** What one shrinker made of a text. Whether it is small enough to be used is not its business. */
export type Draft = { readonly text: string; readonly isLossless: boolean; readonly note: string };

/** A shrinker has recognised a text as its kind. */
export type Claim = {
  readonly kind: Kind;
  /** Undefined where there is nothing to shrink. Several candidates where only a count can tell which is smallest. */
  readonly drafts: (options: ShrinkOptions) => readonly Draft[];
};

/** Recognises a text of its kind; undefined for every other text. */
export type Reader = (text: string) => Claim | undefined;
