import { readFileSync } from 'node:fs';
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
    const note = '\nIn this checkout, write npm run leporello -- in place of leporello.\n';
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
