/**
 * Keeps what a start computes in the user's cache folder, so that the next start is faster: compiled code, and the vocabularies of tokenizers.
 * Nothing depends on it. A missing, damaged or read-only folder makes a start slower, and a deleted one is written again.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import module from 'node:module';
import { isAbsolute, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { homeOf } from './home.ts';
import type { PackedVocabulary } from '../tokens/bpe.ts';
import type { VocabularySource } from '../tokens/load-counter.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Returns the folder, by the convention of the platform; undefined for a user without a home. */
export function cacheFolder(env: Env, platform: string = process.platform): string | undefined {
  const xdg = env['XDG_CACHE_HOME'] ?? '';
  // A relative folder would be another one in each working folder, and may belong to somebody else.
  if (isAbsolute(xdg)) return join(xdg, 'leporello');
  const local = env['LOCALAPPDATA'];
  if (platform === 'win32' && local) return join(local, 'leporello');
  const home = homeOf(env);
  const inHome: Readonly<Record<string, string>> = { win32: 'AppData/Local', darwin: 'Library/Caches' };
  return home === undefined ? undefined : join(home, inHome[platform] ?? '.cache', 'leporello');
}

/**
 * Makes this process and its threads load compiled code from the folder. It must be called before the code is loaded. Does nothing when the
 * environment already says where compiled code is kept.
 */
export function enableCodeCache(env: NodeJS.ProcessEnv): void {
  const cache = cacheFolder(env);
  if (cache === undefined || env['NODE_COMPILE_CACHE'] !== undefined) return;
  try {
    const folder = join(cache, 'code');
    module.enableCompileCache(folder);
    // Threads read the variable.
    env['NODE_COMPILE_CACHE'] = folder;
  } catch {
    // Without a folder, the code is compiled again.
  }
}

/** Returns the environment for other programs, without the folder of our compiled code: theirs would get into it. */
export function forOtherPrograms(env: Env): Env {
  const isOurs = /[\\/]leporello(?:[\\/]code)?$/.test(env['NODE_COMPILE_CACHE'] ?? '');
  return isOurs ? { ...env, NODE_COMPILE_CACHE: undefined } : env;
}

/** Writes code that was compiled in this process, for the next start. It takes some 100 ms when there is new code, else about a millisecond. */
export function saveCode(): void {
  // Node 22.18 has no such function; it saves the code when the process ends.
  module.flushCompileCache?.();
}

const fileOf = (folder: string, encoding: string): string => join(folder, 'vocabularies', `${encoding}.bin`);

/** Bytes of the checksum at the beginning of a file. */
const checksumBytes = 4;

/** Returns a source that reads vocabularies from the folder. A damaged file counts as missing. */
export function vocabulariesIn(folder: string): VocabularySource {
  return async (encoding) => {
    const file = await readFile(fileOf(folder, encoding));
    const packed = file.subarray(checksumBytes);
    if (file.length <= checksumBytes || crc32(packed) !== file.readUInt32LE()) return undefined;
    const shared = new SharedArrayBuffer(packed.length);
    new Uint8Array(shared).set(packed);
    return shared;
  };
}

/** Writes a vocabulary to the folder, unless the file is the same. Never rejects. */
export async function saveVocabulary(
  folder: string,
  encoding: Parameters<VocabularySource>[0],
  vocabulary: PackedVocabulary,
): Promise<void> {
  const file = fileOf(folder, encoding);
  const draft = `${file}.${process.pid}`;
  try {
    const contents = Buffer.concat([Buffer.alloc(checksumBytes), new Uint8Array(vocabulary)]);
    contents.writeUInt32LE(crc32(contents.subarray(checksumBytes)));
    const known = await readFile(file).catch(() => undefined);
    if (known?.equals(contents)) return;
    await mkdir(join(folder, 'vocabularies'), { recursive: true });
    await writeFile(draft, contents);
    await rename(draft, file);
  } catch {
    await rm(draft, { force: true }).catch(() => undefined);
  }
}
