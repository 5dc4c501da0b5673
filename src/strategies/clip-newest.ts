/**
 * The last resort when a request would not fit at all: cuts the middle out of the largest texts that other strategies must leave
 * alone, first of the newest tool results, then of users' messages. Beginning, end and the way to the rest stay in sight.
 */
import type { Edit } from '../conversation/edit.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { clipStub } from './lib/stub.ts';
import { openSlots, type TextSlot } from './lib/editable-texts.ts';

export const clipNewest: Strategy = { name: 'clip-newest', reach: 'everything', propose };

/** Tokens a text must have to be worth cutting: less would not even hold the stub. */
const smallest = 150;

function propose(view: FoldView): readonly Edit[] {
  if (view.excess.unit === 'messages') return [];
  const edits: Edit[] = [];
  let missing = view.excess.amount;
  for (const slot of candidates(view)) {
    if (missing <= 0) break;
    const text = slot.text();
    const shrunk = view.shrunk(slot.at);
    const whole = view.measure.text(text);
    const tokens = shrunk === undefined ? whole : view.measure.text(shrunk);
    const clipped =
      tokens < smallest ? undefined : clip(view, slot, text, Math.max(0, (tokens - missing) / whole));
    if (!clipped || !view.mayEdit(clipped)) continue;
    const saved = tokens - view.measure.text(clipped.stub);
    if (saved <= 0) continue;
    edits.push(clipped);
    missing -= saved;
  }
  return edits;
}

/** Tool results before users' texts, larger before smaller, earlier before later. System texts are never among them. */
function candidates(view: FoldView): readonly TextSlot[] {
  const free = ({ at }: TextSlot) =>
    !view.protects.part(at.message, at.part) && !view.protects.recalled(at.message, at.part);
  const texts = [...openSlots(view, 'text')].filter((slot) => slot.message.role !== 'system' && free(slot));
  return [...bySize([...openSlots(view, 'tool-result')].filter(free)), ...bySize(texts)];
}

function bySize(slots: Iterable<TextSlot>): readonly TextSlot[] {
  return [...slots].toSorted((a, b) => b.literal.length - a.literal.length);
}

/** Keeps about `share` of the text's characters, a little less so that the stub fits: three fifths from the beginning, the rest from the end. */
function clip(
  view: FoldView,
  slot: TextSlot,
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

/** The end of the last whole line within `most` characters; for text without lines, `most` itself, never inside a code point. */
function lineEnd(text: string, most: number): number {
  const line = text.lastIndexOf('\n', most - 1) + 1;
  return line > most / 2 ? line : onCodePoint(text, most);
}

function lineStart(text: string, from: number, least: number): number {
  const line = text.indexOf('\n', from) + 1;
  const room = text.length - from;
  return Math.max(least, line > 0 && line - from < room / 2 ? line : onCodePoint(text, from));
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
