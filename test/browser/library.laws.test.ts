/**
 * Plays the program of test/clients/runtimes in headless Chromium, bundled for browsers: it folds bodies of all formats, recalls from them, and folds
 * a conversation through `leporello/fetch`, plain, streamed and again from a second instance. Every digest of what was sent must be Node's. A second
 * program keeps its folds in a service over HTTP, and Node reads them there.
 */
import { createServer } from 'node:http';
import { rolldown } from 'rolldown';
import { describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { memoryServer } from '../../examples/memory-server.ts';
import { play } from '../clients/runtimes/program.ts';
import { isBrowserMissing, startBrowser } from './browser.ts';
import { type PlayedFold, firstLog, foldOver, readOver } from './store-program.ts';

/** Bundles one of our files for browsers. Returns the code of each chunk by its name, and the modules that are not in the bundle. */
async function bundled(file: string) {
  // A browser has none of Node's modules, so whatever imports one must not be loaded there.
  const bundle = await rolldown({ input: file, platform: 'browser', external: /^node:/, logLevel: 'silent' });
  const { output } = await bundle.generate({ format: 'esm' });
  const chunks = output.flatMap((one) => (one.type === 'chunk' ? [one] : []));
  return {
    codeOf: new Map(chunks.map(({ fileName, code }) => [`/${fileName}`, code])),
    missing: chunks
      .flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
      .filter((name) => name.startsWith('node:')),
  };
}

it.each([
  'src/index.ts',
  'src/codecs/anthropic-messages/index.ts',
  'src/codecs/gemini/index.ts',
  'src/codecs/openai-chat/index.ts',
  'src/codecs/openai-responses/index.ts',
  'src/adapters/values.ts',
  'src/store/http.ts',
  'src/adapters/fetch.ts',
])('%s needs no module of Node', async (file) => {
  expect((await bundled(file)).missing).toEqual([]);
});

describe.skipIf(isBrowserMissing)('the library in a browser', () => {
  it('folds, recalls and streams the same bytes as in Node', { timeout: 240_000 }, async () => {
    const played = await inBrowser('test/clients/runtimes/program.ts', (page) =>
      page.evaluate(`import('/program.js').then(({ play }) => play())`),
    );
    expect(played).toEqual(await play());
  });

  it('keeps folds in a service over HTTP, where Node finds them', { timeout: 240_000 }, async () => {
    await inBrowser('test/browser/store-program.ts', async (page, origin) => {
      const url = `${origin}/memory`;
      const program = `import('/store-program.js')`;
      const folded = await page.evaluate(`${program}.then(({ foldOver }) => foldOver('${url}'))`);
      const { status, id } = folded as PlayedFold;
      expect(status).toBe('compacted');
      // Another page has nothing but the store.
      await page.reload();
      const again = await page.evaluate(`${program}.then(({ foldOver }) => foldOver('${url}'))`);
      expect(again).toEqual(folded);
      const read = await page.evaluate(`${program}.then(({ readOver }) => readOver('${url}', '${id}'))`);
      expect(read).toContain(firstLog);
      expect(await foldOver(url)).toEqual(folded);
      expect(await readOver(url, id)).toBe(read);
    });
  });
});

/** Opens a page whose origin serves the chunks of a bundled file, and a memory service below /memory. Expects no error of the page. */
async function inBrowser<Result>(
  file: string,
  run: (page: Page, origin: string) => Promise<Result>,
): Promise<Result> {
  const { codeOf } = await bundled(file);
  const memory = memoryServer();
  const server = createServer((request, response) => {
    const { url = '' } = request;
    if (url.startsWith('/memory/')) {
      memory.emit('request', request, response);
      return;
    }
    const code = codeOf.get(url);
    response.setHeader('content-type', code === undefined ? 'text/html' : 'text/javascript');
    response.end(code ?? '<!doctype html><title>Leporello</title>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  try {
    await using browser = await startBrowser();
    const { page, errors } = await browser.open();
    await page.goto(`${origin}/`);
    const result = await run(page, origin);
    expect(errors).toEqual([]);
    return result;
  } finally {
    server.close();
  }
}
