import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Laws, recorded conversations and other tests that take long: `npm run test:laws`. `npm test` runs all others. */
const laws = ['src/**/*laws.test.ts', 'test/**/*laws.test.ts'];

export default defineConfig({
  test: {
    setupFiles: ['test/setup.ts'],
    // Vitest's default leaves one core free, which is half of a machine with two.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // A test that hangs ends at last. A slow one does not fail on a busy machine.
    testTimeout: 240_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'src',
          include: ['src/**/*.test.ts'],
          exclude: laws,
          // The files of one worker share the modules they import: loading them again for each file takes a third of the time.
          isolate: false,
          env: { FIXED_SEED: 'yes' },
        },
      },
      {
        extends: true,
        test: {
          name: 'test',
          include: ['test/**/*.test.ts'],
          exclude: laws,
          env: { FIXED_SEED: 'yes' },
        },
      },
      { extends: true, test: { name: 'laws', include: laws } },
    ],
  },
});
