/**
 * Text with control codes as a terminal would show it: progress bars at their last state, struck-out characters gone, colours dropped.
 * Where a program draws a whole screen, nobody can say from the text alone what was seen; then only colours go.
 */
import type { Draft } from './content.ts';
import { leftOut } from './markers.ts';
import { createScreen, type Screen } from './terminal-screen.ts';

/** At most one draft. Text without control codes has none. */
export function renderTerminal(text: string): readonly Draft[] {
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
