/**
 * Scripts providers and agents whose true effect is known, to prove the statistics of experiments. A scripted conversation has two outcomes,
 * one untouched and one folded; the experiment sees only one of them. All numbers come from a seed, so each run repeats exactly.
 */
import type { Caps, EndedTrial } from '../../src/experiment/estimate.ts';

/** Returns numbers between 0 and 1 (Mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Draws from the normal distribution (Box and Muller). */
function normalFrom(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** A scripted provider with an agent: what folding does to a conversation. */
export type Scripted = {
  readonly name: string;
  /** The standard deviation of the logarithm of a conversation's length: 2 makes heavy tails. */
  readonly logSd: number;
  /** The share of each request's cost that a fold saves. */
  readonly saved: number;
  /** Further requests per 1,000 folded tokens. */
  readonly lambda: number;
  /** The share of folded conversations that recall once: a request of its own, after which everything is as if never folded. */
  readonly recalls: number;
};

export const caps: Caps = { usd: 10, requests: 200, foldedTokens: 200_000 };

export const noEffect: Scripted = { name: 'no effect', logSd: 1, saved: 0, lambda: 0, recalls: 0 };
export const scripts: readonly Scripted[] = [
  noEffect,
  { ...noEffect, name: 'no effect, heavy tails', logSd: 2 },
  { ...noEffect, name: 'saves 30 %', saved: 0.3 },
  { ...noEffect, name: 'saves 30 %, heavy tails', saved: 0.3, logSd: 2 },
  { ...noEffect, name: 'saves 30 %, a step more per 4,000 folded tokens', saved: 0.3, lambda: 0.25 },
  { ...noEffect, name: 'saves 10 %, a step more per 1,000 folded tokens', saved: 0.1, lambda: 1 },
  { ...noEffect, name: 'saves 30 %, half recall once', saved: 0.3, recalls: 0.5 },
];

type BothOutcomes = {
  readonly untouched: EndedTrial;
  readonly folded: EndedTrial;
};

/** USD of a request per 1,000 tokens: mostly cache reads. */
const usdPerThousand = 0.000_6;

/** Draws a conversation with both of its outcomes. */
function conversationOf({ logSd, saved, lambda, recalls }: Scripted, random: () => number): BothOutcomes {
  const tokens = 60_000 * Math.exp(0.4 * normalFrom(random));
  const soFar = Math.ceil(20 * Math.exp(0.5 * normalFrom(random)));
  const requests = Math.ceil(20 * Math.exp(logSd * normalFrom(random)));
  const foldedTokens = tokens * (0.3 + 0.3 * random());
  const each = (tokens / 1_000) * usdPerThousand;
  const covariates = [Math.log(tokens / 60_000), Math.log(soFar / 20)];
  const extra = (lambda * foldedTokens) / 1_000 + (random() < recalls ? 1 : 0);
  const untouched = { isControl: true, usd: requests * each, requests, foldedTokens: 0, covariates };
  const folded = {
    isControl: false,
    usd: (requests + extra) * each * (1 - saved),
    requests: requests + extra,
    foldedTokens,
    covariates,
  };
  return { untouched, folded };
}

/** Draws the conversations of one experiment, each in one arm. */
export function trialsOf(script: Scripted, rate: number, count: number, seed: number): readonly EndedTrial[] {
  const random = randomFrom(seed);
  return Array.from({ length: count }, () => {
    const { untouched, folded } = conversationOf(script, random);
    return random() < rate ? untouched : folded;
  });
}

/** Returns the true effects, from both outcomes of very many conversations. */
export function truthOf(script: Scripted): { readonly costRatio: number; readonly lambda: number } {
  const random = randomFrom(20);
  let [untouchedUsd, foldedUsd, extra, tokens] = [0, 0, 0, 0];
  for (let index = 0; index < 400_000; index++) {
    const { untouched, folded } = conversationOf(script, random);
    untouchedUsd += Math.min(untouched.usd, caps.usd);
    foldedUsd += Math.min(folded.usd, caps.usd);
    extra += Math.min(folded.requests, caps.requests) - Math.min(untouched.requests, caps.requests);
    tokens += Math.min(folded.foldedTokens, caps.foldedTokens) / 1_000;
  }
  return { costRatio: foldedUsd / untouchedUsd, lambda: extra / tokens };
}
