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
export type ShrinkDraft = { readonly text: string; readonly isLossless: boolean; readonly note: string };

/** A shrinker has recognised a text as its kind. */
export type RecognizedKind = {
  readonly kind: Kind;
  /** Undefined where there is nothing to shrink. Several candidates where only a count can tell which is smallest. */
  readonly drafts: (options: ShrinkOptions) => readonly ShrinkDraft[];
};

/** Recognises a text of its kind; undefined for every other text. */
export type Reader = (text: string) => RecognizedKind | undefined;

/** True where a lossy shrinker may look at the text at all; whether it is code depends on the kind, since JSON looks like code. */
export function mayLose(text: string): boolean {
  return !reportsFailure(text) && !isChange(text) && !isDocument(text);
}

/** A stack trace anywhere, or an exit code other than 0 or an error message at the beginning or the end. */
export function reportsFailure(text: string): boolean {
  const edges = [text.slice(0, 600), text.slice(-600)];
  return trace.test(text) || edges.some((edge) => exitCode.test(edge) || message.test(edge));
}

const trace =
  /^Traceback \(most recent call last\)|^panic: |^goroutine \d+ \[|^[ \t]+at [^\n]{0,300}:\d+(?::\d+)?\)?$|^[ \t]+at [\w.$<>]{1,200}\([\w.: ]{1,100}\)$|^Caused by: |^thread '[^'\n]{0,80}' panicked|^ +File "[^"\n]{0,300}", line \d/m;

const exitCode = /\bexit(?:ed with)?(?: status| code)?:? ?(?:code |status )?[1-9]\d{0,2}\b/i;

const message =
  /^\W{0,3}(?:[\w.-]{1,60}: ){0,3}\W{0,3}(?:fatal|error|failed|failure|exception|unhandled|uncaught|panic|abort(?:ed)?)\b|\b[A-Z]\w{0,60}(?:Error|Exception): |<error>|^(?:--- )?FAIL\b|^npm ERR!/im;

/** Patches and diffs: applied, quoted and reviewed line by line. */
export function isChange(text: string): boolean {
  return /^(?:diff --(?:git|cc|combined) |@@ -\d+(?:,\d+)? \+\d+|Index: \S|\*\*\* (?:Begin|End) Patch)/m.test(
    text,
  );
}

/** Markdown with headings or fences, front matter, or tags that agents wrap instructions in. */
export function isDocument(text: string): boolean {
  const headings = text.slice(0, 20_000).match(/^#{1,6} \S/gm)?.length ?? 0;
  return (
    headings >= 2 ||
    /^---\n[\w-]+:/.test(text) ||
    /^ {0,3}(?:```|~~~)/m.test(text) ||
    text.includes('<system')
  );
}

/** Source in most programming languages, by how its lines begin and end. */
export function isCode(text: string): boolean {
  let lines = 0;
  let like = 0;
  for (const line of samples(text)) {
    if (line.trim() === '') continue;
    lines++;
    if (codeEnd.test(line) || codeStart.test(line)) like++;
  }
  return like >= 3 && like / lines > 0.25;
}

const codeEnd =
  /[;{}](?:\s*\/\/.*)?$|[([],?$|[})],$|=>$|\*\/$|<\/\w+>$|^\s*<\/?\w+[^>]*>$|^\s+[\w.$]+\(.*\)$|^\s*[\w.$[\]'"]+ (?:[-+*/|&:]?=) \S/;
const codeStart =
  /^\s*(?:import|from|export|package|use|using|#include|#define|namespace|const|let|var|val|func|fn|def|class|struct|enum|interface|type|impl|public|private|protected|static|async|return|if|else|elif|for|while|switch|case|try|except|catch|throw|raise|with|end|begin|local|require|@\w+)\b|^\s*(?:\/\/|\/\*|\*\s|<!--)/;

/** The first lines of the text, of its middle and of its end, cut to a length that says enough. */
function* samples(text: string): Generator<string> {
  const piece = 8_000;
  const starts = text.length <= 3 * piece ? [0] : [0, (text.length - piece) >> 1, text.length - piece];
  for (const start of starts) {
    const part = text.slice(start, starts.length === 1 ? undefined : start + piece);
    for (const line of part.split('\n')) yield line.slice(0, 400);
  }
}
