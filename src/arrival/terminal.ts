/**
 * Shows text with control codes as a terminal would: progress bars in their last state, overwritten characters removed, colors dropped. If
 * a program draws a whole screen, the text does not show what was visible; then only colors are dropped.
 */
import type { ShrinkDraft } from './kind.ts';
import { leftOut } from './markers.ts';

/** Returns at most one draft; none for text without control codes. */
export function renderTerminal(text: string): readonly ShrinkDraft[] {
  if (!hasControlCodes.test(text) || separatingNul.test(text)) return [];
  const shown = draw(text) ?? text.replace(colour, '');
  return [
    {
      text: shown.trim() === '' ? leftOut(text.length, 'control characters') : shown,
      isLossless: !hidesWords(text),
      note: 'control codes as a terminal shows them',
    },
  ];
}

/** Matches control codes. Carriage returns that only end lines do not count: files are edited with them. */
// oxlint-disable-next-line no-control-regex
const hasControlCodes = /[\0\x07\b\x1b]|\r(?!\n)/;

/** Matches NUL between items, as of `find -print0`: a terminal would run the items together. */
// oxlint-disable-next-line no-control-regex
const separatingNul = /[^\0-\x20]\0+[^\0-\x20]/;

/**
 * True if a carriage return hides more than the states of a progress bar. Files of old programs end all their lines with it, and a terminal
 * would show the last one only.
 */
function hidesWords(text: string): boolean {
  return text.split('\n').some((line) => {
    const states = line
      .replace(colour, '')
      .split('\r')
      .filter((state) => state.trim() !== '');
    const last = new Set(states.at(-1)?.match(word));
    return states.some((state) => !progress.test(state) && state.match(word)?.some((one) => !last.has(one)));
  });
}

const word = /[\p{L}\p{N}]+/gu;
/** Matches a state of a progress bar: `40 %`, `3/8`, `3 of 8`, `####`, `...`. */
const progress = /\d ?%|\d ?(?:\/|of) ?\d|[#=━█]{2}|\.{3}|…/;

/** Matches colors, and sequences that set titles or links. */
// oxlint-disable-next-line no-control-regex
const colour = /\x1b\[[\d;:]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g;

/** Matches one step: plain text, a control character, or an escape sequence, also a lone escape. */
const step =
  // oxlint-disable-next-line no-control-regex
  /[^\0\x07\b\r\n\x1b]+|\r\n|[\0\x07\b\r\n]|\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[=>78]|\x1b/g;

/** Renders a stream of lines; undefined if a sequence or a width shows that the text is no such stream. */
function draw(text: string): string | undefined {
  const screen = createScreen();
  for (const [what, parameters, final] of text.matchAll(step)) {
    if (final !== undefined) {
      if (!control(screen, parameters ?? '', final)) return undefined;
    } else if (what === '\n' || what === '\r\n') screen.newLine();
    else if (what === '\r') screen.carriageReturn();
    else if (what === '\b') {
      if (!screen.moveColumn(-1)) return undefined;
    } else if (what === '\x1b' || what === '\x1b7' || what === '\x1b8') return undefined;
    else if (what !== '\0' && what !== '\x07' && !what.startsWith('\x1b') && !screen.write(what))
      return undefined;
  }
  return screen.text();
}

/** Carries out one control sequence (ECMA-48 names); false for one that addresses a screen of unknown size. */
function control(screen: Screen, parameters: string, final: string): boolean {
  const count = Math.max(1, Number.parseInt(parameters, 10) || 1);
  switch (final) {
    case 'm': // SGR
      return true;
    case 'K': // EL
      return /^[012]?$/.test(parameters) && screen.eraseInLine(Number(parameters || 0) as 0 | 1 | 2);
    case 'J': // ED
      return /^0?$/.test(parameters) && screen.eraseBelow();
    case 'A': // CUU
      return screen.moveRow(-count);
    case 'B': // CUD
      return screen.moveRow(count);
    case 'C': // CUF
      return screen.moveColumn(count);
    case 'D': // CUB
      return screen.moveColumn(-count);
    case 'E': // CNL
      return screen.moveRow(count) && screen.column(0);
    case 'F': // CPL
      return screen.moveRow(-count) && screen.column(0);
    case 'G': // CHA
      return screen.column(count - 1);
    case 'h':
    case 'l': // the cursor shown or hidden, pasting, line wrap: nothing that is seen later
      return /^\?(?:7|12|25|2004|2026)$/.test(parameters);
    default:
      return false;
  }
}

/**
 * The lines that a stream of text leaves on a terminal of unlimited height that never wraps. Moves return false if they are not possible:
 * for rows too wide to be overwritten, and for positions that do not exist.
 */
type Screen = {
  write(text: string): boolean;
  newLine(): void;
  carriageReturn(): void;
  column(to: number): boolean;
  moveColumn(by: number): boolean;
  moveRow(by: number): boolean;
  /** Erases part of a row, by the parameters of EL: 0 to the end, 1 up to the cursor, 2 the whole row. */
  eraseInLine(what: 0 | 1 | 2): boolean;
  eraseBelow(): boolean;
  text(): string;
};

/** Maximum columns of a row that is overwritten. Terminals are narrower; a longer line was not made for one. */
const maxColumns = 512;

type ScreenRow = { text: string; cells: string[] | undefined };

function createScreen(): Screen {
  const rows: ScreenRow[] = [{ text: '', cells: undefined }];
  let at = 0;
  let row = rows[0]!;
  /** Undefined if the row is a string and the cursor is at its end. */
  let cursor: number | undefined;

  /** Returns the cells of the row, up to the cursor at least. */
  const open = (): string[] | undefined => {
    if (!row.cells) {
      if (row.text.length > 2 * maxColumns) return undefined;
      row.cells = Array.from(row.text);
    }
    cursor ??= row.cells.length;
    return row.cells.length <= maxColumns ? row.cells : undefined;
  };
  const goRow = (to: number): void => {
    if (to === rows.length) rows.push({ text: '', cells: undefined });
    at = to;
    row = rows[at]!;
  };
  const column = (to: number): boolean => {
    if (!open() || to > maxColumns) return false;
    cursor = Math.max(0, to);
    return true;
  };

  return {
    write(text) {
      if (!row.cells && cursor === undefined) {
        row.text += text;
        return true;
      }
      const cells = open();
      if (!cells) return false;
      while (cells.length < cursor!) cells.push(' ');
      for (const cell of text) cells[cursor!++] = cell;
      return cells.length <= maxColumns;
    },
    newLine() {
      goRow(at + 1);
      cursor = row.cells || row.text !== '' ? 0 : undefined;
    },
    carriageReturn() {
      cursor = row.cells || row.text !== '' ? 0 : undefined;
    },
    column,
    moveColumn: (by) => open() !== undefined && column(Math.min(maxColumns, cursor! + by)),
    moveRow(by) {
      if (!open() || at + by < 0 || at + by >= rows.length) return false;
      goRow(at + by);
      return open() !== undefined;
    },
    eraseInLine(what) {
      if (what === 0 && cursor === undefined) return true;
      const cells = open();
      if (!cells) return false;
      if (what === 0) cells.length = Math.min(cells.length, cursor!);
      else if (what === 1) cells.fill(' ', 0, cursor! + 1);
      else cells.length = 0;
      return true;
    },
    eraseBelow() {
      rows.length = at + 1;
      return this.eraseInLine(0);
    },
    text: () => rows.map(({ text, cells }) => (cells ? cells.join('').trimEnd() : text)).join('\n'),
  };
}
