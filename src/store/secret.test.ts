import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { inMemoryStore } from './in-memory.ts';
import { isOfOtherSecret, loadSecret } from './secret.ts';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'leporello-secret-'));
  folders.push(folder);
  return folder;
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe('loadSecret', () => {
  it('uses LEPORELLO_SECRET if it is set, and creates no file', async () => {
    const dataDir = newFolder();
    const secret = await loadSecret({
      dataDir,
      env: { LEPORELLO_SECRET: ' a secret of more than 32 characters\n' },
    });
    expect(text(secret)).toBe('a secret of more than 32 characters');
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it.each(['', ' \n'])(
    'takes LEPORELLO_SECRET=%j for one that is not set, and makes a file',
    async (empty) => {
      const dataDir = newFolder();
      await loadSecret({ dataDir, env: { LEPORELLO_SECRET: empty } });
      expect(readdirSync(dataDir)).toEqual(['secret']);
    },
  );

  it('rejects a LEPORELLO_SECRET that is too short', async () => {
    await expect(
      loadSecret({ dataDir: newFolder(), env: { LEPORELLO_SECRET: 'too short' } }),
    ).rejects.toMatchObject({
      code: 'bad-config',
      message: `LEPORELLO_SECRET has 9 characters; it needs at least 32. Set a longer one, or unset the variable: then a secret is created in the data folder.`,
    });
  });

  it('creates a file for this user only, and reads it from then on', async () => {
    const dataDir = join(newFolder(), 'new', 'data');
    const secret = await loadSecret({ dataDir, env: {} });
    expect(text(secret)).toMatch(/^[\w-]{43}$/);
    expect(readdirSync(dataDir)).toEqual(['secret']);
    expect((statSync(join(dataDir, 'secret')).mode & 0o777).toString(8)).toBe('600');
    expect(await loadSecret({ dataDir, env: {} })).toEqual(secret);
  });

  it.skipIf(process.platform !== 'linux')('fails at once where no folder can be made', async () => {
    await expect(loadSecret({ dataDir: '/proc/leporello/data', env: {} })).rejects.toMatchObject({
      code: 'bad-config',
      message:
        "Cannot read or create the secret file /proc/leporello/data/secret: ENOENT: no such file or directory, mkdir '/proc/leporello'. Let this user write there, or set LEPORELLO_SECRET to at least 32 characters.",
    });
  });

  it('returns the same secret when the file is copied into the environment', async () => {
    const dataDir = newFolder();
    const secret = await loadSecret({ dataDir, env: {} });
    const copied = { LEPORELLO_SECRET: readFileSync(join(dataDir, 'secret'), 'utf8') };
    expect(await loadSecret({ dataDir: newFolder(), env: copied })).toEqual(secret);
  });

  it('creates a different secret in another folder', async () => {
    const secrets = [newFolder(), newFolder()].map((dataDir) => loadSecret({ dataDir, env: {} }));
    expect(new Set((await Promise.all(secrets)).map(text)).size).toBe(2);
  });

  it('returns one secret to all processes that start at once', async () => {
    const dataDir = join(newFolder(), 'data');
    const source = new URL('./secret.ts', import.meta.url).href;
    const program = `
      import { loadSecret } from ${JSON.stringify(source)};
      const secret = await loadSecret({ dataDir: ${JSON.stringify(dataDir)}, env: {} });
      process.stdout.write(new TextDecoder().decode(secret));`;
    const elsewhere = Array.from({ length: 3 }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      for await (const chunk of child.stdout) said += String(chunk);
      return said;
    });
    const here = Array.from({ length: 20 }, async () => text(await loadSecret({ dataDir, env: {} })));
    const secrets = await Promise.all([...elsewhere, ...here]);
    expect(secrets).toEqual(secrets.map(() => readFileSync(join(dataDir, 'secret'), 'utf8').trim()));
    expect(readdirSync(dataDir)).toEqual(['secret']);
  });

  it('rejects a truncated file', async () => {
    const dataDir = newFolder();
    writeFileSync(join(dataDir, 'secret'), 'half');
    await expect(loadSecret({ dataDir, env: {} })).rejects.toMatchObject({
      code: 'bad-config',
      message: `${join(dataDir, 'secret')} has 4 characters; it needs at least 32. Restore it, or delete it: then a new secret is created, and nothing stored under the old one can be read.`,
    });
  });

  it('says what to do when no file can be created', async () => {
    const file = join(newFolder(), 'a-file');
    writeFileSync(file, '');
    await expect(loadSecret({ dataDir: file, env: {} })).rejects.toMatchObject({
      code: 'bad-config',
      message: expect.stringMatching(
        /^Cannot read or create the secret file .*a-file.secret: ENOTDIR.* Let this user write there, or set LEPORELLO_SECRET to at least 32 characters\.$/,
      ),
    });
  });
});

describe('isOfOtherSecret', () => {
  const one = new TextEncoder().encode('a secret that two gateways share');
  const other = new TextEncoder().encode('a secret that nobody shares with us');

  it('is false for an empty store, which it marks, and true for every other secret from then on', async () => {
    const store = inMemoryStore();
    expect(await isOfOtherSecret(store, other, { readOnly: true })).toBe(false);
    expect(await isOfOtherSecret(store, one)).toBe(false);
    expect(await isOfOtherSecret(store, one)).toBe(false);
    expect(await isOfOtherSecret(store, other)).toBe(true);
    expect(await isOfOtherSecret(store, other, { readOnly: true })).toBe(true);
    expect(await isOfOtherSecret(store, one, { readOnly: true })).toBe(false);
  });
});
