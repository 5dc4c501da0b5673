import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { nextTurn } from '../../conversation/steps.ts';
import { afterEach, describe, expect, it } from 'vitest';
import { storeSuite } from '../../../test/support/store-suite.ts';
import { sqliteStore } from './sqlite.ts';
import type { Store } from '../store.ts';

const folders: string[] = [];
const stores: Store[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const folder of folders.splice(0)) {
    chmodSync(folder, 0o700);
    rmSync(folder, { recursive: true, force: true });
  }
});

let suiteFile = '';
storeSuite('sqlite', {
  open(clock) {
    suiteFile = newFile();
    return sqliteStore({ file: suiteFile, clock });
  },
  reopen: (clock) => sqliteStore({ file: suiteFile, clock }),
});

describe('the file of the sqlite store', () => {
  it('is created with its folder, for this user only', async () => {
    const folder = join(newFolder(), 'deep', 'er');
    const store = await open(join(folder, 'memory.db'));
    await store.putMany([entry('a', [1])]);
    const modes = readdirSync(folder)
      .sort()
      .map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]);
    expect(modes).toEqual([
      ['memory.db', '600'],
      ['memory.db-shm', '600'],
      ['memory.db-wal', '600'],
    ]);
    expect((statSync(folder).mode & 0o777).toString(8)).toBe('700');
  });

  it('reuses the space of expired entries', async () => {
    const file = newFile();
    let now = 0;
    const store = await sqliteStore({ file, clock: () => now });
    stores.push(store);
    for (; now < 3_000; now += 1) {
      await store.putMany([{ key: `k${now}`, value: new Uint8Array(2_000), expiresAt: now + 100 }]);
    }
    await store.close();
    // 3,000 entries of 2 kB were written; 100 of them are alive at a time.
    expect(statSync(file).size).toBeLessThan(1_000_000);
  });

  it('causes an error with a remedy if it is not a store', async () => {
    const file = newFile();
    writeFileSync(file, 'Dear diary, '.repeat(100));
    await expect(open(file)).rejects.toMatchObject({
      code: 'store-failed',
      message: `The store ${file} failed: file is not a database. It is damaged or not a store: move it away (then a new one is created), or restore it from a backup.`,
    });
  });

  it('causes an error with a remedy if it is a folder', async () => {
    const file = newFolder();
    await expect(open(file)).rejects.toMatchObject({
      code: 'store-failed',
      message: `The store ${file} failed: unable to open database file. Check that its folder exists and that this user may write there, or choose another file.`,
    });
  });

  it('is not changed if a newer Leporello has written it', async () => {
    const file = newFile();
    const newer = new DatabaseSync(file);
    newer.exec('pragma user_version = 9');
    newer.close();
    await expect(open(file)).rejects.toMatchObject({
      code: 'store-failed',
      message: `The store ${file} has version 9, but this Leporello supports 1: update Leporello or choose another file.`,
    });
  });
});

describe('a sqlite store whose file is locked by another process', () => {
  it('waits without blocking this process, and keeps the order of writes', async () => {
    const file = newFile();
    const store = await open(file, 20_000);
    const release = lock(file);
    // Timers run only if the store does not block: otherwise the lock would never be released.
    setTimeout(release, 60);
    const writes = [store.putMany([entry('a', [1])]), store.delete(['a']), store.putMany([entry('a', [2])])];
    expect(await store.get('a')).toBeUndefined();
    await Promise.all(writes);
    expect(await store.get('a')).toEqual(new Uint8Array([2]));
  });

  it('tries once more when this process did not run until the wait was over', async () => {
    const file = newFile();
    const store = await open(file, 20);
    const release = lock(file);
    const write = store.putMany([entry('a', [1])]);
    await Promise.resolve();
    setTimeout(release, 30);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
    await write;
    expect(await store.get('a')).toEqual(new Uint8Array([1]));
  });

  it('fails after the wait with an error, and works again once the lock is released', async () => {
    const file = newFile();
    const store = await open(file, 30);
    const release = lock(file);
    await expect(store.putMany([entry('a', [1])])).rejects.toMatchObject({
      code: 'store-failed',
      message: `The store ${file} failed: database is locked. Another process keeps it locked: end that process, or use one file per process.`,
    });
    release();
    expect(await store.get('a')).toBeUndefined();
    await store.putMany([entry('a', [2])]);
    expect(await store.get('a')).toEqual(new Uint8Array([2]));
  });

  it('finishes pending writes before it closes', async () => {
    const file = newFile();
    const store = await open(file);
    const release = lock(file);
    const write = store.putMany([entry('a', [1])]);
    const closed = store.close();
    release();
    await Promise.all([write, closed]);
    expect(await (await open(file)).get('a')).toEqual(new Uint8Array([1]));
  });
});

