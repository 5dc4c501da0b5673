/** Implements `leporello experiment`: prints what the holdout and the shadow found out, from the store. The gateway need not run. */
import { runSteps } from '../conversation/steps.ts';
import { reportsOf } from '../experiment/holdout.ts';
import { openShadowNotes, shadowReportsOf } from '../experiment/shadow.ts';
import { spellResults } from '../experiment/spell.ts';
import { createJournal, trialJournal } from '../experiment/journal.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import type { ExperimentArgs } from './command-args.ts';
import { loadConfig } from './config/load-config.ts';
import { tenantToRead } from './config/to-settings.ts';
import { openExistingStore } from './open-store.ts';
import type { Terminal } from './terminal.ts';

/** Runs the command. Resolves with the exit code, 1 when there is no store yet. */
export async function experiment(args: ExperimentArgs, terminal: Terminal): Promise<number> {
  const { config, dataDir } = await loadConfig(args.settings, terminal);
  const tenant = tenantToRead(args.tenant, config);
  const opened = await openExistingStore(dataDir, terminal.env, config);
  if ('missing' in opened) {
    terminal.err(`leporello: ${opened.missing}\n`);
    return 1;
  }
  const { store } = opened;
  try {
    const encryptedStore = createEncryptedStore(opened);
    const now = Date.now();
    const trials = await createJournal(encryptedStore, trialJournal).list(tenant);
    const findings = await openShadowNotes(encryptedStore).read(tenant);
    const results = {
      experiments: runSteps(reportsOf(trials, now)),
      shadows: shadowReportsOf(findings, now),
    };
    const texts = spellResults(results);
    if (args.json) await terminal.out(`${JSON.stringify(results)}\n`);
    else await terminal.out(texts.length === 0 ? none : texts.join('\n'));
    return 0;
  } finally {
    await store.close();
  }
}

const none =
  'No conversation has reached its first fold in an experiment yet. Set experiment.holdout, such as 0.2, or experiment.shadow to start one: see docs/experiments.md.\n';
