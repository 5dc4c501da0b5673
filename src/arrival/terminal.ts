/**
 * Text with control codes as a terminal would show it: progress bars at their last state, struck-out characters gone, colours dropped.
 * Where a program draws a whole screen, nobody can say from the text alone what was seen; then only colours go.
 */
import type { ShrinkDraft } from './kind.ts';
import { leftOut } from './markers.ts';

/** At most one draft. Text without control codes has none. */
export function renderTerminal(text: string): readonly ShrinkDraft[] {
  if (!hasControlCodes.test(text)) return [];
  const shown = draw(text) ?? text.replace(colour, '');
  return [
    {
      text: shown.trim() === '' ? leftOut(text.length, 'control characters') : shown,
      isLossless: true,
      note: 'control codes as a terminal shows them',
    },
  ];
}

/** Carriage returns that only end lines are left alone: files are edited with them. */
// oxlint-disable-next-line no-control-regex
const hasControlCodes = /[\0\x07\b\x1b]|\r(?!\n)/;

/** Colours, and titles or links that are set. */
// oxlint-disable-next-line no-control-regex
const colour = /\x1b\[[\d;:]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g;

/** One step: plain text, one control character, or one escape sequence. A lone escape is a step too. */
const step =
  // oxlint-disable-next-line no-control-regex
  /[^\0\x07\b\r\n\x1b]+|\r\n|[\0\x07\b\r\n]|\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[=>78]|\x1b/g;

/** Undefined where a sequence or a width says that this is not a stream of lines. */
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

/** What one control sequence does (ECMA-48 names); false for what addresses a screen whose size we do not know. */
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

/** Every move says whether it could be followed: false for rows too wide to be drawn over, and for places that are not there. */
type Screen = {
  write(text: string): boolean;
  newLine(): void;
  carriageReturn(): void;
  column(to: number): boolean;
  moveColumn(by: number): boolean;
  moveRow(by: number): boolean;
  /** Parameters of EL: 0 to the end, 1 up to the cursor, 2 the whole row. */
  eraseInLine(what: 0 | 1 | 2): boolean;
  eraseBelow(): boolean;
  text(): string;
};

/** Columns. Terminals are narrower; a longer line that is drawn over was not made for one. */
const WIDEST = 512;

type ScreenRow = { text: string; cells: string[] | undefined };

function createScreen(): Screen {
  const rows: ScreenRow[] = [{ text: '', cells: undefined }];
  let at = 0;
  let row = rows[0]!;
  /** Undefined at the end of a row that is a string. */
  let cursor: number | undefined;

  /** The cells of the row, with the cursor among them or behind them. */
  const open = (): string[] | undefined => {
    if (!row.cells) {
      if (row.text.length > 2 * WIDEST) return undefined;
      row.cells = Array.from(row.text);
    }
    cursor ??= row.cells.length;
    return row.cells.length <= WIDEST ? row.cells : undefined;
  };
  const goRow = (to: number): void => {
    if (to === rows.length) rows.push({ text: '', cells: undefined });
    at = to;
    row = rows[at]!;
  };
  const column = (to: number): boolean => {
    if (!open() || to > WIDEST) return false;
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
      return cells.length <= WIDEST;
    },
    newLine() {
      goRow(at + 1);
      cursor = row.cells || row.text !== '' ? 0 : undefined;
    },
    carriageReturn() {
      cursor = row.cells || row.text !== '' ? 0 : undefined;
    },
    column,
    moveColumn: (by) => open() !== undefined && column(Math.min(WIDEST, cursor! + by)),
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