describe('a sqlite store', () => {
  it('is shared as soon as somebody else has written to its file', async () => {
    const file = newFile();
    const one = await open(file);
    expect(one.isShared).toBe(false);
    await one.putMany([entry('a', [1])]);
    expect(one.isShared).toBe(false);
    const other = await open(file);
    expect([one.isShared, other.isShared]).toEqual([false, false]);
    await other.putMany([entry('b', [2])]);
    await nextTurn();
    expect([one.isShared, other.isShared]).toEqual([true, false]);
    await one.putMany([entry('c', [3])]);
    await nextTurn();
    expect([one.isShared, other.isShared]).toEqual([true, true]);
  });

  it('is shared from the start where its owner says so', async () => {
    const store = await sqliteStore({ file: newFile(), isShared: true });
    stores.push(store);
    expect(store.isShared).toBe(true);
  });
});

describe('mayHold of a sqlite store', () => {
  const keys = Array.from({ length: 1_800 }, (_, at) => `key ${at}`);
  /** Every third key has a value. */
  const isThere = (at: number) => at % 3 === 0;

  it('is true for every entry of an earlier process, and soon false for most others', async () => {
    const file = newFile();
    const before = await open(file);
    await before.putMany(keys.flatMap((key, at) => (isThere(at) ? [entry(key, [at % 256])] : [])));
    await before.close();
    const store = await open(file);
    // After two look-ups the store knows which keys are in the file, and asks it only for these.
    for (let round = 0; round < 4; round++)
      expect(keys.filter((key) => store.mayHold!([key]))).toEqual(
        expect.arrayContaining(keys.filter((_, at) => isThere(at))),
      );
    expect(keys.filter((key) => store.mayHold!([key])).length).toBeLessThan(700);
  });

  it('is true for what was written since', async () => {
    const store = await open(newFile());
    expect(store.mayHold!(['new', 'guarded'])).toBe(false);
    await store.putMany([entry('new', [1])]);
    await store.putUnless([], [entry('guarded', [2])]);
    expect(['new', 'guarded', 'none'].map((key) => store.mayHold!([key]))).toEqual([true, true, false]);
    expect(store.mayHold!(['none', 'new'])).toBe(true);
  });

  it('is true for many more entries than there were at the start', async () => {
    const store = await open(newFile());
    const many = Array.from({ length: 70_000 }, (_, at) => `entry ${at}`);
    for (let from = 0; from < many.length; from += 10_000)
      await store.putMany(many.slice(from, from + 10_000).map((key) => entry(key, [1])));
    for (let round = 0; round < 300; round++) expect(store.mayHold!([many[round * 230]!])).toBe(true);
    expect(store.mayHold!(['none'])).toBe(false);
  });

  it('is true while another store of this process uses it', async () => {
    const file = newFile();
    const [one, other] = [await open(file), await open(file)];
    expect(one.mayHold!(['key'])).toBe(true);
    await other.close();
    expect(one.mayHold!(['key'])).toBe(false);
  });
});

describe('a sqlite store and other processes', () => {
  const batch = 20;

  it('has all acknowledged writes, and only whole batches, when its process is killed', async () => {
    const file = newFile();
    const writer = spawnWriter(file, 'killed', 100_000);
    let said = '';
    writer.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.split('\n').length > 30) writer.kill('SIGKILL');
    });
    expect(await ended(writer)).toBe('SIGKILL');
    const acknowledged = said.split('\n').filter((line) => line !== '');
    expect(acknowledged.length).toBeGreaterThanOrEqual(30);

    const store = await open(file);
    const counts: number[] = [];
    for (let i = 0; i < acknowledged.length + 5; i += 1) {
      const keys = Array.from({ length: batch }, (_, j) => `killed/${i}/${j}`);
      counts.push((await store.getMany(keys)).filter((value) => value?.length === 3_000).length);
    }
    expect(counts.slice(0, acknowledged.length)).toEqual(acknowledged.map(() => batch));
    expect(counts.filter((count) => count !== 0 && count !== batch)).toEqual([]);
  });

  it('accepts writes of several processes that start at once', async () => {
    const file = newFile();
    const writers = ['one', 'two', 'three'].map((name) => spawnWriter(file, name, 40));
    for (const writer of writers) writer.stdout.resume();
    expect(await Promise.all(writers.map(ended))).toEqual([0, 0, 0]);
    const keys = ['one', 'two', 'three'].flatMap((name) =>
      Array.from({ length: 40 * batch }, (_, i) => `${name}/${Math.floor(i / batch)}/${i % batch}`),
    );
    const store = await open(file);
    expect((await store.getMany(keys)).filter((value) => value?.length !== 3_000)).toEqual([]);
  });

  /** Writes batches of 20 entries of 3 kB, and prints the number of each acknowledged one. */
  function spawnWriter(file: string, name: string, batches: number) {
    return spawnProgram(`
      import { writeSync } from 'node:fs';
      const store = await sqliteStore({ file: ${JSON.stringify(file)}, lockWaitMs: 60_000 });
      for (let i = 0; i < ${batches}; i += 1) {
        await store.putMany(Array.from({ length: ${batch} }, (_, j) =>
          ({ key: '${name}/' + i + '/' + j, value: new Uint8Array(3_000).fill(i), expiresAt: undefined })));
        writeSync(1, i + '\\n');
      }
      await store.close();`);
  }
});

