/** Reads the recorded bodies of a codec. */
import { readdirSync, readFileSync } from 'node:fs';

/** Returns the request bodies in a codec's fixtures, by their file names without extension. */
export function recordedBodies(codecFolder: string): Readonly<Record<string, Uint8Array>> {
  const folder = new URL(`../../../src/codecs/${codecFolder}/fixtures/`, import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return Object.fromEntries(
    names.map((name) => [name.replace('.json', ''), new Uint8Array(readFileSync(new URL(name, folder)))]),
  );
}
