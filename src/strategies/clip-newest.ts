/**
 * Implements the last resort for a request that would not fit: cuts the middle out of the largest texts that other strategies must not change, first of
 * the newest tool results, then of user messages. Beginning, end and the way to read the rest stay.
 */
import type { Edit } from '../conversation/edit.ts';
import type { Steps } from '../conversation/steps.ts';
import { type FoldView, type Strategy, steppedStrategy } from './strategy.ts';
import { type KeptText, way } from './lib/stubs.ts';
import { editableTexts, type EditableText } from './lib/editable-texts.ts';

/** Cuts the largest newest texts of a request that would not fit otherwise. A list without it may leave a request too long. */
export function clipNewest(): Strategy {
  return steppedStrategy('clip-newest', 'everything', propose);
}

/** Minimum tokens of a text to be cut: a smaller one would not even hold the stub. */
const minTokens = 150;

function* propose(view: FoldView): Steps<readonly Edit[]> {
  if (view.excess.unit === 'messages') return [];
  const edits: Edit[] = [];
  let missing = view.excess.amount;
  for (const slot of yield* candidates(view)) {
    if (missing <= 0) break;
    yield;
    const text = yield* slot.textInSteps();
    const shrunk = view.shrunk(slot.at);
    const whole = yield* view.measure.textInSteps(text);
    const tokens = shrunk === undefined ? whole : yield* view.measure.textInSteps(shrunk);
    const clipped =
      tokens < minTokens ? undefined : clip(view, slot, text, Math.max(0, (tokens - missing) / whole));
    if (!clipped || !view.mayEdit(clipped)) continue;
    yield;
    const saved = tokens - (yield* view.measure.textInSteps(clipped.stub));
    if (saved <= 0) continue;
    edits.push(clipped);
    missing -= saved;
  }
  return edits;
}

/** Returns the texts to cut, in order: tool results before user texts, larger before smaller, earlier before later. Never system texts. */
function* candidates(view: FoldView): Steps<readonly EditableText[]> {
  const results = yield* freeTexts(view, 'tool-result');
  const texts = yield* freeTexts(view, 'text');
  return [...results, ...texts];
}

function* freeTexts(view: FoldView, type: 'tool-result' | 'text'): Steps<readonly EditableText[]> {
  const free: EditableText[] = [];
  for (const slot of editableTexts(view, type)) {
    yield;
    const { message, part } = slot.at;
    const isSystem = type === 'text' && slot.message.role === 'system';
    if (!isSystem && !view.protects.part(message, part) && !view.protects.recalled(message, part))
      free.push(slot);
  }
  return free.toSorted((a, b) => b.literal.length - a.literal.length);
}

/** Cuts a text to about `share` of its characters, a little less so that the stub fits: three fifths are from the beginning, the rest from the end. */
function clip(
  view: FoldView,
  slot: EditableText,
  text: string,
  share: number,
): (Edit & { kind: 'replace-text' }) | undefined {
  const kept = Math.floor(text.length * share * 0.95) - 400;
  const head = lineEnd(text, kept > 0 ? Math.floor(kept * 0.6) : 0);
  const tail = lineStart(text, text.length - (kept > 0 ? Math.floor(kept * 0.4) : 0), head);
  if (tail - head <= 0) return undefined;
  const memory = view.idOf(slot.literal);
  const note = clipStub({
    characters: tail - head,
    fromLine: lineAt(text, head),
    toLine: lineAt(text, tail - 1),
    memory,
    recallTool: view.recallTool,
  });
  const stub = [text.slice(0, head).replace(/\n$/, ''), note, text.slice(tail)]
    .filter((piece) => piece !== '')
    .join('\n');
  return { kind: 'replace-text', at: slot.at, stub, memory };
}

/** Returns the end of the last whole line within `max` characters; `max` itself for text without lines, never inside a code point. */
function lineEnd(text: string, max: number): number {
  const line = text.lastIndexOf('\n', max - 1) + 1;
  return line > max / 2 ? line : onCodePoint(text, max);
}

function lineStart(text: string, from: number, min: number): number {
  const line = text.indexOf('\n', from) + 1;
  const room = text.length - from;
  return Math.max(min, line > 0 && line - from < room / 2 ? line : onCodePoint(text, from));
}

function onCodePoint(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}

function lineAt(text: string, at: number): number {
  let line = 1;
  for (let next = text.indexOf('\n'); next !== -1 && next < at; next = text.indexOf('\n', next + 1)) line++;
  return line;
}

/** Replaces the middle of a text. */
export function clipStub(
  clipped: KeptText & {
    readonly characters: number;
    readonly fromLine: number;
    readonly toLine: number;
  },
): string {
  const { characters, fromLine, toLine, memory, recallTool } = clipped;
  const lines = fromLine === toLine ? `of line ${fromLine}` : `with lines ${fromLine}-${toLine}`;
  return `[Folded ${characters} characters ${lines} of this text. ${way(memory, recallTool)}]`;
}
