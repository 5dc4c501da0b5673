/**
 * Loads the published rank data of a tokenizer, each once per process, and packs it. The data are one to two megabytes of
 * source and take about 100 ms to load, so they come by dynamic import, when the first counter asks.
 */
import { type Encoding, rankData } from './models.ts';
import { createVocabulary, type Vocabulary } from './vocabulary.ts';

const loaded = new Map<Encoding, Promise<Vocabulary>>();

/** The vocabulary of an encoding. A load that failed is tried again. */
export function loadVocabulary(encoding: Encoding): Promise<Vocabulary> {
  const known = loaded.get(encoding);
  if (known !== undefined) return known;
  const loading = rankData[encoding]().then(createVocabulary);
  loaded.set(encoding, loading);
  loading.catch(() => loaded.delete(encoding));
  return loading;
}
