/**
 * Writes JSON with as few tokens as possible: no white space, and a table wherever successive objects have the same members, whose
 * names are written once:
 *
 *   {"items":[2]{name,price{amount,currency}}:
 *   Lamp,12.50,EUR
 *   Desk,99.00,EUR
 *   }
 *
 * A cell is JSON, except that an unambiguous string has no quotes, and that a missing member leaves its cell empty. An object
 * whose members have the same shape is a table with each key before its row; `{^}` means the columns of the previous table. The
 * grammar is complete: a reader gets every value, in order, as it was spelled.
 */
import { type JsonNode, type JsonObject, compact, isObject } from './json-tree.ts';

type Column = { readonly key: string; readonly columns: readonly Column[] | undefined };

/** Selects the rows of a table to keep, and writes the marker for omitted rows. */
export type Omission = {
  readonly keep: (rows: readonly JsonNode[]) => ReadonlySet<number> | undefined;
  readonly gap: (rows: number) => string;
};

export type JsonWriter = {
  /** Writes one document, or several on successive lines. */
  write(documents: readonly JsonNode[]): string;
  /** Returns the number of tables written and of rows left out. */
  done(): { readonly tables: number; readonly rowsLeftOut: number };
};

const minTableRows = 2;
/** Minimum number of members for an object to become a table. */
const minMembers = 3;
/** Maximum share of empty cells in a table. */
const maxEmptyShare = 0.4;

/** Creates a writer for one text, since a table may refer to the previous one. */
export function createJsonWriter(omission?: Omission): JsonWriter {
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
    const columns = items.length < minTableRows ? undefined : tableColumns(items);
    if (columns) return table(`[${items.length}]`, columns, items as readonly JsonObject[], { kept });
    if (!kept) return undefined;
    const parts = withGaps(items, kept, compact);
    return `[${parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part.gap))).join(',')}]`;
  };

  const memberTable = (node: JsonObject): string | undefined => {
    const columns = node.keys.length < minMembers ? undefined : tableColumns(node.values);
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

  /** Writes the kept rows, with a marker for each gap. */
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

  /** Writes JSON lines: each document is a row, or has a line of its own. */
  const lines = (documents: readonly JsonNode[]): string => {
    const kept = omission?.keep(documents);
    const columns = tableColumns(documents);
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
 * Returns the columns of a table of these objects, in the order of the object with the most members. Undefined if another object has further
 * members or another order, if too many members are missing, or if a row is no object. A member that is always an object becomes columns.
 */
function tableColumns(rows: readonly JsonNode[]): readonly Column[] | undefined {
  if (!rows.every(isObject)) return undefined;
  const widest = rows.reduce((max, row) => (row.keys.length > max.keys.length ? row : max), rows[0]!);
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
  if (filled < rows.length * places.size * (1 - maxEmptyShare)) return undefined;
  return widest.keys.map((key, at) => ({
    key,
    columns: values[at]!.length === rows.length ? tableColumns(values[at]!) : undefined,
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
    // Nested columns exist only if every row has them.
    return inner ? cellsOf(inner, value as JsonObject) : [tableCell(value)];
  });
}

function tableCell(value: JsonNode): string {
  if (typeof value !== 'string') return compact(value);
  return value.startsWith('"') && isBare(value.slice(1, -1)) ? value.slice(1, -1) : value;
}

/** True for a string that is unambiguous without quotes: no number, JSON word, bracket, comma, escape or outer white space. */
function isBare(text: string): boolean {
  return /^[^\s",[\]{}\\][^",[\]{}\\]*$/.test(text) && !/\s$/.test(text) && !numberLike.test(text);
}

const numberLike = /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$|^(?:true|false|null)$/;

function bareKey(key: string): string {
  return /^"[\w$](?:[\w$. /-]*[\w$])?"$/.test(key) ? key.slice(1, -1) : key;
}

/** Removes the line end after a table's last row, which is not needed at the end of a document. */
function withoutLineEnd(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}
