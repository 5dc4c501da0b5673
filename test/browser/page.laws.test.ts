/**
 * Opens the pages of a gateway in a real browser, after coding sessions with folds and recalls: no error, no violation of accessibility,
 * no script from content, usable with the keyboard alone; and what is decided there is what the next request follows.
 */
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { receiptArchive } from '../../src/gateway/receipts/archive.ts';
import { type Stack, startStack } from '../e2e/stack.ts';
import { type OpenBrowser, isBrowserMissing, startBrowser } from './browser.ts';
import {
  codingModel,
  hostile,
  playSession,
  sendStep,
  sessionBody,
  sessionSettings,
} from './coding-session.ts';

const axe = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

const steps = 24;
const evil = `"><b>${hostile}`;

describe.skipIf(isBrowserMissing)('the pages in a browser', () => {
  let stack: Stack;
  let browser: OpenBrowser;
  let fixing: readonly string[];
  /** A request that made a fold of its own. */
  let folded: string;

  beforeAll(async () => {
    stack = await startStack(codingModel(), sessionSettings, { archive: receiptArchive({ groupMs: 20 }) });
    browser = await startBrowser();
    await playSession(stack.url, evil, 14);
    fixing = await playSession(stack.url, 'fix-the-login', steps);
    const receipts = (await (await fetch(`${stack.url}/_leporello/receipts?limit=500`)).json()) as {
      receipts: readonly {
        readonly id: string;
        readonly trigger?: string;
        readonly steps: readonly unknown[];
      }[];
    };
    const folds = receipts.receipts.filter(({ id, steps: made }) => fixing.includes(id) && made.length > 0);
    folded = folds[0]!.id;
  }, 240_000);

  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  });

  const paths = () => [
    '/_leporello/',
    '/_leporello/sessions/fix-the-login',
    `/_leporello/sessions/${encodeURIComponent(evil)}`,
    `/_leporello/requests/${folded}`,
    `/_leporello/requests/${fixing.at(-1)!}`,
    '/_leporello/recalls',
    '/_leporello/recalls?misses=1',
    '/_leporello/originals',
    '/_leporello/originals?query=hacked',
    '/_leporello/setup',
    '/_leporello/nothing-here',
  ];

  const looks = [
    { name: 'wide', look: {} },
    { name: 'on a phone', look: { width: 400, height: 800 } },
    { name: 'dark', look: { isDark: true } },
  ];

  it.each(looks)(
    'have no errors and no violations of accessibility, and run no script from content ($name)',
    async ({ look }) => {
      const { page, errors } = await browser.open(look);
      for (const path of paths()) {
        const response = await page.goto(stack.url + path);
        const isMissing = path.endsWith('nothing-here');
        expect(response!.status()).toBe(isMissing ? 404 : 200);
        for (const details of await page.locator('details > summary').all()) await details.click();
        expect({ path, violations: await violationsOn(page) }).toEqual({ path, violations: [] });
        expect(await page.evaluate('window.hacked')).toBeUndefined();
        const [wide, seen] = (await page.evaluate('[document.body.scrollWidth, innerWidth]')) as [
          number,
          number,
        ];
        expect({ path, isTooWide: wide > seen }).toEqual({ path, isTooWide: false });
        // The browser itself reports the missing page.
        const others = errors.filter((error) => !(isMissing && error.includes('404')));
        expect({ path, errors: others }).toEqual({ path, errors: [] });
      }
      await page.context().close();
    },
  );

  it.each([390, 760, 761, 1280])(
    'show the chart of a session with readable text at %i pixels',
    async (width) => {
      const { page } = await browser.open({ width, height: 800 });
      await page.goto(`${stack.url}/_leporello/sessions/fix-the-login`);
      const heights = (await page.evaluate(
        '[...document.querySelectorAll(".chart text")].map((text) => text.getBoundingClientRect().height).filter((height) => height > 0)',
      )) as readonly number[];
      expect(heights).toHaveLength(6);
      expect(Math.min(...heights)).toBeGreaterThan(10);
      await page.context().close();
    },
  );

  it('show hostile content as text', async () => {
    const { page } = await browser.open();
    await page.goto(`${stack.url}/_leporello/originals?query=hacked`);
    expect(await page.locator('.passage').first().textContent()).toContain(
      '<script>window.hacked = 1</script>',
    );
    await page.locator('td a').first().click();
    expect(await page.locator('pre').textContent()).toContain(hostile);
    expect(await page.locator('main script, main img').count()).toBe(0);
    // Each line has the direction of its own script.
    expect(await page.evaluate('getComputedStyle(document.querySelector("pre")).unicodeBidi')).toBe(
      'plaintext',
    );
    await page.context().close();
  });

  it('take at most 60 kB, compressed, each with everything that it loads', async () => {
    const { page } = await browser.open();
    const own = ['page.js', 'icon.svg'].map((name) => `${stack.url}/_leporello/${name}`);
    for (const path of paths().slice(0, 4)) {
      await page.goto(stack.url + path, { waitUntil: 'load' });
      const loaded = (await page.evaluate(
        'performance.getEntriesByType("resource").map(({ name }) => name)',
      )) as readonly string[];
      expect(loaded.filter((url) => !own.includes(url) && !url.endsWith('/live'))).toEqual([]);
      const texts = await Promise.all(
        [stack.url + path, ...own].map(async (url) => (await fetch(url)).text()),
      );
      const bytes = texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
      expect({ path, isSmall: bytes <= 60_000 }).toEqual({ path, isSmall: true });
    }
    await page.context().close();
  });

  it('show new requests at once, and name what went wrong', async () => {
    const { page, errors } = await browser.open();
    await page.goto(`${stack.url}/`);
    await page.locator('#state.on').waitFor();
    const id = await sendStep(stack.url, 'live-session', 2);
    const row = page.locator(`#requests tr[data-id="${id}"]`);
    await row.waitFor();
    expect(await row.textContent()).toContain('live-session');
    expect(await page.locator('#requests tr').first().getAttribute('data-id')).toBe(id);
    expect(errors).toEqual([]);
    await page.context().close();
  });

  it('can be used with the keyboard alone, and what is decided is followed from the next request on', async () => {
    await playSession(stack.url, 'keyboard', steps);
    const { page, errors } = await browser.open();
    await page.goto(`${stack.url}/_leporello/`);
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Skip to the content');
    await tabTo(page, 'Originals');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/originals');
    await tabTo(page, 'Requests');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/_leporello/');
    await tabTo(page, /^keyboard$/);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/sessions/keyboard');
    await tabTo(page, /^folded: token budget exceeded/);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/requests/*');
    await tabTo(page, /^result of Read/);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/requests/*edit=*');
    await tabTo(page, 'Pin this tool (Read)');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Unpin the tool Read' }).waitFor();
    expect(await toolsFoldedBy(stack, 'after-the-pin')).not.toContain('Read');
    await tabTo(page, 'Undo for this conversation');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Fold this conversation again' }).waitFor();
    await sendStep(stack.url, 'keyboard', steps + 1);
    const sent = Buffer.from(stack.provider.requests.at(-1)!.body).toString();
    expect(sent === sessionBody('keyboard', steps + 1)).toBe(true);
    await page.goto(`${stack.url}/_leporello/setup`);
    await page.getByRole('button', { name: 'Fold it again' }).click();
    await page.getByRole('button', { name: 'Undo for this conversation' }).waitFor();
    await sendStep(stack.url, 'keyboard', steps + 2);
    expect(Buffer.from(stack.provider.requests.at(-1)!.body).toString()).toContain('[Folded');
    expect(errors).toEqual([]);
    await page.context().close();
  });

  it('show what the checks of the set-up found, faults with their fix first', async () => {
    const { page, errors } = await browser.open();
    await page.goto(`${stack.url}/_leporello/setup`);
    const checks = page.getByRole('region', { name: 'Checks' });
    expect(await checks.locator('.finding').first().innerText()).toMatch(
      /^warning The base URL in <b>a file<\/b> leads nowhere\.\s+Fix: Remove it\.$/,
    );
    expect(await checks.getByText('The secret can be read.').isVisible()).toBe(false);
    await checks.getByText('1 of 3 checks found nothing wrong').click();
    expect(await checks.getByText('The secret can be read.').isVisible()).toBe(true);
    expect(await page.locator('footer').count()).toBe(1);
    expect(errors).toEqual([]);
    await page.context().close();
  });

  it('lead to older requests', async () => {
    // A page lists 50 requests.
    await playSession(stack.url, 'newer-than-50', 50);
    const { page, errors } = await browser.open();
    await page.goto(`${stack.url}/_leporello/`);
    const oldest = await page.locator('#requests tr').last().getAttribute('data-id');
    await page.getByRole('link', { name: 'Older requests' }).click();
    await page.getByRole('heading', { name: 'Older requests' }).waitFor();
    expect(await page.locator(`tr[data-id="${oldest}"]`).count()).toBe(0);
    expect(await page.locator('tr[data-id]').count()).toBeGreaterThan(0);
    expect(await violationsOn(page)).toEqual([]);
    await page.getByRole('link', { name: 'Newest requests' }).click();
    await page.locator('#state.on').waitFor();
    expect(errors).toEqual([]);
    await page.context().close();
  });

  it('find, show, download and forget originals', async () => {
    const { page } = await browser.open();
    await page.goto(`${stack.url}/_leporello/originals`);
    await page.getByLabel('Search in them').fill('export async function session');
    await page.keyboard.press('Enter');
    await page.getByText('“export async function session” is in').waitFor();
    await page.locator('td a').first().click();
    await page.waitForURL('**/originals/mem_*');
    const id = page.url().split('/').at(-1)!;
    const download = page.waitForEvent('download');
    await page.getByText('Download the exact bytes').click();
    expect((await download).suggestedFilename()).toBe(`${id}.json`);
    await page.getByText('Forget it …').click();
    await page.getByRole('button', { name: 'Forget this original' }).click();
    await page.waitForURL('**/originals');
    expect((await page.goto(`${stack.url}/_leporello/originals/${id}`))!.status()).toBe(404);
    expect((await fetch(`${stack.url}/_leporello/memory/${id}`)).status).toBe(404);
    await page.context().close();
  });
});

