/** Checks that presets differ, and that each keeps at least what the one before it keeps, on planted and on recorded conversations. */
import { expect, it } from 'vitest';
import { keptFacts, presetNames, presetOptions, samePresets } from '../bench/presets/measure.ts';
import { codingSessions, readConversations } from '../bench/replay/data.ts';
import { benchPolicies } from '../bench/replay/policies.ts';
import { conversationBody, priceTables } from '../src/cli/replay/conversation-body.ts';
import { chat } from '../src/cli/replay/sources.ts';
import { figuresOf } from '../src/replay/figures.ts';
import { readRecording } from '../src/replay/recording.ts';
import { type Played, replay } from '../src/replay/replay.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';

/** True if no share is below the one before it, but for `chance`. */
const rises = (shares: readonly number[], chance = 0) =>
  shares.every((share, at) => share >= (shares[at - 1] ?? 0) - chance);

it('presets keep more and more planted findings and demands, from cost to debugging', async () => {
  const counter = await loadExactCounter('o200k_base');
  const kept = [];
  for (const name of presetNames) kept.push(await keptFacts(name, 20, counter));
  const findings = kept.map((one) => one.findings);
  expect(findings.at(-1)).toBeGreaterThan(findings[0]!);
  const demands = kept.map((one) => one.demands);
  // One finding of 240 is chance: records keep others than summaries. bench/presets.ts compares more conversations.
  expect({ findings, demands, rises: [rises(findings, 0.005), rises(demands)] }).toEqual({
    findings,
    demands,
    rises: [true, true],
  });
});

it('presets keep more and more of what recorded calls used, and no two give the same folds', async ({
  skip,
}) => {
  const records = readConversations() ?? [];
  const sessions = records
    .filter(({ source }) => source === codingSessions)
    .filter(({ messages }) => JSON.stringify(messages).length > 300_000)
    .slice(0, 6);
  if (sessions.length === 0) skip('There are no recorded conversations in ../shared/data.');
  const counter = await loadExactCounter('o200k_base');
  const policies = benchPolicies(presetOptions, counter);
  const played: Played[] = [];
  for (const { id, source, messages } of sessions) {
    const body = conversationBody({ messages }, presetOptions.prefix, counter);
    const recording = readRecording({ id, source, format: chat, body }, counter);
    played.push(await replay(recording, policies, presetOptions));
  }
  const [source] = figuresOf(played, priceTables);
  const visibleWith = (name: string) => source!.policies.find(({ policy }) => policy === name)!.visible;
  expect(samePresets(played)).toEqual([]);
  // A summary keeps other values than records do, so `summaries` is compared with its neighbors on more sessions only (bench/presets.ts).
  const visible = presetNames.filter((name) => name !== 'summaries').map(visibleWith);
  expect({ visible, rises: rises(visible, 0.01) }).toEqual({ visible, rises: true });
  expect(visible.at(-1)).toBeGreaterThan(visible[0]!);
  expect(visibleWith('summaries')).toBeGreaterThan(visible[0]!);
});
