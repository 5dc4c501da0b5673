/** Opens the output of `compact`: standard output, or a file that is written completely or not at all, even when it is the input. */
import { createWriteStream, type WriteStream } from 'node:fs';
import { realpath, rename, rm, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { finished, pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { LeporelloError } from '../../errors.ts';
import type { Terminal } from '../terminal.ts';

/** An open output. */
export interface Output {
  /** Resolves when more may be written. */
  write(bytes: Uint8Array): Promise<void>;
  /** Completes the file. */
  commit(): Promise<void>;
  /** Discards what was written to a file. Never rejects. */
  discard(): Promise<void>;
}

/** Opens the output. Rejects with `bad-usage` when the file cannot be written. A file whose name ends in `.gz` is compressed with gzip. */
export async function openOutput(file: string | undefined, terminal: Terminal): Promise<Output> {
  if (file === undefined) {
    return {
      write: (bytes) => terminal.out(bytes),
      commit: async () => undefined,
      discard: async () => undefined,
    };
  }
  const target = await targetOf(resolve(terminal.cwd, file));
  if (target.kind === 'folder')
    throw new LeporelloError('bad-usage', `--out is ${file}, which is a folder. Name a file.`);
  // A device or a pipe is written directly, because it cannot be replaced.
  const draft = target.kind === 'special' ? target.path : `${target.path}.${process.pid}.partial`;
  const stream = await openStream(draft, target, file);
  const sink = file.endsWith('.gz') ? gzipInto(stream) : plainInto(stream);
  return {
    write: (bytes) => sink.write(bytes),
    async commit() {
      await sink.end();
      if (draft !== target.path) await rename(draft, target.path);
    },
    async discard() {
      stream.destroy();
      if (draft !== target.path) await rm(draft, { force: true }).catch(() => undefined);
    },
  };
}

type OutputTarget = {
  readonly kind: 'file' | 'new' | 'folder' | 'special';
  readonly path: string;
  readonly mode: number;
};

async function targetOf(path: string): Promise<OutputTarget> {
  const stats = await stat(path).catch(() => undefined);
  if (stats === undefined) return { kind: 'new', path, mode: 0o666 };
  const kind = stats.isDirectory() ? 'folder' : stats.isFile() ? 'file' : 'special';
  // The target of a symbolic link is replaced, so that the link stays.
  return { kind, path: await realpath(path), mode: stats.mode & 0o777 };
}

async function openStream(path: string, target: OutputTarget, name: string): Promise<WriteStream> {
  const stream = createWriteStream(path, { flags: 'w', mode: target.mode });
  // Each write reports its own error.
  stream.on('error', () => undefined);
  try {
    await new Promise((opened, failed) => {
      stream.once('open', opened).once('error', failed);
    });
    return stream;
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new LeporelloError('bad-usage', `--out is ${name}, which cannot be written: ${said}.`, { cause });
  }
}

type Sink = { write(bytes: Uint8Array): Promise<void>; end(): Promise<void> };

function plainInto(stream: WriteStream): Sink {
  return {
    write: (bytes) => writeTo(stream, bytes),
    async end() {
      stream.end();
      await finished(stream);
    },
  };
}

function gzipInto(stream: WriteStream): Sink {
  const gzip = createGzip();
  const done = pipeline(gzip, stream);
  done.catch(() => undefined);
  return {
    // The file failed, and the error of gzip says only that its stream was ended; so the file's error is reported.
    write: (bytes) => writeTo(gzip, bytes).catch(() => done),
    async end() {
      gzip.end();
      await done;
    },
  };
}

function writeTo(stream: NodeJS.WritableStream, bytes: Uint8Array): Promise<void> {
  return new Promise((written, failed) => {
    stream.write(bytes, (error) => (error ? failed(error) : written()));
  });
}
