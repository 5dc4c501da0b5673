/**
 * Sets up property tests. `npm test` draws from one fixed seed, so that a failure is due to a change and not to chance. `npm run test:laws`
 * draws a new seed at every run, unless `CI` is set. A failure prints its seed: add a test with it. Shrinking ends in time for the test to
 * report the failure.
 */
import * as fc from 'fast-check';

const isSeedFixed = process.env['FIXED_SEED'] !== undefined || process.env['CI'] !== undefined;

fc.configureGlobal({
  interruptAfterTimeLimit: 150_000,
  ...(isSeedFixed && { seed: 20_261_121 }),
});
