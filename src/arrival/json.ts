/**
 * Shrinks JSON: a whole document, JSON lines, or JSON on lines of its own within other text. It is written without white space, and as
 * tables if that is smaller. A lossy draft leaves out rows of long arrays that are like the kept rows. A list of articles stays JSON: its rows are
 * not alike, its keys are little of it, and a fold can shorten its items in place.
 */
import { type JsonNode, type JsonObject, compact, isObject, readJson } from './json-tree.ts';
import { type Omission, createJsonWriter } from './json-writer.ts';
import { isCode } from './code.ts';
import { type Reader, type ShrinkDraft, mayLose } from './kind.ts';
import { jsonTables, leftOut, withoutSmallGaps } from './markers.ts';

/** JSON documents on successive lines of the text; `end` is exclusive and does not include the line's end. */
type JsonPlace = { readonly start: number; readonly end: number; readonly documents: readonly JsonNode[] };

/** Minimum length of JSON in a text, without white space: with less, the text is not about JSON. */
const minJson = 100;

/** Minimum length of a text, in UTF-16 units, for leaving out rows. */
const minLossyJson = 8_000;

export const json: Reader = (text) => {
  const places = findJson(text);
  if (places.length === 0) return undefined;
  let size = 0;
  const plain = relaid(text, places, (documents) => {
    const lines = documents.map(compact).join('\n');
    size += lines.length;
    return lines;
  });
  if (size < minJson || isCode(relaid(text, places, () => ''))) return undefined;
  return {
    kind: 'json',
    drafts({ lossless }) {
      const drafts: ShrinkDraft[] = [{ text: plain, isLossless: true, note: 'JSON without white space' }];
      if (isMostlyProse(places, size)) return drafts;
      const tabled = withTables(text, places);
      if (tabled.tables > 0) drafts.push({ text: tabled.text, isLossless: true, note: 'JSON as tables' });
      if (lossless || text.length < minLossyJson || !mayLose(text)) return drafts;
      const short = withTables(text, places, rowOmission);
      if (short.rowsLeftOut > 0)
        drafts.push({
          text: short.text,
          isLossless: false,
          note: `${short.rowsLeftOut} rows of JSON left out`,
        });
      return drafts;
    },
  };
};

/** Minimum length of a string literal that is prose, in UTF-16 units. */
const minProse = 200;

/** True if at least half of the JSON, whose length without white space is `size`, is in long strings. */
function isMostlyProse(places: readonly JsonPlace[], size: number): boolean {
  const proseIn = (node: JsonNode): number => {
    if (typeof node === 'string') return node.length >= minProse && node.startsWith('"') ? node.length : 0;
    return (isObject(node) ? node.values : node.items).reduce((sum, one) => sum + proseIn(one), 0);
  };
  return places.flatMap(({ documents }) => documents).reduce((sum, one) => sum + proseIn(one), 0) * 2 >= size;
}

function withTables(text: string, places: readonly JsonPlace[], omission?: Omission) {
  const writer = createJsonWriter(omission);
  const body = relaid(text, places, (documents) => writer.write(documents));
  return { text: `${jsonTables}\n${body}`, ...writer.done() };
}

function relaid(
  text: string,
  places: readonly JsonPlace[],
  write: (documents: readonly JsonNode[]) => string,
): string {
  let kept = 0;
  const out: string[] = [];
  for (const { start, end, documents } of places) {
    out.push(text.slice(kept, start), write(documents));
    kept = end;
  }
  out.push(text.slice(kept));
  return out.join('');
}

/**
 * Finds objects and arrays that begin and end a line. A failed attempt reads to the error; all attempts together may read the text only a
 * few times, so that a text full of open brackets takes little time.
 */
function findJson(text: string): readonly JsonPlace[] {
  if (!text.includes('{') && !text.includes('[')) return [];
  const places: { start: number; end: number; documents: JsonNode[] }[] = [];
  let effort = 3 * text.length;
  for (const match of text.matchAll(lineStart)) {
    const start = match.index + match[0].length - 1;
    const last = places.at(-1);
    if (last && start < last.end) continue;
    const { node, end } = readJson(text, start);
    if (node === undefined || !endsLine(text, end)) {
      effort -= end - start;
      if (effort < 0) break;
    } else if (last && text.slice(last.end, start).trim() === '') {
      last.documents.push(node);
      last.end = end;
    } else places.push({ start, end, documents: [node] });
  }
  return places;
}

const lineStart = /^[ \t]*[[{]/gm;

function endsLine(text: string, at: number): boolean {
  restOfLine.lastIndex = at;
  return restOfLine.test(text);
}

const restOfLine = /[ \t\r]*(?:\n|$)/y;

/** Shorter arrays are kept completely: their rows are read one by one. */
const minRows = 100;
const firstRowsKept = 8;
const lastRowsKept = 4;

/**
 * Selects the rows of a long array to keep. The first and last rows stay, and so does every row that reports a failure, has a member that
 * few rows have, has a rare value in a column of few values, or has the smallest or largest number of its column.
 */
const rowOmission: Omission = {
  keep(rows) {
    if (rows.length < minRows || !rows.every(isObject)) return undefined;
    const kept = new Set<number>();
    for (let at = 0; at < firstRowsKept; at++) kept.add(at);
    for (let at = rows.length - lastRowsKept; at < rows.length; at++) kept.add(at);
    for (const [at, row] of rows.entries()) if (isFailure(row)) kept.add(at);
    for (const at of oddShapes(rows)) kept.add(at);
    for (const column of columnsOf(rows)) for (const at of oddValues(column, rows.length)) kept.add(at);
    // If most rows are special, none is.
    return kept.size > rows.length / 2 ? undefined : withoutSmallGaps(kept, rows.length);
  },
  gap: (rows) => leftOut(rows, 'rows like these'),
};

const failure =
  /error|fail|fatal|exception|denied|refused|timed? ?out|critical|panic|crash|abort|reject|unhandled|invalid/i;

/** True for a row with a word of failure in any value, or an HTTP status of 400 or more. */
function isFailure(node: JsonNode): boolean {
  if (typeof node === 'string') return failure.test(node);
  if (!isObject(node)) return node.items.some(isFailure);
  return node.values.some(
    (value, at) =>
      isFailure(value) || (/^"\w*(?:status|code)"$/i.test(node.keys[at]!) && Number(value) >= 400),
  );
}

/** Returns rows with a set of members that few rows have. */
function oddShapes(rows: readonly JsonObject[]): readonly number[] {
  return rare(rows.map(({ keys }) => keys.join(',')));
}

type Cell = { readonly at: number; readonly value: string };

/** Returns the scalars of each member, nested members included, with their rows. */
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
    odd.push(numbers.reduce((min, cell) => (Number(cell.value) < Number(min.value) ? cell : min)).at);
    odd.push(numbers.reduce((max, cell) => (Number(cell.value) > Number(max.value) ? cell : max)).at);
  }
  const kinds = new Set(column.map(({ value }) => value)).size;
  if (kinds <= Math.max(3, rows / 20))
    odd.push(...rare(column.map(({ value }) => value)).map((place) => column[place]!.at));
  return odd;
}

/** Returns the indices of rare values: at most one in a hundred, or a single one. */
function rare(values: readonly string[]): readonly number[] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const few = Math.max(1, Math.floor(values.length / 100));
  return values.flatMap((value, at) => (counts.get(value)! <= few ? [at] : []));
}