describe('a read-only sqlite store', () => {
  const outcomeOf =
    'const outcome = (call) => call.then((value) => value?.[0] ?? "fine", (error) => error.code + ": " + error.message);';

  const nobody = 65_534;

  it.each([
    ['file', 0o444, 0o755],
    ['folder', 0o644, 0o555],
    ['file and folder', 0o444, 0o555],
  ])(
    'still reads when the %s is read-only, and says what to do when written to',
    async (_, fileMode, folderMode) => {
      const file = newFile();
      const store = await open(file);
      await store.putMany([entry('a', [7])]);
      await store.close();
      makeReadOnly(file, fileMode, folderMode);

      const said = runUnprivileged(`${outcomeOf}
      const store = await sqliteStore({ file: ${JSON.stringify(file)} });
      console.log(await outcome(store.get('a')));
      console.log(await outcome(store.getMany(['b', 'a']).then((values) => values[1])));
      console.log(await outcome(store.putMany([{ key: 'a', value: new Uint8Array([8]), expiresAt: undefined }])));
      console.log(await outcome(store.delete(['a'])));
      console.log(await outcome(store.get('a')));
      await store.close();`);
      const refused = `store-failed: The store ${file} failed: attempt to write a readonly database. Let this user write the file and its folder, or choose another file.`;
      expect(said).toEqual(['7', '7', refused, refused, '7', '']);
    },
  );

  it('says what to do when there is nothing to read yet', () => {
    const file = newFile();
    makeReadOnly(file, 0o444, 0o555);
    const said = runUnprivileged(`${outcomeOf}
      console.log(await outcome(sqliteStore({ file: ${JSON.stringify(file)} })));`);
    expect(said).toEqual([
      `store-failed: The store ${file} failed: unable to open database file. Check that its folder exists and that this user may write there, or choose another file.`,
      '',
    ]);
  });

  function makeReadOnly(file: string, fileMode: number, folderMode: number): void {
    const folder = join(file, '..');
    for (const [path, mode] of [
      [file, fileMode],
      [folder, folderMode],
    ] as const) {
      if (!existsSync(path)) continue;
      if (process.getuid?.() === 0) chownSync(path, nobody, nobody);
      chmodSync(path, mode);
    }
  }

  /** Root may write everything: if the tests run as root, the program first becomes the user nobody. */
  function runUnprivileged(program: string): string[] {
    const become = `if (process.getuid?.() === 0) {
      process.setgroups([]);
      process.setgid(${nobody});
      process.setuid(${nobody});
    }`;
    const { stdout, stderr } = spawnSync(process.execPath, programArguments(`${become}\n${program}`), {
      encoding: 'utf8',
    });
    return `${stdout}${stderr}`.split('\n');
  }
});

describe('importing the sqlite store', () => {
  it('does not load SQLite; opening it prints no warning', () => {
    const { stdout, stderr } = spawnSync(
      process.execPath,
      programArguments(`
        const loaded = () => process.moduleLoadList.some((name) => name.endsWith(' sqlite'));
        const before = loaded();
        const store = await sqliteStore({ file: ${JSON.stringify(newFile())} });
        console.log(before, loaded());
        await store.close();
        process.emitWarning('something else');`),
      { encoding: 'utf8' },
    );
    expect(stdout).toBe('false true\n');
    expect(stderr.replace(/\d+/, 'PID').split('\n')[0]).toBe('(node:PID) Warning: something else');
  });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'leporello-sqlite-'));
  folders.push(folder);
  return folder;
}

function newFile(): string {
  return join(newFolder(), 'memory.db');
}

/** Locks the file for writing. Returns a function that releases it. */
function lock(file: string): () => void {
  const other = new DatabaseSync(file);
  other.exec('begin immediate');
  return () => {
    other.exec('rollback');
    other.close();
  };
}

async function open(file: string, lockWaitMs?: number): Promise<Store> {
  const store = await sqliteStore({ file, ...(lockWaitMs && { lockWaitMs }) });
  stores.push(store);
  return store;
}

function entry(key: string, value: readonly number[]) {
  return { key, value: new Uint8Array(value), expiresAt: undefined };
}

function programArguments(program: string): string[] {
  const source = new URL('./sqlite.ts', import.meta.url).href;
  return ['--input-type=module', '-e', `import { sqliteStore } from ${JSON.stringify(source)};\n${program}`];
}

function spawnProgram(program: string) {
  return spawn(process.execPath, programArguments(program), { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Returns the exit code, or the signal that ended the process. */
function ended(child: ReturnType<typeof spawnProgram>): Promise<number | string | null> {
  return new Promise((done) => child.once('close', (code, signal) => done(signal ?? code)));
}
