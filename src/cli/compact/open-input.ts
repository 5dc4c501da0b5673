/** Opens what is to be compacted: a file or standard input, unpacked where it is gzip (by its first bytes, whatever its name). */
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
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
