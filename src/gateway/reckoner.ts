/** Reckons the money of requests as they end: remembers of each conversation what the next one is measured against. */
import type { Prepared } from '../compact/prepared.ts';
import { createEarlierRequests } from '../metrics/earlier-requests.ts';
import { asEarlier, type Money, reckonMoney } from '../metrics/money.ts';
import type { PriceList } from '../metrics/prices.ts';
import type { Usage } from '../metrics/usage.ts';

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
      const { identity, report, outcome } = prepared;
      const standing = { tenant, links: identity.links, beginning: identity.beginning };
      // What was only observed went out as it came.
      const { tokensBefore, tokensAfter, tokensKept } = outcome.status === 'observed' ? asItCame : report;
      const request = {
        at,
        rounds: [first, ...further] as const,
        tokensSaved: (tokensBefore ?? 0) - (tokensAfter ?? 0),
        tokensKept,
        earlier: earlierRequests.find(standing),
      };
      earlierRequests.note(standing, asEarlier(request));
      return reckonMoney(request, (promptTokens) => prices.priceOf(report.model, promptTokens));
    },
  };
}

const asItCame = { tokensBefore: undefined, tokensAfter: undefined, tokensKept: undefined };
