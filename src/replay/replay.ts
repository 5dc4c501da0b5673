/** Replays one recorded conversation under several policies. */
import type { Tokens } from './bill.ts';
import { play } from './play.ts';
import type { Policy } from './policies.ts';
import type { Recording } from './recording.ts';
import type { Tally } from './tally.ts';

export type Played = { readonly id: string; readonly source: string; readonly plays: readonly Play[] };

export type Play = {
  readonly policy: string;
  readonly tally: Tally;
  /** What it took when nothing that was missing was had back, for policies that keep nothing. */
  readonly careless: Tokens | undefined;
  /** Tokens of each request. */
  readonly contexts: readonly number[];
};

export type ReplayOptions = {
  /** Tokens. */
  readonly window: number;
};

export async function replay(
  recording: Recording,
  policies: readonly Policy[],
  { window }: ReplayOptions,
): Promise<Played> {
  const plays: Play[] = [];
  for (const policy of policies) {
    const { tally, contexts } = await play(recording, policy, { window });
    plays.push({
      policy: policy.name,
      tally,
      contexts,
      careless: await carelessTokens(recording, policy, tally, window),
    });
  }
  return { id: recording.id, source: recording.source, plays };
}

/** What a tool is run again for stays in the conversation, so doing without is another conversation. */
async function carelessTokens(
  recording: Recording,
  policy: Policy,
  tally: Tally,
  window: number,
): Promise<Tokens | undefined> {
  if (policy.hasMemory) return undefined;
  if (tally.recalls === 0) return tally.tokens;
  const { tally: careless } = await play(recording, policy, { window, doesWithout: true });
  return careless.tokens;
}
