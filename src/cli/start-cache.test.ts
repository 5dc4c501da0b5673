import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openVocabulary } from '../tokens/bpe.ts';
import { packVocabulary } from '../tokens/pack-vocabulary.ts';
import { cacheFolder, forOtherPrograms, saveVocabulary, vocabulariesIn } from './start-cache.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-cache-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const vocabulary = packVocabulary(['a', 'b', 'ab']);

describe('the code of serve', () => {
  it('loads neither fetch nor the tables of sentences, which no start needs', () => {
    const program = `
      Intl.Segmenter = class { constructor() { throw new Error('A start must not build it.'); } };
      await import(${JSON.stringify(new URL('serve/serve.ts', import.meta.url).href)});
      console.log(process.moduleLoadList.filter((name) => name.includes('undici')).join());`;
    const args = ['--input-type=module', '--disable-warning=ExperimentalWarning', '--eval', program];
    expect(execFileSync(process.execPath, args, { encoding: 'utf8' }).trim()).toBe('');
  });
});

describe('cacheFolder', () => {
  it.each([
    [{ HOME: '/home/a' }, 'linux', '/home/a/.cache/leporello'],
    [{ HOME: '/home/a', XDG_CACHE_HOME: '/big' }, 'linux', '/big/leporello'],
    [{ HOME: '/home/a', XDG_CACHE_HOME: '' }, 'linux', '/home/a/.cache/leporello'],
    [{ HOME: '/home/a', XDG_CACHE_HOME: 'relative' }, 'linux', '/home/a/.cache/leporello'],
    [{ HOME: '/users/a' }, 'darwin', '/users/a/Library/Caches/leporello'],
    [{ LOCALAPPDATA: '/local' }, 'win32', '/local/leporello'],
  ])('of %j on %s is %s', (env, platform, expected) => {
    expect(cacheFolder(env, platform)).toBe(join(expected));
  });
});

describe('forOtherPrograms', () => {
  const compileCacheIn = (env: NodeJS.ProcessEnv) => {
    const program = "console.log(process.env.NODE_COMPILE_CACHE ?? 'none')";
    return execFileSync(process.execPath, ['--eval', program], {
      env: forOtherPrograms(env),
      encoding: 'utf8',
    }).trim();
  };

  it('leaves out the folder of our own compiled code, and no other', () => {
    const own = join(cacheFolder({ XDG_CACHE_HOME: folder })!, 'code');
    expect(compileCacheIn({ NODE_COMPILE_CACHE: own })).toBe('none');
    // The one that the scripts of a checkout set.
    expect(compileCacheIn({ NODE_COMPILE_CACHE: join(folder, 'node_modules/.cache/leporello') })).toBe(
      'none',
    );
    expect(compileCacheIn({ NODE_COMPILE_CACHE: folder })).toBe(folder);
  });
});

describe('vocabulariesIn', () => {
  const read = () => vocabulariesIn(folder)('o200k_base');

  it('reads what was saved, into memory that threads share', async () => {
    await saveVocabulary(folder, 'o200k_base', vocabulary);
    const found = await read();
    expect(found).toBeInstanceOf(SharedArrayBuffer);
    expect(openVocabulary(found!).rank(new TextEncoder().encode('xab'), 1, 3)).toBe(2);
  });

  it('does not return a damaged file, which is then replaced', async () => {
    await saveVocabulary(folder, 'o200k_base', vocabulary);
    const file = join(folder, 'vocabularies', 'o200k_base.bin');
    const bytes = readFileSync(file);
    for (const damaged of [bytes.subarray(0, 100), bytes.subarray(0, 3), bytes.with(50, bytes[50]! ^ 1)]) {
      writeFileSync(file, damaged);
      expect(await read()).toBeUndefined();
    }
    await saveVocabulary(folder, 'o200k_base', vocabulary);
    expect(await read()).toBeDefined();
  });

  it('replaces what another version saved', async () => {
    await saveVocabulary(folder, 'o200k_base', new ArrayBuffer(64));
    await saveVocabulary(folder, 'o200k_base', vocabulary);
    expect((await read())?.byteLength).toBe(vocabulary.byteLength);
  });

  it('rejects without a file, and saving where no folder can be made is ignored', async () => {
    await expect(read()).rejects.toThrow('ENOENT');
    writeFileSync(join(folder, 'file'), '');
    await saveVocabulary(join(folder, 'file'), 'o200k_base', vocabulary);
  });
});
