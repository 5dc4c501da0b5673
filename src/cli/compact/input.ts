/** Reads the input of `compact` and `replay`: a file or standard input, decompressed if it is gzip (detected by its first bytes), in records. */
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { concatBytes } from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import type { Terminal } from '../terminal.ts';

/** An open input. */
export type Input = {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Stops reading, even while it waits for bytes: the iteration rejects. May be called at any time. */
  close(): void;
};

/** Opens an input. Rejects with `bad-usage` when the file cannot be opened. The iteration throws later errors, and `bad-usage` for binary data. */
export async function openInput(file: string, terminal: Terminal): Promise<Input> {
  const source = file === '-' ? terminal.input() : await openFile(file, terminal.cwd);
  const name = file === '-' ? 'The standard input' : file;
  return { chunks: textIn(unpacked(source), name), close: () => void source.destroy() };
}

/** The bytes that tell text from binary data, as in git: text has no NUL among them. */
const bytesLookedAt = 8_000;

/** Passes text on. Throws `bad-usage` for binary data, which would be copied to the output line by line. */
async function* textIn(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  let seen = 0;
  for await (const chunk of chunks) {
    const at = chunk.subarray(0, Math.max(0, bytesLookedAt - seen)).indexOf(0);
    if (at >= 0)
      throw new LeporelloError(
        'bad-usage',
        `${name} is no text in UTF-8: byte ${seen + at} is NUL. Name a file of JSON, or of one JSON object per line; it may be packed with gzip.`,
      );
    seen += chunk.length;
    yield chunk;
  }
}

async function openFile(file: string, cwd: string): Promise<Readable> {
  try {
    const handle = await open(resolve(cwd, file));
    const stats = await handle.stat();
    if (!stats.isDirectory()) return handle.createReadStream();
    await handle.close();
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new LeporelloError('bad-usage', `Cannot read ${file}: ${said}.`, { cause });
  }
  throw new LeporelloError('bad-usage', `${file} is a folder. Name a file in it.`);
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
  // The reader gets all errors from `gunzip`.
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

/** A line, or several lines that are one record. */
export type InputLine = {
  /** Number of the (first) line, from 1. */
  readonly number: number;
  /** The bytes without the `\n` at the end. */
  readonly bytes: Uint8Array;
  /** The `\n`, or nothing for a last line without it. */
  readonly end: Uint8Array;
};

const lineFeed = new Uint8Array([10]);
const nothing = new Uint8Array(0);

/** Splits a byte stream into lines, one in memory at a time. Only a byte order mark at the start is removed. */
export async function* byteLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<InputLine> {
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

function lineOf(pieces: readonly Uint8Array[], number: number, end: Uint8Array): InputLine {
  const bytes = concatBytes(pieces);
  const marked = number === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return { number, bytes: marked ? bytes.subarray(3) : bytes, end };
}

/**
 * Yields the records of an input: either each line is a record, or all lines together are one JSON document. The first line that is a JSON
 * object by itself decides this; until then lines are held back, and a document is held completely.
 */
export async function* recordsOf(lines: AsyncIterable<InputLine>): AsyncGenerator<InputLine> {
  const held: InputLine[] = [];
  let isOnePerLine = false;
  for await (const line of lines) {
    if (isOnePerLine || (held.length === 0 && isBlank(line.bytes))) {
      yield line;
      continue;
    }
    held.push(line);
    // Inside a document a line may contain just a message; only a body has `messages`.
    if (!isObject(line.bytes, { withMessages: held.length > 1 })) continue;
    isOnePerLine = true;
    yield* held.splice(0);
  }
  const [first] = held;
  const last = held.at(-1);
  if (first === undefined || last === undefined) return;
  const pieces = held.flatMap((line) => (line === last ? [line.bytes] : [line.bytes, line.end]));
  yield { number: first.number, bytes: concatBytes(pieces), end: last.end };
}

/** True when all bytes are JSON white space. */
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

/** Explains an error of the system or of gzip; undefined for other errors, and for EPIPE, when the reader has closed the pipe. */
export function systemProblem(error: unknown, file: string): string | undefined {
  if (LeporelloError.isInstance(error) || !(error instanceof Error) || !('code' in error)) return undefined;
  if (error.code === 'EPIPE') return undefined;
  const isPacked = String(error.code).startsWith('Z_');
  return `${isPacked ? `${file} is damaged or ends too early` : 'reading or writing failed'}: ${error.message}`;
}
