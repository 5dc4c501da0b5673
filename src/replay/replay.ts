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
  /** Tokens if missing values are never recovered; only for policies that keep no originals. */
  readonly careless: Tokens | undefined;
  /** Tokens of each request. */
  readonly contexts: readonly number[];
};

export type ReplayOptions = {
  /** Context window in tokens. */
  readonly window: number;
};

/** Replays a conversation under each policy. */
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

/** Replays again without recovery: results of repeated tool calls stay in the conversation, so their tokens cannot just be subtracted. */
async function carelessTokens(
  recording: Recording,
  policy: Policy,
  tally: Tally,
  window: number,
): Promise<Tokens | undefined> {
  if (policy.hasMemory) return undefined;
  if (tally.recalls === 0) return tally.tokens;
  const { tally: careless } = await play(recording, policy, { window, skipsRecovery: true });
  return careless.tokens;
}
