/**
 * What must not be touched, told from the text alone and in doubt for the text: reports of a failure, code that may be edited, documents
 * that may be instructions, changes to be applied. Looks at the beginning, the end and samples; linear.
 */

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
