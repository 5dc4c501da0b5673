/** Runs the scripted provider in its own process: slow for summaries, immediate for everything else. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeProvider } from '../../test/support/fake-provider/fake-provider.ts';
import type { Reply } from '../../test/support/fake-provider/script.ts';

const says = (text: string): Reply => ({ type: 'turn', parts: [{ type: 'text', text }] });

const summary = Array.from(
  { length: 40 },
  (_, at) => `File ${at} was read; the value it names is not the one that is looked for.`,
).join('\n');

/** Serves until the parent process exits. */
export async function serveSlowProvider(summaryMs: number): Promise<void> {
  const provider = await startFakeProvider({
    script: async ({ body }) => {
      if (!JSON.stringify(body).includes('You write down what an agent has done so far.'))
        return says('Done.');
      await sleep(summaryMs);
      return says(summary);
    },
  });
  process.on('disconnect', () => process.exit());
  process.send?.(provider.url);
}
