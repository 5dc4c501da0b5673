/** Tests the counts of .ci/run: vitest's own numbers; a failure of vitest outside a test counts as failed. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Returns the line that count-tests.mjs prints for vitest's report (undefined: none was written) and exit code. */
function counted(report: object | undefined, exitCode: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'leporello-'));
  const path = join(folder, 'report.json');
  if (report !== undefined) writeFileSync(path, JSON.stringify(report));
  const { stdout } = spawnSync(process.execPath, ['scripts/count-tests.mjs', path, String(exitCode)]);
  rmSync(folder, { recursive: true });
  return stdout.toString();
}

const passing = { assertionResults: [{}], status: 'passed' };

it("counts vitest's passed and failed tests", () => {
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
