/** Opens what is to be compacted: a file or standard input, unpacked where it is gzip (by its first bytes, whatever its name). */
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { concatBytes } from '../../conversation/splice.ts';
import { LeporelloError } from '../../errors.ts';
import type { Terminal } from '../terminal.ts';

export type Input = {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Ends the reading, also a wait for bytes: the iteration rejects. May be called at any time. */
  close(): void;
};

/** Rejects with `bad-usage` when the file cannot be opened. What goes wrong later, the iteration throws. */
export async function openInput(file: string, terminal: Terminal): Promise<Input> {
  const source = file === '-' ? terminal.input() : await openFile(file, terminal.cwd);
  return { chunks: unpacked(source), close: () => void source.destroy() };
}

async function openFile(file: string, cwd: string): Promise<Readable> {
  try {
    const handle = await open(resolve(cwd, file));
    const stats = await handle.stat();
    if (!stats.isDirectory()) return handle.createReadStream();
    await handle.close();
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new LeporelloError('bad-usage', `${file} cannot be read: ${said}.`, { cause });
  }
  throw new LeporelloError('bad-usage', `${file} is a folder: name a file in it.`);
}

async function* unpacked(source: Readable): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const first: Uint8Array[] = [];
  let length = 0;
  while (length < 2) {
    const next = await chunks.next();
    if (next.done === true) break;
    first.push(next.value);
    length += next.value.length;
  }
  const rest = { [Symbol.asyncIterator]: () => chunks };
  const all = after(first, rest);
  const [one, two] = first.flatMap((chunk) => [...chunk.subarray(0, 2)]);
  if (one !== 0x1f || two !== 0x8b) {
    yield* all;
    return;
  }
  const gunzip = createGunzip();
  // Errors come out of the last stream, where they are read.
  pipeline(Readable.from(all), gunzip, () => undefined);
  yield* gunzip as AsyncIterable<Uint8Array>;
}

async function* after(
  first: readonly Uint8Array[],
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* first;
  yield* rest;
}

export type Line = {
  /** From 1. */
  readonly number: number;
  /** Without the `\n` that ends it. */
  readonly bytes: Uint8Array;
  /** The `\n`, or nothing where the last line has none. */
  readonly end: Uint8Array;
};

const lineFeed = new Uint8Array([10]);
const nothing = new Uint8Array(0);

export async function* byteLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  let begun: Uint8Array[] = [];
  let number = 1;
  for await (const chunk of chunks) {
    let from = 0;
    for (let to = chunk.indexOf(10); to >= 0; to = chunk.indexOf(10, from)) {
      yield lineOf([...begun, chunk.subarray(from, to)], number, lineFeed);
      begun = [];
      number += 1;
      from = to + 1;
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
  }
  if (begun.length > 0) yield lineOf(begun, number, nothing);
}

function lineOf(pieces: readonly Uint8Array[], number: number, end: Uint8Array): Line {
  const bytes = concatBytes(pieces);
  const marked = number === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return { number, bytes: marked ? bytes.subarray(3) : bytes, end };
}

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
  yield { number: first.number, bytes: concatBytes(pieces), end: last.end };
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

/** What the system or the unpacker says; undefined for errors of another kind, and where nobody reads what we write. */
export function systemProblem(error: unknown, file: string): string | undefined {
  if (LeporelloError.isInstance(error) || !(error instanceof Error) || !('code' in error)) return undefined;
  if (error.code === 'EPIPE') return undefined;
  const isPacked = String(error.code).startsWith('Z_');
  return `${isPacked ? `${file} is damaged or ends too early` : 'reading or writing failed'}: ${error.message}`;
}
