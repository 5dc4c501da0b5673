import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { helpText } from './help/help.ts';
import { run } from './run.ts';
import { testTerminal } from '../../test/support/test-terminal.ts';

async function runs(...argv: readonly string[]) {
  const terminal = testTerminal();
  const code = await run(argv, terminal);
  return { code, out: terminal.written.out(), err: terminal.written.err() };
}

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };

describe('run', () => {
  it('prints help, and in a checkout how to write a command', async () => {
    const note = `\nIn this checkout, write ${resolve('bin/leporello')} in place of leporello.\n`;
    expect(await runs()).toEqual({ code: 0, out: helpText(undefined) + note, err: '' });
    expect(await runs('--help')).toEqual({ code: 0, out: helpText(undefined) + note, err: '' });
    expect(await runs('recall', '--help')).toEqual({ code: 0, out: helpText('recall') + note, err: '' });
  });

  it('prints its version, also as JSON', async () => {
    expect(await runs('--version')).toEqual({ code: 0, out: `${version}\n`, err: '' });
    expect(await runs('--version', '--json')).toEqual({
      code: 0,
      out: `{"version":"${version}"}\n`,
      err: '',
    });
  });

  it('ends with 2 for invalid arguments', async () => {
    expect(await runs('srve')).toEqual({
      code: 2,
      out: '',
      err: 'leporello: There is no command srve. Did you mean serve? The commands are serve, wrap, compact, recall, inspect, experiment, mcp, replay, savings, doctor, hook, off, bench-ab, demo and help.\n',
    });
    expect(await runs('serve', '--port', 'high')).toEqual({
      code: 2,
      out: '',
      err: 'leporello: port is "high" (from --port), but must be a whole number from 0 to 65535.\n',
    });
  });

  it('names a file of tasks that is no text', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'leporello-run-'));
    const terminal = testTerminal({ cwd });
    const file = join(cwd, 'tasks.bin');
    writeFileSync(file, 'one\nt\0wo\n');
    const code = await run(['bench-ab', 'tasks.bin', '--', 'true'], terminal);
    rmSync(cwd, { recursive: true });
    expect({ code, err: terminal.written.err() }).toEqual({
      code: 2,
      err: `leporello: The file of tasks ${file} is no text. Write one task on each line.\n`,
    });
  });

  it('says which Node a command needs, in an older one and in other runtimes', async () => {
    const started = async (versions: object) => {
      const terminal = testTerminal();
      const code = await run(['serve'], terminal, versions);
      return { code, err: terminal.written.err() };
    };
    const advice =
      'Install a newer Node (https://nodejs.org). The library also runs in Node 20, Bun and Deno (docs/library.md).\n';
    expect(await started({ node: '20.20.2' })).toEqual({
      code: 1,
      err: `leporello: Node 20.20.2 is too old: the commands of Leporello need 22.18 or newer. ${advice}`,
    });
    expect(await started({ node: '24.3.0', bun: '1.4.5' })).toEqual({
      code: 1,
      err: `leporello: This is Bun 1.4.5, but the commands of Leporello need Node 22.18 or newer. ${advice}`,
    });
    const terminal = testTerminal();
    expect(await run(['--version'], terminal, { node: '20.20.2' })).toBe(0);
  });

  it('asks to report an unexpected error', async () => {
    const terminal = testTerminal();
    const broken = {
      ...terminal,
      out: () => Promise.reject(new TypeError('no such thing')),
    };
    expect(await run(['--version'], broken)).toBe(1);
    expect(terminal.written.err()).toMatch(
      /^leporello: unexpected error\. Please report it with these lines:\nTypeError: no such thing\n {4}at /,
    );
  });

  it.skipIf(process.platform !== 'linux')('says in one line that its output cannot be written', async () => {
    const terminal = testTerminal();
    const full = {
      ...terminal,
      out: async (data: string | Uint8Array) => writeFileSync('/dev/full', data),
    };
    expect(await run(['--version'], full)).toBe(1);
    expect(terminal.written.err()).toBe(
      'leporello: The system reported: ENOSPC: no space left on device, write. Check free space and permissions.\n',
    );
  });

  it('prints nothing when its output is closed', async () => {
    const terminal = testTerminal();
    const closed = {
      ...terminal,
      out: () => Promise.reject(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
    };
    expect(await run(['--help'], closed)).toBe(1);
    expect(terminal.written.err()).toBe('');
  });
});
