/**
 * Plays the program of test/clients/runtimes in headless Chromium, bundled for browsers: it folds bodies of all formats, recalls from them, and folds
 * a conversation through `leporello/fetch`, plain, streamed and again from a second instance. Every digest of what was sent must be Node's.
 */
import { createServer } from 'node:http';
import { rolldown } from 'rolldown';
import { describe, expect, it } from 'vitest';
import { play } from '../clients/runtimes/program.ts';
import { isBrowserMissing, startBrowser } from './browser.ts';

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
    const { codeOf } = await bundled('test/clients/runtimes/program.ts');
    const server = createServer(({ url = '' }, response) => {
      const code = codeOf.get(url);
      response.setHeader('content-type', code === undefined ? 'text/html' : 'text/javascript');
      response.end(code ?? '<!doctype html><title>Leporello</title>');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    try {
      await using browser = await startBrowser();
      const { page, errors } = await browser.open();
      await page.goto(`http://127.0.0.1:${port}/`);
      const played = await page.evaluate(`import('/program.js').then(({ play }) => play())`);
      expect(played).toEqual(await play());
      expect(errors).toEqual([]);
    } finally {
      server.close();
    }
  });
});
