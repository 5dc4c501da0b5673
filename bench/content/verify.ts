/** Checks that a lossless shrink of a recorded result lost nothing. Texts that were also cleaned of terminal codes are not checked. */
import type { Shrunk } from '../../src/arrival/kind.ts';
import { spellings, undoLines, undoNumberedLines, undoSearch, withoutPadding } from './undo.ts';
import { undoJson } from './undo-json.ts';

/** Returns a description of the loss; undefined if the original can be restored. */
export function lossOf(original: string, { text, kind, isLossless, notes }: Shrunk): string | undefined {
  if (!isLossless || notes.length > 1) return undefined;
  switch (kind) {
    case 'numbered-lines':
      return differenceOf(withoutPadding(original), undoNumberedLines(text));
    case 'lines':
      return differenceOf(original, undoLines(text));
    case 'json':
      return differenceOf(withoutLayout(original), withoutLayout(undoJson(text)));
    case 'search': {
      const { base, rows } = undoSearch(text);
      const lines = original.split('\n');
      const at = rows.findIndex((row, index) => !spellings(row, base).includes(lines[index] ?? ''));
      return at < 0 && rows.length === lines.length ? undefined : `line ${at + 1} of ${lines.length}`;
    }
    case 'terminal':
    case 'html':
    case 'blob':
      return undefined;
  }
}

function differenceOf(wanted: string, got: string): string | undefined {
  if (wanted === got) return undefined;
  let at = 0;
  while (wanted[at] === got[at]) at++;
  return `at ${at}: ${JSON.stringify(wanted.slice(at, at + 60))} became ${JSON.stringify(got.slice(at, at + 60))}`;
}

/** Removes all white space and decodes escaped letters. Coarse, because the texts may be JSON only in part. */
function withoutLayout(text: string): string {
  return text
    .replace(/(?<!\\)(?:\\\\)*\\u[0-9a-fA-F]{4}/g, (escape) => {
      const sign = String.fromCharCode(Number.parseInt(escape.slice(-4), 16));
      return /[\p{L}\p{N}\p{P}\p{S}\p{Cs}]/u.test(sign) && !/["\\]/.test(sign)
        ? escape.slice(0, -6) + sign
        : escape;
    })
    .replace(/\s+/g, '');
}
