import { execFileSync } from 'node:child_process';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile as readLater } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { testTerminal } from '../../../test/support/test-terminal.ts';
import { openOutput } from './open-output.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-output-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (file: string | undefined) => openOutput(file, testTerminal({ cwd: folder }));
const bytes = (text: string) => new TextEncoder().encode(text);
const read = (file: string) => readFileSync(join(folder, file), 'utf8');

describe('openOutput', () => {
  it('writes to standard output when no file is named', async () => {
    const terminal = testTerminal();
    const output = await openOutput(undefined, terminal);
    await output.write(bytes('a'));
    await output.commit();
    expect(terminal.written.out()).toBe('a');
  });

  it('shows a file only when it is complete, with the permissions of the file it replaces', async () => {
    writeFileSync(join(folder, 'out'), 'old', { mode: 0o600 });
    const output = await open('out');
    await output.write(bytes('new'));
    expect(read('out')).toBe('old');
    await output.commit();
    expect(read('out')).toBe('new');
    expect(statSync(join(folder, 'out')).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['out']);
  });

  it('leaves nothing behind when it is discarded', async () => {
    writeFileSync(join(folder, 'out'), 'old');
    const output = await open('out');
    await output.write(bytes('new'));
    await output.discard();
    expect(readdirSync(folder)).toEqual(['out']);
    expect(read('out')).toBe('old');
  });

  it('writes through a symbolic link', async () => {
    writeFileSync(join(folder, 'real'), 'old');
    symlinkSync('real', join(folder, 'link'));
    const output = await open('link');
    await output.write(bytes('new'));
    await output.commit();
    expect([readlinkSync(join(folder, 'link')), read('real')]).toEqual(['real', 'new']);
  });

  it('compresses a file whose name ends in .gz', async () => {
    const output = await open('out.gz');
    for (let i = 0; i < 1_000; i++) await output.write(bytes('line\n'));
    await output.commit();
    expect(gunzipSync(readFileSync(join(folder, 'out.gz'))).toString()).toBe('line\n'.repeat(1_000));
  });

  it('writes into a pipe directly', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    const reading = readLater(join(folder, 'pipe'), 'utf8');
    const output = await open('pipe');
    await output.write(bytes('through'));
    await output.commit();
    expect(await reading).toBe('through');
    expect(readdirSync(folder)).toEqual(['pipe']);
  });

  it.each([
    ['.', '--out is ., which is a folder. Name a file.'],
    ['no/such/file', '--out is no/such/file, which cannot be written: ENOENT'],
  ])('refuses %s', async (file, sentence) => {
    await expect(open(file)).rejects.toThrow(sentence);
    await expect(open(file)).rejects.toMatchObject({ code: 'bad-usage' });
  });
});
