/**
 * Runs the shell blocks of the README and the docs that call `leporello`, as a user would paste them, with the real command. A server is
 * stopped once it listens. Other programs (agents, curl, git) are stand-ins that succeed.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { codeBlocks } from './support/code-blocks.ts';

const blocks = codeBlocks('sh').filter(({ code }) => /\bleporello (?!&&)/.test(code));

/** The stand-in for `leporello`, which runs the real command. A server gets SIGTERM once it listens; recall and inspect only print help, because their ids are examples. */
const leporello = `#!${process.execPath}
import { spawn } from 'node:child_process';
const args = process.argv.slice(2);
const serves = args[0] === 'serve';
const more = serves ? ['--port', '0'] : ['recall', 'inspect'].includes(args[0]) ? ['--help'] : [];
const child = spawn(process.execPath, [${JSON.stringify(resolve('src/cli/main.ts'))}, ...args, ...more], {
  stdio: ['ignore', serves ? 'pipe' : 'inherit', 'inherit'],
});
child.stdout?.on('data', (text) => String(text).includes('listens') && child.kill('SIGTERM'));
child.on('exit', (code) => (process.exitCode = code ?? 1));
`;

describe('a shell block in the docs', () => {
  it.each(blocks.map((block) => [`${block.path}:${block.line}`, block.code]))('runs: %s', (_, code) => {
    const folder = mkdtempSync(join(tmpdir(), 'leporello-docs-'));
    try {
      const bin = join(folder, 'bin');
      mkdirSync(bin);
      const sample = readFileSync('src/cli/samples/missing-invoices.json', 'utf8');
      writeFileSync(join(folder, 'body.json'), sample);
      writeFileSync(join(folder, 'requests.jsonl'), `${JSON.stringify(JSON.parse(sample))}\n`);
      const standIns = ['claude', 'codex', 'gemini', 'qwen', 'curl', 'git', 'npm', 'node'];
      for (const name of standIns) writeFileSync(join(bin, name), '#!/bin/sh\nexit 0\n');
      writeFileSync(join(bin, 'leporello'), leporello);
      for (const name of [...standIns, 'leporello']) chmodSync(join(bin, name), 0o755);
      // A checkout in the home folder.
      mkdirSync(join(folder, 'leporello'));
      symlinkSync(bin, join(folder, 'leporello', 'bin'));
      symlinkSync(resolve('examples'), join(folder, 'examples'));
      mkdirSync(join(folder, '.local', 'bin'), { recursive: true });
      writeFileSync(join(bin, 'package.json'), '{"type":"module"}');
      const end = spawnSync('sh', ['-e'], {
        input: code,
        cwd: folder,
        encoding: 'utf8',
        // A command that does not end fails here, instead of holding up all other tests.
        timeout: 120_000,
        env: { PATH: `${bin}:/usr/bin:/bin`, HOME: folder },
      });
      expect({ status: end.status, stderr: end.stderr }).toEqual({
        status: 0,
        stderr: expect.not.stringMatching(/error|unknown|ignored/i) as string,
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
