/**
 * Shrinks the text of one tool result: removes what a terminal would not show, then writes the text smaller by its kind. Used once, when a
 * text is first seen, and remembered, because a sent text is part of a cached prefix. Pure. The caller decides which results may be
 * shrunk, and keeps the original of a lossy one.
 */
import {
  isChange,
  isDocument,
  mayLose,
  type Kind,
  type RecognizedKind,
  type ShrinkDraft,
  type ShrinkOptions,
  type Shrunk,
} from './kind.ts';
import { isCode } from './code.ts';
import { html } from './html.ts';
import { json } from './json.ts';
import { isShrunk, leftOut } from './markers.ts';
import { numberedLines } from './numbered-lines.ts';
import { search } from './search.ts';
import { type Steps, runSteps } from '../conversation/steps.ts';
import { sharedLines } from './shared-lines.ts';
import { renderTerminal } from './terminal.ts';

/** Limits in UTF-16 units. Shorter texts are not worth a marker; longer ones fit no model and would block the event loop. */
export const minShrinkLength = 200;
export const maxShrinkLength = 1_000_000;

/**
 * Returns a smaller text with the same content; undefined if the text is too short, too long, of an unknown kind, shrunk before, or if too
 * little would be saved. Never throws. Shrinking a result again changes nothing.
 *
 * @example
 * shrink('     1→package cli\n     2→\n     3→import "os"\n...', { lossless: true })?.text; // '1→package cli\n2→\n3→import "os"\n...'
 */
export function shrink(text: string, options: ShrinkOptions): Shrunk | undefined {
  return runSteps(shrinkInSteps(text, options));
}

/** Does the same as `shrink` in steps: each pass over the text is one. */
export function* shrinkInSteps(text: string, options: ShrinkOptions): Steps<Shrunk | undefined> {
  if (text.length < minShrinkLength || text.length > maxShrinkLength || isShrunk(text)) return undefined;
  const sizes = new Map<string, number>();
  const run: ShrinkRun = {
    text,
    options,
    sizes,
    sizeOf: remembered(sizes, options.count ?? lengthOf),
    steps: [],
  };
  const { steps } = run;
  let recognized = yield* detect(text);
  if (recognized?.kind !== 'numbered-lines') {
    if (options.mayBeEdited === true) return undefined;
    const mayHide = !options.lossless && mayLose(text);
    const rendered = renderTerminal(text).filter(({ isLossless }) => isLossless || mayHide);
    yield* applySmallest(run, 'terminal', rendered);
    const now = textNow(run);
    const drafts = options.lossless ? [] : withoutBlobs(now);
    if (drafts.length > 0 && mayLose(now) && (recognized?.kind === 'json' || !isCode(now)))
      yield* applySmallest(run, 'blob', drafts);
    if (steps.length > 0) recognized = yield* detect(textNow(run));
  }
  if (recognized) yield* applySmallest(run, recognized.kind, recognized.drafts(options));

  const last = steps.at(-1);
  if (last) yield* measure(run, [text, last.text]);
  if (!last || !isWorthIt(text, last.text, run.sizeOf, options)) return undefined;
  return {
    text: last.text,
    kind: last.kind,
    isLossless: steps.every(({ isLossless }) => isLossless),
    notes: steps.map(({ note }) => note),
  };
}

/** A text that is made smaller in several steps. */
type ShrinkRun = {
  readonly text: string;
  readonly options: ShrinkOptions;
  readonly sizes: Map<string, number>;
  readonly sizeOf: (text: string) => number;
  /** The drafts that were chosen, each made of the one before. */
  readonly steps: (ShrinkDraft & { kind: Kind })[];
};

const textNow = ({ text, steps }: ShrinkRun): string => steps.at(-1)?.text ?? text;

function* measure({ options, sizes }: ShrinkRun, texts: readonly string[]): Steps<void> {
  for (const one of texts) if (options.countInSteps) sizes.set(one, yield* options.countInSteps(one));
}

function* applySmallest(run: ShrinkRun, kind: Kind, drafts: readonly ShrinkDraft[]): Steps<void> {
  yield;
  if (drafts.length === 0 || run.options.without?.includes(kind)) return;
  const now = textNow(run);
  yield* measure(run, [now, ...drafts.map((draft) => draft.text)]);
  const best = smallest([{ text: now, isLossless: true, note: '' }, ...drafts], run.sizeOf);
  if (best.note !== '') run.steps.push({ ...best, kind });
}

/** Maximum size of a lossy draft relative to the smallest lossless one: a loss must save much. */
const maxLossyShare = 0.75;

/** Returns the smallest draft, the first of equal ones; the unchanged text comes first. */
function smallest(drafts: readonly ShrinkDraft[], sizeOf: (text: string) => number): ShrinkDraft {
  const best = (some: readonly ShrinkDraft[]): ShrinkDraft =>
    some.reduce((min, draft) => (sizeOf(draft.text) < sizeOf(min.text) ? draft : min));
  const lossless = best(drafts.filter(({ isLossless }) => isLossless));
  const lossy = drafts.filter(
    ({ isLossless, text }) => !isLossless && sizeOf(text) <= sizeOf(lossless.text) * maxLossyShare,
  );
  return lossy.length === 0 ? lossless : best(lossy);
}

