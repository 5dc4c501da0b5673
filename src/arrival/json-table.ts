/**
 * Lays JSON out for reading at least cost: no white space, and a table wherever objects of the same members stand in a row, their
 * names written once:
 *
 *   {"items":[2]{name,price{amount,currency}}:
 *   Lamp,12.50,EUR
 *   Desk,99.00,EUR
 *   }
 *
 * A cell is JSON, but a string that can be taken for nothing else needs no quotes, and a member that is missing leaves its cell empty. An object
 * whose members are alike is a table with each key before its row; `{^}` stands for the columns of the table before. The grammar is whole:
 * a reader gets every value, in order, as it was spelled.
 */
import { compact, isObject, type JsonNode, type JsonObject } from './json-tree.ts';

type Column = { readonly key: string; readonly columns: readonly Column[] | undefined };

/** Rows of a table that are left out, by their places; what stands where some are. */
export type Omission = {
  readonly keep: (rows: readonly JsonNode[]) => ReadonlySet<number> | undefined;
  readonly gap: (rows: number) => string;
};

export type Layouter = {
  /** One document, or several that stand line after line. */
  write(documents: readonly JsonNode[]): string;
  /** What all that was written came to. */
  done(): { readonly tables: number; readonly rowsLeftOut: number };
};

const FEWEST_ROWS = 2;
/** An object is a table of its members where they are this many. */
const FEWEST_MEMBERS = 3;
/** At most this share of a table's cells may be empty. */
const MOST_EMPTY = 0.4;

/** One for a text, since a table may refer to the one before it. */
export function createLayouter(omission?: Omission): Layouter {
  let before = '';
  let tables = 0;
  let rowsLeftOut = 0;

  const value = (node: JsonNode): string => {
    if (typeof node === 'string') return node;
    if (!isObject(node)) return arrayTable(node.items) ?? `[${node.items.map(value).join(',')}]`;
    return (
      memberTable(node) ?? `{${node.keys.map((key, at) => `${key}:${value(node.values[at]!)}`).join(',')}}`
    );
  };

  const arrayTable = (items: readonly JsonNode[]): string | undefined => {
    const kept = omission?.keep(items);
    const columns = items.length < FEWEST_ROWS ? undefined : columnsOf(items);
    if (columns) return table(`[${items.length}]`, columns, items as readonly JsonObject[], { kept });
    if (!kept) return undefined;
    const parts = withGaps(items, kept, compact);
    return `[${parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part.gap))).join(',')}]`;
  };

  const memberTable = (node: JsonObject): string | undefined => {
    const columns = node.keys.length < FEWEST_MEMBERS ? undefined : columnsOf(node.values);
    return (
      columns &&
      table(`{${node.keys.length}}`, columns, node.values as readonly JsonObject[], { keys: node.keys })
    );
  };

  const table = (
    size: string,
    columns: readonly Column[],
    rows: readonly JsonObject[],
    { keys, kept }: { keys?: readonly string[]; kept?: ReadonlySet<number> | undefined },
  ): string => {
    const header = headerOf(columns);
    const key = (at: number) => (keys ? `${bareKey(keys[at]!)}:` : '');
    const parts = withGaps(rows, kept, (row, at) => key(at) + cellsOf(columns, row).join(','));
    const lines = parts.map((part) => (typeof part === 'string' ? part : part.gap));
    const text = `${size}${header === before ? '{^}' : header}:\n${lines.join('\n')}\n`;
    before = header;
    tables++;
    return text;
  };

  /** Rows written, and between them what stands for those left out. */
  const withGaps = <Row>(
    rows: readonly Row[],
    kept: ReadonlySet<number> | undefined,
    write: (row: Row, at: number) => string,
  ): readonly (string | { readonly gap: string })[] => {
    if (!kept) return rows.map(write);
    const out: (string | { readonly gap: string })[] = [];
    let gap = 0;
    const close = (): void => {
      if (gap > 0) out.push({ gap: omission!.gap(gap) });
      rowsLeftOut += gap;
      gap = 0;
    };
    for (const [at, row] of rows.entries()) {
      if (!kept.has(at)) gap++;
      else {
        close();
        out.push(write(row, at));
      }
    }
    close();
    return out;
  };

  /** JSON lines: each document is a row, or a line of its own. */
  const lines = (documents: readonly JsonNode[]): string => {
    const kept = omission?.keep(documents);
    const columns = columnsOf(documents);
    if (columns)
      return table(`[${documents.length} lines]`, columns, documents as readonly JsonObject[], { kept });
    return withGaps(documents, kept, (document) => withoutLineEnd(value(document)))
      .map((part) => (typeof part === 'string' ? part : part.gap))
      .join('\n');
  };

  return {
    write: (documents) => withoutLineEnd(documents.length === 1 ? value(documents[0]!) : lines(documents)),
    done: () => ({ tables, rowsLeftOut }),
  };
}

/**
 * The members that all of these objects have, in the order of the one that has most; undefined where others have more, or in another
 * order, or too many have too few, or one is no object. A member that is always an object is columns itself.
 */
function columnsOf(rows: readonly JsonNode[]): readonly Column[] | undefined {
  if (!rows.every(isObject)) return undefined;
  const widest = rows.reduce((most, row) => (row.keys.length > most.keys.length ? row : most), rows[0]!);
  const places = new Map(widest.keys.map((key, at) => [key, at]));
  if (places.size === 0 || places.size !== widest.keys.length) return undefined;
  const values: JsonNode[][] = widest.keys.map(() => []);
  for (const { keys, values: members } of rows) {
    let last = -1;
    for (const [at, key] of keys.entries()) {
      const place = places.get(key);
      if (place === undefined || place <= last) return undefined;
      values[place]!.push(members[at]!);
      last = place;
    }
  }
  const filled = values.reduce((cells, column) => cells + column.length, 0);
  if (filled < rows.length * places.size * (1 - MOST_EMPTY)) return undefined;
  return widest.keys.map((key, at) => ({
    key,
    columns: values[at]!.length === rows.length ? columnsOf(values[at]!) : undefined,
  }));
}

function headerOf(columns: readonly Column[]): string {
  return `{${columns.map(({ key, columns: inner }) => bareKey(key) + (inner ? headerOf(inner) : '')).join(',')}}`;
}

function cellsOf(columns: readonly Column[], row: JsonObject): readonly string[] {
  let member = 0;
  return columns.flatMap(({ key, columns: inner }) => {
    if (row.keys[member] !== key) return [''];
    const value = row.values[member++]!;
    // Columns of columns are only where no row lacks them.
    return inner ? cellsOf(inner, value as JsonObject) : [cell(value)];
  });
}

function cell(value: JsonNode): string {
  if (typeof value !== 'string') return compact(value);
  return value.startsWith('"') && isBare(value.slice(1, -1)) ? value.slice(1, -1) : value;
}

/** A string that a reader of the table takes for just that string: no number, word of JSON, bracket, comma, escape or outer space. */
function isBare(text: string): boolean {
  return /^[^\s",[\]{}\\][^",[\]{}\\]*$/.test(text) && !/\s$/.test(text) && !numberLike.test(text);
}

const numberLike = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$|^(?:true|false|null)$/;

function bareKey(key: string): string {
  return /^"[\w$](?:[\w$. /-]*[\w$])?"$/.test(key) ? key.slice(1, -1) : key;
}

/** A table ends its last row's line; at the end of a document that is said already. */
function withoutLineEnd(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}
