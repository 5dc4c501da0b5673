/**
 * Sets up property tests. `npm test` draws from one fixed seed, so that a failure is due to a change and not to chance. `npm run test:laws`
 * draws a new seed at every run, unless `CI` is set. A failure prints its seed: add a test with it. Shrinking ends in time for the test to
 * report the failure. A file that makes no progress is ended.
 */
import * as fc from 'fast-check';
import { afterEach, beforeEach, expect } from 'vitest';
import { startWatchdog } from './watchdog.ts';

const isSeedFixed = process.env['FIXED_SEED'] !== undefined || process.env['CI'] !== undefined;

fc.configureGlobal({
  interruptAfterTimeLimit: 150_000,
  ...(isSeedFixed && { seed: 20_261_121 }),
});

// The files of one process may share it.
const shared = globalThis as { tellWatchdog?: (name: string) => void };
const tellWatchdog = (shared.tellWatchdog ??= startWatchdog());
const tell = (state: string) => {
  const { testPath = '', currentTestName = '' } = expect.getState();
  tellWatchdog(`${testPath} > ${currentTestName} (${state})`);
};
tell('file loads');
beforeEach(() => tell('began'));
afterEach(() => tell('ended'));
