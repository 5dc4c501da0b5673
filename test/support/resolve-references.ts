/**
 * Resolves references between results as a model may that takes them literally: it finds the lines in the newest earlier result with that name
 * that shows such lines, or in the arguments of the result's own call. It is written from the wording alone, without knowledge of the code that makes references.
 */
export type LabeledText = {
  readonly label: string;
  readonly text: string;
  /** The arguments of the call as they are sent. */
  readonly written?: Readonly<Record<string, unknown>>;
};

/** Returns the texts with references replaced by their lines, without padding before line numbers. Throws if a reference leads nowhere. */
export function resolveReferences(texts: readonly LabeledText[]): readonly string[] {
  const read: { readonly label: string; readonly lines: readonly string[] }[] = [];
  for (const { label, text, written = {} } of texts) {
    const lines = text.split('\n').flatMap((line) => {
      const newest = (name: string, shows: (line: string) => boolean = () => true) => {
        const found = read.findLast((earlier) => earlier.label === name && earlier.lines.some(shows));
        if (!found) throw new Error(`${line} leads nowhere`);
        return { lines: found.lines, at: found.lines.findIndex(shows) };
      };
      return linesWritten(line, text, written) ?? linesReferredBy(line, newest);
    });
    read.push({ label, lines });
  }
  return read.map(({ lines }) => lines.join('\n'));
}

/** Removes padding before line numbers. */
export function unpadded(text: string): string {
  return text.replaceAll(/^ +(?=\d{1,7}[→\t])/gm, '');
}

/** Returns the lines of the call that a line refers to, with their numbers; undefined for another line. */
function linesWritten(
  line: string,
  text: string,
  written: Readonly<Record<string, unknown>>,
): readonly string[] | undefined {
  const own = /^\[lines ((?:\d+ )+)as in (\w+) of this call(?:, from (".*") on)?\]$/s.exec(line);
  if (!own) return undefined;
  const [, numbers, argument, begins] = own;
  const lines = (written[argument!] as string).split('\n');
  const beginning = begins === undefined ? undefined : (JSON.parse(begins) as string);
  const at = beginning === undefined ? 0 : lines.findIndex((other) => other.startsWith(beginning));
  const [, mark] = /^ *\d+([→\t])/m.exec(text)!;
  return numbers!
    .trim()
    .split(' ')
    .map((number, by) => `${number}${mark}${lines[at + by]}`);
}

type Newest = (
  label: string,
  shows?: (line: string) => boolean,
) => { readonly lines: readonly string[]; readonly at: number };

function linesReferredBy(line: string, newest: Newest): readonly string[] {
  const whole = /^\[all of it as in (.*) above\]$/s.exec(line);
  if (whole) return newest(whole[1]!).lines;
  const some = /^\[(\d+) lines as in (.*) above, from (".*") on\]$/s.exec(line);
  if (some) {
    const begins = JSON.parse(some[3]!) as string;
    const { lines, at } = newest(some[2]!, (other) => other.startsWith(begins));
    return lines.slice(at, at + Number(some[1]));
  }
  const numbered = /^\[lines (\d+)-(\d+) as (?:lines (\d+)-\d+ )?in (.*) above\]$/s.exec(line);
  if (!numbered) return [unpadded(line)];
  const [, from, to, there = from, label] = numbered;
  const { lines, at } = newest(label!, (other) => /^\d+(?=[→\t])/.exec(other)?.[0] === there);
  return lines
    .slice(at, at + Number(to) - Number(from) + 1)
    .map((other, by) => other.replace(/^\d+/, String(Number(from) + by)));
}
