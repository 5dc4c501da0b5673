/**
 * JSON, alone, as JSON lines, or standing in other text on lines of its own: laid out without white space, and as tables where that is
 * smaller. Allowed to lose something, it leaves out rows of long arrays that are like the rows kept.
 */
import type { Draft, Reader } from './content.ts';
import { isCode, mayLose } from './guards.ts';
import { rowOmission } from './json-rows.ts';
import { createLayouter, type Omission } from './json-table.ts';
import { compact, type JsonNode, readJson } from './json-tree.ts';
import { TABLES } from './markers.ts';

/** Documents that stand line after line in the text; `end` exclusive, a line's end not included. */
type Place = { readonly start: number; readonly end: number; readonly documents: readonly JsonNode[] };

/** Less JSON than this in a text is not what the text is about. Counted without white space, so that it stays when that goes. */
const LEAST_JSON = 100;

/** Below so many UTF-16 units nothing is left out. */
const LOSSY_FLOOR = 8_000;

export const json: Reader = (text) => {
  const places = findJson(text);
  let size = 0;
  const plain = relaid(text, places, (documents) => {
    const lines = documents.map(compact).join('\n');
    size += lines.length;
    return lines;
  });
  if (size < LEAST_JSON || isCode(relaid(text, places, () => ''))) return undefined;
  return {
    kind: 'json',
    drafts({ lossless }) {
      const drafts: Draft[] = [{ text: plain, isLossless: true, note: 'JSON without white space' }];
      const tabled = withTables(text, places);
      if (tabled.tables > 0) drafts.push({ text: tabled.text, isLossless: true, note: 'JSON as tables' });
      if (lossless || text.length < LOSSY_FLOOR || !mayLose(text)) return drafts;
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

function withTables(text: string, places: readonly Place[], omission?: Omission) {
  const layouter = createLayouter(omission);
  const body = relaid(text, places, (documents) => layouter.write(documents));
  return { text: `${TABLES}\n${body}`, ...layouter.done() };
}

function relaid(
  text: string,
  places: readonly Place[],
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
 * Values in brackets that begin and end a line. What only begins like one is read as far as it goes; all such readings together may go
 * over the text a few times, so that a text full of open brackets costs little.
 */
function findJson(text: string): readonly Place[] {
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
