/** Applies byte splices: the only way a body is changed. Bytes that no splice covers are copied unchanged. */
import type { Span } from './conversation.ts';

/** Replaces the span by `bytes`; an empty span inserts. */
export type Splice = { readonly span: Span; readonly bytes: Uint8Array };

const encoder = new TextEncoder();
const nothing = new Uint8Array(0);

/**
 * Applies splices in order of position; several at one empty span keep their order. Returns `body` itself when there are none.
 * Overlapping splices are a bug of the caller and throw a RangeError.
 */
export function applySplices(body: Uint8Array, splices: readonly Splice[]): Uint8Array {
  if (splices.length === 0) return body;
  const ordered = splices.toSorted((a, b) => a.span.start - b.span.start || a.span.end - b.span.end);
  const grown = ordered.reduce(
    (sum, { span, bytes }) => sum + bytes.length - (span.end - span.start),
    body.length,
  );
  const out = new Uint8Array(grown);
  let from = 0;
  let to = 0;
  for (const { span, bytes } of ordered) {
    if (span.start < from) throw new RangeError(`splices overlap at byte ${span.start}`);
    out.set(body.subarray(from, span.start), to);
    to += span.start - from;
    out.set(bytes, to);
    to += bytes.length;
    from = span.end;
  }
  out.set(body.subarray(from), to);
  return out;
}

/** Returns a text as the bytes of a JSON string literal; lone surrogates stay, as escapes. */
export function literalBytes(text: string): Uint8Array {
  return encoder.encode(JSON.stringify(text));
}

/** Returns a value as compact JSON bytes. */
export function jsonBytes(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

/** An element to insert ahead of element `before` (the number of elements: at the end). */
export type Insertion = { readonly before: number; readonly bytes: Uint8Array };

/**
 * Returns splices that drop and insert elements of one bracketed list (array elements or object members), commas included. `end`
 * is the position of the closing bracket: insertions go there in a list without elements.
 */
export function listSplices(
  elements: readonly Span[],
  end: number,
  dropped: (index: number) => boolean,
  insertions: readonly Insertion[] = [],
): readonly Splice[] {
  const splices: Splice[] = [];
  const keptAny = elements.some((_, index) => !dropped(index));
  for (const group of groupInsertions(insertions, dropped)) {
    splices.push(insertionSplice(elements, end, group.before, group.bytes, keptAny));
  }
  for (let first = 0; first < elements.length; first++) {
    if (!dropped(first)) continue;
    let last = first;
    while (last + 1 < elements.length && dropped(last + 1)) last++;
    splices.push({ span: droppedSpan(elements, first, last), bytes: nothing });
    first = last;
  }
  return splices;
}

/** Returns the span of a run of dropped elements, with the one comma that belongs to it. */
function droppedSpan(elements: readonly Span[], first: number, last: number): Span {
  const before = elements[first - 1];
  const after = elements[last + 1];
  if (before) return { start: before.end, end: elements[last]!.end };
  return { start: elements[first]!.start, end: after ? after.start : elements[last]!.end };
}

function insertionSplice(
  elements: readonly Span[],
  end: number,
  before: number,
  items: readonly Uint8Array[],
  keptAny: boolean,
): Splice {
  const previous = elements[before - 1];
  const at = previous ? previous.end : (elements[0]?.start ?? end);
  const joined = items.map((item, index) => {
    const lead = previous || index > 0 ? ',' : '';
    const trail = !previous && keptAny && index === items.length - 1 ? ',' : '';
    return [encoder.encode(lead), item, encoder.encode(trail)];
  });
  return { span: { start: at, end: at }, bytes: concatBytes(joined.flat()) };
}

/** Insertions ahead of a dropped run go ahead of the whole run, next to a kept neighbor. */
function groupInsertions(insertions: readonly Insertion[], dropped: (index: number) => boolean) {
  const groups = new Map<number, Uint8Array[]>();
  let last = { before: 0, anchor: 0 };
  for (const { before, bytes } of insertions.toSorted((a, b) => a.before - b.before)) {
    let anchor = before;
    // A run that was scanned for the insertion before is not scanned again.
    while (anchor > last.before && dropped(anchor - 1)) anchor--;
    if (anchor === last.before) anchor = last.anchor;
    last = { before, anchor };
    const group = groups.get(anchor);
    if (group) group.push(bytes);
    else groups.set(anchor, [bytes]);
  }
  return [...groups].map(([before, bytes]) => ({ before, bytes }));
}

export function concatBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
