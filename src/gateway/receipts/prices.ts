/** The prices receipts reckon with. The catalogue takes a moment to load, so it is asked for with the first request. */
import { createPriceList, type PriceList, type PriceOverrides } from '../../receipts/prices.ts';
import { loadCatalog } from '../../tokens/catalog.ts';

/** Never rejects: without a catalogue nobody knows a price. */
export type Prices = () => Promise<PriceList>;

export function pricesFrom(overrides: PriceOverrides | undefined): Prices {
  return async function prices() {
    try {
      return createPriceList(await loadCatalog(), overrides);
    } catch {
      return { priceOf: () => undefined };
    }
  };
}
