/** What .ci/run counts: vitest's own numbers, and as failed whatever vitest fails without failing a test. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** The line that count-tests.mjs prints for a report (undefined: none was written) and vitest's exit code. */
function counted(report: object | undefined, exitCode: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'leporello-'));
  const path = join(folder, 'report.json');
  if (report !== undefined) writeFileSync(path, JSON.stringify(report));
  const { stdout } = spawnSync(process.execPath, ['scripts/count-tests.mjs', path, String(exitCode)]);
  rmSync(folder, { recursive: true });
  return stdout.toString();
}

const passing = { assertionResults: [{}], status: 'passed' };

it('counts what vitest counts', () => {
  const testResults = [passing, { assertionResults: [{}], status: 'failed' }];
  expect(counted({ numPassedTests: 12, numFailedTests: 0, testResults: [passing] }, 0)).toBe('12 0\n');
  expect(counted({ numPassedTests: 12, numFailedTests: 3, testResults }, 1)).toBe('12 3\n');
});

it('counts a file that could not be loaded', () => {
  const testResults = [passing, { assertionResults: [], status: 'failed' }];
  expect(counted({ numPassedTests: 1, numFailedTests: 0, testResults }, 1)).toBe('1 1\n');
});

it('counts an error outside any test, a run without tests, and a run without a report', () => {
  expect(counted({ numPassedTests: 1, numFailedTests: 0, testResults: [passing] }, 1)).toBe('1 1\n');
  expect(counted({ numPassedTests: 0, numFailedTests: 0, testResults: [] }, 0)).toBe('0 1\n');
  expect(counted(undefined, 0)).toBe('0 1\n');
});
