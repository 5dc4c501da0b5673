/**
 * Which rows of a long array may go: those like many others. The first and last rows stay, and every row that reports a failure, has
 * a member few rows have, a value that is rare in a column of few values, or the smallest or greatest number of its column.
 */
import { withoutSmallGaps } from './gaps.ts';
import { isObject, type JsonNode, type JsonObject } from './json-tree.ts';
import type { Omission } from './json-table.ts';
import { leftOut } from './markers.ts';

/** Shorter arrays stay whole: their rows are read one by one. */
const FEWEST = 100;
const FIRST = 8;
const LAST = 4;

export const rowOmission: Omission = {
  keep(rows) {
    if (rows.length < FEWEST || !rows.every(isObject)) return undefined;
    const kept = new Set<number>();
    for (let at = 0; at < FIRST; at++) kept.add(at);
    for (let at = rows.length - LAST; at < rows.length; at++) kept.add(at);
    for (const [at, row] of rows.entries()) if (isFailure(row)) kept.add(at);
    for (const at of oddShapes(rows)) kept.add(at);
    for (const column of columnsOf(rows)) for (const at of oddValues(column, rows.length)) kept.add(at);
    // Where most rows are special, none is.
    return kept.size > rows.length / 2 ? undefined : withoutSmallGaps(kept, rows.length);
  },
  gap: (rows) => leftOut(rows, 'rows like these'),
};

const failure =
  /error|fail|fatal|exception|denied|refused|timed? ?out|critical|panic|crash|abort|reject|unhandled|invalid/i;

/** A word of failure in any value, or an HTTP status of 400 or more. */
function isFailure(node: JsonNode): boolean {
  if (typeof node === 'string') return failure.test(node);
  if (!isObject(node)) return node.items.some(isFailure);
  return node.values.some(
    (value, at) =>
      isFailure(value) || (/^"\w*(?:status|code)"$/i.test(node.keys[at]!) && Number(value) >= 400),
  );
}

/** Rows whose members few other rows have. */
function oddShapes(rows: readonly JsonObject[]): readonly number[] {
  return rare(rows.map(({ keys }) => keys.join(',')));
}

type Cell = { readonly at: number; readonly value: string };

/** Scalars by member, those of members' members too, with the row each stands in. */
function columnsOf(rows: readonly JsonObject[]): Iterable<readonly Cell[]> {
  const columns = new Map<string, Cell[]>();
  const read = (at: number, { keys, values }: JsonObject, path: string): void => {
    for (const [member, value] of values.entries()) {
      const name = `${path}${keys[member]!}`;
      if (typeof value !== 'string') {
        if (isObject(value)) read(at, value, `${name}.`);
        continue;
      }
      const column = columns.get(name);
      if (column) column.push({ at, value });
      else columns.set(name, [{ at, value }]);
    }
  };
  for (const [at, row] of rows.entries()) read(at, row, '');
  return columns.values();
}

function oddValues(column: readonly Cell[], rows: number): readonly number[] {
  const numbers = column.filter(({ value }) => Number.isFinite(Number(value)));
  const odd: number[] = [];
  if (numbers.length > 0) {
    odd.push(numbers.reduce((least, cell) => (Number(cell.value) < Number(least.value) ? cell : least)).at);
    odd.push(numbers.reduce((most, cell) => (Number(cell.value) > Number(most.value) ? cell : most)).at);
  }
  const kinds = new Set(column.map(({ value }) => value)).size;
  if (kinds <= Math.max(3, rows / 20))
    odd.push(...rare(column.map(({ value }) => value)).map((place) => column[place]!.at));
  return odd;
}

/** Places of the values that few share: one in a hundred, or a single one. */
function rare(values: readonly string[]): readonly number[] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const few = Math.max(1, Math.floor(values.length / 100));
  return values.flatMap((value, at) => (counts.get(value)! <= few ? [at] : []));
}
