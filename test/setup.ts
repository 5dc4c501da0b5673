/**
 * Sets up property tests. `npm test` draws from one fixed seed, so that a failure is due to a change and not to chance. `npm run test:laws`
 * draws a new seed at every run, unless `CI` is set. A seed that failed is printed: put it into a test of its own. Shrinking a failure ends
 * in time for the test to report it.
 */
import * as fc from 'fast-check';

const isSeedFixed = process.env['FIXED_SEED'] !== undefined || process.env['CI'] !== undefined;

fc.configureGlobal({
  interruptAfterTimeLimit: 150_000,
  ...(isSeedFixed && { seed: 20_261_121 }),
});
