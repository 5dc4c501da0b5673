/**
 * The lines a stream of text leaves on a terminal that is as long as it must be and never wraps. A row that is only written at its end
 * is a string; one that is written over becomes cells, of which there may be a few hundred, so that no sequence costs more than that.
 */

/** Every move says whether it could be followed: false for rows too wide to be drawn over, and for places that are not there. */
export type Screen = {
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

type Row = { text: string; cells: string[] | undefined };

export function createScreen(): Screen {
  const rows: Row[] = [{ text: '', cells: undefined }];
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
