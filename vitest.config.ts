import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    setupFiles: ['test/setup.ts'],
    // Property tests on a machine that others use, too, take minutes; what hangs ends at last.
    testTimeout: 240_000,
    hookTimeout: 60_000,
  },
});
