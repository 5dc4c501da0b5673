/** Plays one loop with provider, gateway, tap and client on the loopback, and returns the evidence of what they exchanged. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { startStack } from '../e2e/stack.ts';
import type { Variant } from './client.ts';
import { clientsFolder } from './install.ts';
import type { Evidence } from './judge.ts';
import { type Loop, stepsOf } from './loops.ts';
import { type ClientRun, runClient } from './run-client.ts';
import { scriptedModel } from './scripted-model.ts';
import { contentOf } from './secret-files.ts';
import { startTap } from './tap.ts';

const adminToken = 'admin-of-the-tests';

export async function playLoop(command: string, variant: Variant, loop: Loop): Promise<Evidence> {
  await mkdir(clientsFolder, { recursive: true });
  const home = await mkdtemp(join(clientsFolder, 'home-'));
  try {
    const folder = join(home, 'project');
    await mkdir(folder);
    const steps = stepsOf(loop);
    for (const file of steps.flatMap(({ read = [] }) => read)) {
      await writeFile(join(folder, file), contentOf(file, loop.tokensPerFile));
    }
    const model = scriptedModel(steps, folder, variant.thinks !== false);
    await using stack = await startStack(model.script, {
      models: { '*': { maxInputTokens: loop.window } },
      // The scripted provider's usage is not a count of tokens.
      calibration: false,
      triggers: { windowFraction: { targetShare: loop.foldTo } },
      // Shrinks would make some clients' results smaller, which would then fill the window later.
      ...(loop.name === 'plain' ? {} : { shrinks: false }),
      adminToken,
    });
    await using tap = await startTap(() => stack.url);
    const runs: ClientRun[] = [];
    const receipts: Receipt[] = [];
    for (const [at, { task }] of loop.sessions.entries()) {
      const isResumed = at > 0;
      if (isResumed) await stack.restart();
      const setup = variant.setup({ url: tap.url, model: variant.model, task, folder, isResumed });
      runs.push(await runClient(command, setup, { home, folder }));
      receipts.push(...(await receiptsOf(stack.url)));
      if (runs.at(-1)?.code !== 0) break;
    }
    return { runs, exchanges: tap.exchanges, receipts, model, sent: stack.provider.requests };
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Returns the receipts of all requests so far, oldest first. */
async function receiptsOf(url: string): Promise<readonly Receipt[]> {
  const response = await fetch(`${url}/_leporello/receipts?limit=500`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const { receipts } = (await response.json()) as { readonly receipts: readonly Receipt[] };
  return receipts.toSorted((a, b) => a.at - b.at);
}