/** True if enough is saved to show a model a text that looks different from what the tool prints. */
function isWorthIt(
  before: string,
  after: string,
  sizeOf: (text: string) => number,
  { count }: ShrinkOptions,
): boolean {
  if (after.trim() === '' || after.length >= before.length) return false;
  const size = sizeOf(before);
  return size - sizeOf(after) >= Math.max(count ? 10 : 40, size * 0.02);
}

function lengthOf(text: string): number {
  return text.length;
}

/** Remembers sizes: texts are compared more than once, and counting is most of the work. */
function remembered(sizes: Map<string, number>, sizeOf: (text: string) => number): (text: string) => number {
  return (text) => {
    const size = sizes.get(text) ?? sizeOf(text);
    sizes.set(text, size);
    return size;
  };
}

/**
 * Recognizes the kind of a text, from the text alone. File listings are tried first, since they may list anything; then texts that must not
 * change; then other kinds, the surest first. A shrunk text still has its kind, or contains a marker.
 */
function* detect(text: string): Steps<RecognizedKind | undefined> {
  yield;
  let kind = numberedLines(text);
  if (!kind && beginsLikeJson.test(text)) kind = json(text);
  yield;
  if (kind || isChange(text) || isDocument(text)) return kind;
  for (const reader of [html, search, json]) {
    yield;
    kind = reader(text);
    if (kind) return kind;
  }
  yield;
  return isCode(text) ? undefined : sharedLines(text);
}

const beginsLikeJson = /^\s*[[{]/;

/** Minimum length of removed base64, in UTF-16 units. Tokens, signatures and hashes that a model may have to repeat are shorter. */
const minBlob = 1_000;

/** Removes long runs of base64: images, archives and keys are of no use to a model as letters. Lossy. */
export function withoutBlobs(text: string): readonly ShrinkDraft[] {
  if (!mayHoldBlob(text) || text.includes('-----BEGIN')) return [];
  let characters = 0;
  const rest = text.replace(base64Run, (blob) => {
    if (blob.length < minBlob || !isEncoded(blob)) return blob;
    characters += blob.length;
    return leftOut(blob.length, 'characters of base64', `: ${blob.slice(0, 16)}...`);
  });
  if (characters === 0) return [];
  return [{ text: rest, isLossless: false, note: `${characters} characters of base64 left out` }];
}

/** UTF-16 units of a line of base64 in `base64Run`, at least. */
const minBase64Line = 60;

/** UTF-16 units that the end of `base64Run` may have, at most. */
const maxBase64Ending = 61;

/** True for a text in which `base64Run` may match `minBlob` units. Only every sixtieth unit of most texts is read, or a few more. */
function mayHoldBlob(text: string): boolean {
  for (let last = minBase64Line - 1; last < text.length; ) {
    let at = last;
    while (at > last - minBase64Line && isBase64(text.charCodeAt(at))) at--;
    const isLine = at === last - minBase64Line;
    const end = isLine ? linesEnd(text, last + 1) : at + 1;
    if (isLine && end - at + maxBase64Ending >= minBlob) return true;
    last = end + minBase64Line - 1;
  }
  return false;
}

/** Returns the end of the lines of base64, where the first of them has at least `minBase64Line` units before `from`. */
function linesEnd(text: string, from: number): number {
  let end = from;
  for (;;) {
    while (isBase64(text.charCodeAt(end))) end++;
    const next = end + (lineBreak.find((one) => text.startsWith(one, end))?.length ?? 0);
    let lineEnd = next;
    while (lineEnd < next + minBase64Line && isBase64(text.charCodeAt(lineEnd))) lineEnd++;
    if (next === end || lineEnd < next + minBase64Line) return next;
    end = lineEnd;
  }
}

const lineBreak = ['\r\n', '\n', '\\r\\n', '\\n'];

const base64 = new Uint8Array(128);
for (const one of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-')
  base64[one.charCodeAt(0)] = 1;

function isBase64(code: number): boolean {
  return code < 128 && base64[code] === 1;
}

/** Matches base64, also in lines of equal length as in mail, with line breaks escaped or not. */
const base64Run = /(?:[A-Za-z0-9+/_-]{60,}(?:\r?\n|\\r\\n|\\n)?)+(?:[A-Za-z0-9+/_-]{0,59}={1,2})?/g;

/** True for encoded data, which mixes digits and letters of both cases; a long word, a path or a repeated letter does not. */
function isEncoded(blob: string): boolean {
  const sample = blob.slice(0, 1_000);
  return (
    new Set(sample).size > 40 &&
    (sample.match(/\d/g)?.length ?? 0) > 60 &&
    (sample.match(/[A-Z]/g)?.length ?? 0) > 150
  );
}
