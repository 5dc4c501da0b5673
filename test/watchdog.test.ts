import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const watchdog = JSON.stringify(new URL('watchdog.ts', import.meta.url));

/** Runs a program that tells of its progress, then the statements. */
function ended(statements: string) {
  const program = `
    const { startWatchdog } = await import(${watchdog});
    const tell = startWatchdog();
    tell('the test “größer” (began)');
    ${statements}`;
  const { signal, status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    env: { ...process.env, TEST_STALL_MS: '1000', NODE_OPTIONS: '' },
    encoding: 'utf8',
    timeout: 120_000,
  });
  return { signal, status, lines: stderr.split('\n') };
}

const message = 'No test began or ended for 1 s, last: the test “größer” (began)';

it('ends a process that does not give its thread back, with the stack', () => {
  const { signal, lines } = ended('function spin() { for (let at = 0; ; at++) if (at < 0) return; } spin();');
  expect([signal, lines[0], lines[1]]).toEqual([
    'SIGKILL',
    message,
    expect.stringMatching(/^ {4}at spin \(.*\)$/),
  ]);
});

it('ends a process whose thread waits for another thread', () => {
  const { signal, lines } = ended('Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);');
  expect([signal, lines[0], lines[1]]).toEqual([
    'SIGKILL',
    message,
    expect.stringMatching(/^ {4}at <anonymous> \(.*\)$/),
  ]);
});

it('ends a process that waits, but not one that tells of progress or has nothing left to do', () => {
  const { signal, lines } = ended('setInterval(() => {}, 100);');
  expect([signal, lines[0]]).toEqual(['SIGKILL', message]);
  const told = ended(
    "const timer = setInterval(() => tell('next'), 100); setTimeout(() => clearInterval(timer), 3_000);",
  );
  expect(told).toEqual({ signal: null, status: 0, lines: [''] });
  expect(ended('')).toEqual({ signal: null, status: 0, lines: [''] });
});
