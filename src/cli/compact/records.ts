/**
 * Decides what the lines of an input are: a record each, or together one JSON document. The first line that is a JSON object by
 * itself settles it; until then lines are held back, and a document is held whole. Pure but for reading the lines.
 */
import { joined, type Line } from './byte-lines.ts';

/** A stretch of the input that is one body; `number` is its first line, `end` what stands behind it. */
export type InputRecord = Line;

export async function* recordsOf(lines: AsyncIterable<Line>): AsyncGenerator<InputRecord> {
  const held: Line[] = [];
  let settled = false;
  for await (const line of lines) {
    if (settled || (held.length === 0 && isBlank(line.bytes))) {
      yield line;
      continue;
    }
    held.push(line);
    // Within a document a message may stand on a line of its own; nothing but a body holds messages.
    if (!isObject(line.bytes, { withMessages: held.length > 1 })) continue;
    settled = true;
    yield* held.splice(0);
  }
  const [first] = held;
  const last = held.at(-1);
  if (first === undefined || last === undefined) return;
  const pieces = held.flatMap((line) => (line === last ? [line.bytes] : [line.bytes, line.end]));
  yield { number: first.number, bytes: joined(pieces), end: last.end };
}

/** True for nothing but JSON white space. */
export function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 32 || byte === 9 || byte === 13 || byte === 10);
}

function isObject(bytes: Uint8Array, { withMessages }: { readonly withMessages: boolean }): boolean {
  const text = new TextDecoder().decode(bytes).trim();
  if (!text.startsWith('{') || !text.endsWith('}')) return false;
  try {
    const value = JSON.parse(text) as { readonly messages?: unknown };
    return !withMessages || Array.isArray(value.messages);
  } catch {
    return false;
  }
}
