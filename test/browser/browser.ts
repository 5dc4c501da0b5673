/**
 * Starts a headless Chromium for tests of the pages. If none is installed, tests that need one are skipped and a line says so; in CI,
 * which sets REQUIRE_BROWSER, they fail.
 */
import { existsSync } from 'node:fs';
import { type Browser, type Page, chromium } from 'playwright-core';

const binary = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

/** True if the tests are to be skipped, for `describe.skipIf`. */
export const isBrowserMissing: boolean = binary === undefined && process.env['REQUIRE_BROWSER'] === undefined;

if (isBrowserMissing)
  process.stdout.write(
    'Skipped: tests that need a browser. Chromium is not here: apt-get install chromium.\n',
  );

/** Milliseconds that a step in the browser may take, also on a busy machine. */
const stepMs = 120_000;

export type OpenBrowser = AsyncDisposable & {
  /** Opens a page and collects its errors: exceptions, error messages of the console, and requests to other hosts. */
  open(options?: {
    readonly width?: number;
    readonly height?: number;
    readonly isDark?: boolean;
  }): Promise<{ readonly page: Page; readonly errors: readonly string[] }>;
};

export async function startBrowser(): Promise<OpenBrowser> {
  if (binary === undefined) throw new Error('No Chromium is installed: apt-get install chromium.');
  const browser: Browser = await chromium.launch({
    executablePath: binary,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    timeout: stepMs,
  });
  return {
    async open({ width = 1280, height = 900, isDark = false } = {}) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme: isDark ? 'dark' : 'light',
        reducedMotion: 'reduce',
        timezoneId: 'UTC',
        locale: 'en-US',
      });
      context.setDefaultTimeout(stepMs);
      const page = await context.newPage();
      const errors: string[] = [];
      page.on('pageerror', (error) => errors.push(`exception: ${error.message}`));
      page.on('console', (message) => {
        if (message.type() === 'error') errors.push(`console: ${message.text()}`);
      });
      page.on('request', (request) => {
        if (new URL(request.url()).hostname !== '127.0.0.1') errors.push(`request: ${request.url()}`);
      });
      return { page, errors };
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
    },
  };
}
