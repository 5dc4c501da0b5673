/**
 * Finds the first line of a text that begins in some way, or has some number. A text is read through for the first few questions; whoever asks
 * more often gets an index, so that very many questions about a very long text cost n log n. Pure but for its memo.
 */

/** Questions that are answered by reading through the text. An index costs about as much as so many. */
const FEW = 16;

/** An index by line, and how often it was asked for. */
type Asked<Index> = { times: number; index: Index | undefined };

const beginnings = new WeakMap<readonly string[], Asked<Beginnings>>();
const numbered = new WeakMap<Int32Array, Asked<ReadonlyMap<number, number>>>();

/** The place of the first line that begins so; -1 where none does. */
export function firstBeginning(lines: readonly string[], begins: string): number {
  const asked = askedOf(beginnings, lines);
  if (++asked.times <= FEW) return lines.findIndex((line) => line.startsWith(begins));
  asked.index ??= indexBeginnings(lines);
  return asked.index.first(begins);
}

/** The place of the first line with this number; -1 where there is none. */
export function firstNumbered(numbers: Int32Array, number: number): number {
  const asked = askedOf(numbered, numbers);
  if (++asked.times <= FEW) return numbers.indexOf(number);
  // The first of several lines with one number is set last.
  asked.index ??= new Map([...numbers].map((each, at) => [each, at] as const).toReversed());
  return asked.index.get(number) ?? -1;
}

function askedOf<Key extends WeakKey, Index>(memo: WeakMap<Key, Asked<Index>>, key: Key): Asked<Index> {
  const asked = memo.get(key) ?? { times: 0, index: undefined };
  memo.set(key, asked);
  return asked;
}

type Beginnings = { first(begins: string): number };

/** UTF-16 units of a line that are compared: longer beginnings are not asked for. */
export const LONGEST_BEGINNING = 60;

/** Lines in the order of their text: those that begin alike stand together, and the first of them is the least of their places. */
function indexBeginnings(lines: readonly string[]): Beginnings {
  const heads = lines.map((line) => line.slice(0, LONGEST_BEGINNING));
  const order = Int32Array.from(heads.keys()).sort((one, other) =>
    heads[one]! < heads[other]! ? -1 : heads[one]! > heads[other]! ? 1 : one - other,
  );
  const leastIn = leastOf(order);
  /** How many lines stand before the first for which this holds, which holds for all behind it. */
  const before = (holds: (head: string) => boolean): number => {
    let first = 0;
    let last = order.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (holds(heads[order[middle]!]!)) last = middle;
      else first = middle + 1;
    }
    return first;
  };
  return {
    first(begins) {
      const start = before((head) => head >= begins);
      const end = before((head) => head > begins && !head.startsWith(begins));
      return start < end ? leastIn(start, end) : -1;
    },
  };
}

/** Answers which is the least number from one place to another (exclusive): a table of the least of 1, 2, 4, 8, ... neighbors. */
function leastOf(numbers: Int32Array): (start: number, end: number) => number {
  const levels = [numbers];
  for (let width = 1; width * 2 <= numbers.length; width *= 2) {
    const below = levels.at(-1)!;
    levels.push(below.map((number, at) => Math.min(number, below[at + width] ?? number)));
  }
  return (start, end) => {
    const level = 31 - Math.clz32(end - start);
    return Math.min(levels[level]![start]!, levels[level]![end - 2 ** level]!);
  };
}