/** Returns what axe finds on a page. */
async function violationsOn(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe);
  const found = (await page.evaluate('axe.run()')) as {
    readonly violations: readonly {
      readonly id: string;
      readonly nodes: readonly { readonly html: string }[];
    }[];
  };
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''}`);
}

function focused(page: Page): Promise<string> {
  return page.evaluate('(document.activeElement?.textContent ?? "").trim()');
}

/** Presses Tab until an element with this text has the focus. */
async function tabTo(page: Page, text: string | RegExp): Promise<void> {
  const seen: string[] = [];
  for (let presses = 0; presses < 400; presses++) {
    await page.keyboard.press('Tab');
    const now = await focused(page);
    if (typeof text === 'string' ? now === text : text.test(now)) return;
    seen.push(now.slice(0, 40));
  }
  throw new Error(`The keyboard reaches no ${String(text)}, only: ${[...new Set(seen)].join(' | ')}`);
}

/** Plays a new session and returns the tools whose results its folds took. */
async function toolsFoldedBy(stack: Stack, session: string): Promise<readonly string[]> {
  await playSession(stack.url, session, steps);
  const sent = JSON.parse(Buffer.from(stack.provider.requests.at(-1)!.body).toString()) as {
    readonly messages: readonly { readonly content: unknown }[];
  };
  const blocks = sent.messages.flatMap(({ content }) => (Array.isArray(content) ? (content as Block[]) : []));
  const names = new Map(blocks.flatMap(({ id, name }) => (id === undefined ? [] : [[id, name!] as const])));
  const stubs = blocks.filter(({ content }) => JSON.stringify(content ?? '').includes('[Folded'));
  return [...new Set(stubs.flatMap(({ tool_use_id: id }) => names.get(id ?? '') ?? []))];
}

type Block = {
  readonly id?: string;
  readonly name?: string;
  readonly tool_use_id?: string;
  readonly content?: unknown;
};
