/** Plays one loop: provider, gateway, tap and client, all on the loopback, and the evidence of what went between them. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Receipt } from '../../src/metrics/receipt.ts';
import { startStack } from '../e2e/stack.ts';
import type { Variant } from './client.ts';
import { workshop } from './install.ts';
import type { Evidence } from './judge.ts';
import { filesOf, type Loop, task } from './loops.ts';
import { runClient } from './run-client.ts';
import { scriptedModel } from './scripted-model.ts';
import { contentOf } from './secret-files.ts';
import { startTap } from './tap.ts';

const adminToken = 'admin-of-tests';

export async function playLoop(command: string, variant: Variant, loop: Loop): Promise<Evidence> {
  await mkdir(workshop, { recursive: true });
  const home = await mkdtemp(join(workshop, 'home-'));
  try {
    const folder = join(home, 'project');
    await mkdir(folder);
    for (const file of filesOf(loop)) {
      await writeFile(join(folder, file), contentOf(file, loop.tokensPerFile));
    }
    const model = scriptedModel(loop.steps, folder);
    await using stack = await startStack(model.script, {
      models: { '*': { maxInput: loop.window } },
      triggers: { windowFraction: { target: loop.foldTo } },
      adminToken,
    });
    await using tap = await startTap(stack.url);
    const { model: name } = variant;
    const setup = variant.setup({ url: tap.url, model: name, task, folder });
    const run = await runClient(command, setup, { home, folder });
    const receipts = await receiptsOf(stack.url);
    return { run, exchanges: tap.exchanges, receipts, model, sent: stack.provider.requests };
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Of all requests so far, in the order they came. */
async function receiptsOf(url: string): Promise<readonly Receipt[]> {
  const response = await fetch(`${url}/_leporello/receipts?limit=500`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const { receipts } = (await response.json()) as { readonly receipts: readonly Receipt[] };
  return receipts.toSorted((a, b) => a.at - b.at);
}
