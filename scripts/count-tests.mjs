/**
 * Reads vitest's JSON report and prints two numbers, passed and failed, for .ci/run. It also counts what
 * vitest does not count as a failed test: a file that could not be loaded, an error outside any test, a run that left no report.
 * Usage: node scripts/count-tests.mjs REPORT EXIT-CODE
 */
import { readFileSync } from 'node:fs';

const [report = '', exitCode = '1'] = process.argv.slice(2);
console.log(count(read(report), Number(exitCode)).join(' '));

/**
 * @param {Report | undefined} found
 * @param {number} code
 *
 * @typedef {{ assertionResults: readonly unknown[], status: string }} FileReport
 * @typedef {{ numPassedTests: number, numFailedTests: number, testResults: readonly FileReport[] }} Report
 */
function count(found, code) {
  if (found === undefined) return [0, 1];
  const notLoaded = found.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  );
  const failed = found.numFailedTests + notLoaded.length;
  const unseen = (code !== 0 || found.numPassedTests === 0) && failed === 0;
  return [found.numPassedTests, unseen ? 1 : failed];
}

/**
 * @param {string} path
 * @returns {Report | undefined}
 */
function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
