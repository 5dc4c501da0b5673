/** The price tables of the replay benchmark: relative to an input token that no cache holds. */
import type { PriceOverrides } from '../../receipts/prices.ts';
import type { CacheRates } from '../../replay/bill.ts';
import { replayedModel } from './conversation-body.ts';

export const priceTables: Readonly<Record<PriceTable, CacheRates>> = {
  anthropic: { read: 0.1, write: 1.25, output: 5 },
  openai: { read: 0.1, write: 1, output: 8 },
  uncached: { read: 1, write: 1, output: 5 },
};

export type PriceTable = 'anthropic' | 'openai' | 'uncached';

/** The price of a token that Anthropic keeps for an hour. */
export const writtenForAnHour = 2;

/** For engines: what the model of conversations that were recorded without one costs. */
export function pricesIn(table: PriceTable): PriceOverrides {
  const { read, write, output } = priceTables[table];
  const long = table === 'anthropic' ? { cacheWriteLong: writtenForAnHour } : {};
  return { [replayedModel]: { input: 1, cacheRead: read, cacheWrite: write, output, ...long } };
}
