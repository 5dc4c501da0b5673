/** Turns JSON tables back into JSON text without white space. It follows the description in json.ts, not the code. */

type Column = { readonly key: string; readonly columns: readonly Column[] | undefined };

/** Returns the text with its tables turned back into JSON. Other lines stay unchanged. */
export function undoJson(shrunk: string): string {
  const marker = '[JSON; tables: [rows]{columns}: row lines]\n';
  if (!shrunk.startsWith(marker)) return shrunk;
  const text = shrunk.slice(marker.length);
  const out: string[] = [];
  const reader = createReader(text);
  for (let at = 0; at < text.length; ) {
    const document = /^[ \t]*[[{]/.test(text.slice(at, at + 200))
      ? readDocument(reader, text, at)
      : undefined;
    const end = document?.end ?? endOfLine(text, at);
    out.push(document?.text ?? text.slice(at, end));
    at = end + 1;
  }
  return out.join('\n');
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end;
}

function readDocument(reader: Reader, text: string, at: number): { text: string; end: number } | undefined {
  try {
    const value = reader.value(at);
    // The last row of a table includes its line end.
    const end = text[reader.at() - 1] === '\n' ? reader.at() - 1 : reader.at();
    return text.slice(end, endOfLine(text, end)).trim() === ''
      ? { text: value, end: endOfLine(text, end) }
      : undefined;
  } catch {
    return undefined;
  }
}

type Reader = ReturnType<typeof createReader>;

/** Creates the reader of one text. It keeps state, because a table may refer to the columns of the table before it. */
function createReader(text: string) {
  let at = 0;
  let columnsBefore: readonly Column[] = [];

  const match = (pattern: RegExp): RegExpExecArray | undefined => {
    const sticky = new RegExp(pattern, 'y');
    sticky.lastIndex = at;
    const found = sticky.exec(text);
    if (found) at = sticky.lastIndex;
    return found ?? undefined;
  };
  const must = (pattern: RegExp): RegExpExecArray => {
    const found = match(pattern);
    if (!found) throw new Error(`Expected ${pattern} at offset ${at}, found: ${text.slice(at, at + 40)}`);
    return found;
  };
  const string = (): string => must(/"(?:[^"\\]|\\.)*"/)[0];

  const columns = (): readonly Column[] => {
    if (match(/\{\^\}/)) return columnsBefore;
    must(/\{/);
    const out: Column[] = [];
    do {
      const key = text[at] === '"' ? string() : JSON.stringify(must(/[^,{}"]+/)[0]);
      out.push({ key, columns: text[at] === '{' ? columns() : undefined });
    } while (match(/,/));
    must(/\}/);
    return out;
  };
  /** Returns undefined if the member is missing. */
  const cell = (): string | undefined => {
    if (text[at] === ',' || text[at] === '\n' || at >= text.length) return undefined;
    if (text[at] === '"') return string();
    if (text[at] === '{' || text[at] === '[') return value();
    const bare = must(/[^,\n]+/)[0];
    return /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/.test(bare)
      ? bare
      : `"${bare}"`;
  };
  const row = (all: readonly Column[]): string => {
    const members: string[] = [];
    for (const [index, column] of all.entries()) {
      if (index > 0) must(/,/);
      const content = column.columns ? row(column.columns) : cell();
      if (content !== undefined) members.push(`${column.key}:${content}`);
    }
    return `{${members.join(',')}}`;
  };

  const rowKey = (): string => (text[at] === '"' ? string() : JSON.stringify(must(/[^:"]+/)[0]));
  const rowsOf = (count: number, isKeyed: boolean): readonly string[] => {
    const all = columns();
    columnsBefore = all;
    must(/:\n/);
    return Array.from({ length: count }, () => {
      const key = isKeyed ? rowKey() : undefined;
      if (key !== undefined) must(/:/);
      const content = row(all);
      if (at < text.length) must(/\n/);
      return key === undefined ? content : `${key}:${content}`;
    });
  };

  const value = (): string => {
    match(/[ \t]+/);
    const array = match(/\[(\d+)( lines)?\](?=\{)/);
    if (array) {
      const rows = rowsOf(Number(array[1]), false);
      return array[2] === undefined ? `[${rows.join(',')}]` : rows.join('\n');
    }
    const members = match(/\{(\d+)\}(?=\{)/);
    if (members) return `{${rowsOf(Number(members[1]), true).join(',')}}`;
    if (text[at] === '"') return string();
    if (match(/\[/)) {
      const items: string[] = [];
      if (match(/\]/)) return '[]';
      do items.push(value());
      while (match(/,/));
      must(/\]/);
      return `[${items.join(',')}]`;
    }
    if (match(/\{/)) {
      const all: string[] = [];
      if (match(/\}/)) return '{}';
      do {
        const key = string();
        must(/:/);
        all.push(`${key}:${value()}`);
      } while (match(/,/));
      must(/\}/);
      return `{${all.join(',')}}`;
    }
    return must(/[^,\]}\s]+/)[0];
  };

  const valueAt = (start: number): string => {
    at = start;
    return value();
  };
  return { value: valueAt, at: () => at };
}
