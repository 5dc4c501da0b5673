/** Reckons the money of requests as they end: remembers of each conversation what the next one is measured against. */
import type { Prepared } from '../../engine/prepared.ts';
import { createEarlierRequests } from '../../receipts/earlier-requests.ts';
import { type Money, reckonMoney } from '../../receipts/money.ts';
import type { PriceList } from '../../receipts/prices.ts';
import { asEarlier, type Difference } from '../../receipts/baseline-cost.ts';
import type { Usage } from '../../receipts/usage.ts';

export interface Reckoner {
  /** The money of an answered request; undefined where usage or price are not known. Called once for each request. */
  reckon(request: EndedRequest): Money | undefined;
}

export type EndedRequest = {
  readonly tenant: string;
  readonly prepared: Prepared;
  readonly prices: PriceList;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Round by round; empty where one was not reported. */
  readonly rounds: readonly Usage[];
};

export function createReckoner(): Reckoner {
  const earlierRequests = createEarlierRequests();
  return {
    reckon({ tenant, prepared, prices, at, rounds: [first, ...further] }) {
      if (!first) return undefined;
      const { identity, report } = prepared;
      const standing = { tenant, links: identity.links, beginning: identity.beginning };
      const request = {
        at,
        rounds: [first, ...further] as const,
        difference: differenceOf(prepared),
        ...earlierRequests.find(standing),
      };
      earlierRequests.note(standing, asEarlier(request));
      return reckonMoney(request, (promptTokens) => prices.priceOf(report.model, promptTokens));
    },
  };
}

/** What was only observed went out as it came, and so did what nobody counted. */
function differenceOf({ outcome, prompt, report }: Prepared): Difference | undefined {
  const { tokensBefore, tokensAfter, tokensKept, replayed, shrunk, steps, hiddenRecalls, cacheMarks } =
    report;
  if (outcome.status === 'observed' || !prompt) return undefined;
  if (tokensBefore === undefined || tokensAfter === undefined) return undefined;
  const edits = steps.reduce((sum, step) => sum + step.edits, replayed + shrunk);
  return { counted: prompt.came, tokensBefore, tokensAfter, edits, hiddenRecalls, cacheMarks, tokensKept };
}
