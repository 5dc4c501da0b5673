/** Takes long runs of base64 out of a text: images, archives and keys of no use to a model as letters. Lossy. */
import type { Draft } from './content.ts';
import { leftOut } from './markers.ts';

/** UTF-16 units. Tokens, signatures and hashes that a model may have to pass on are shorter. */
const SHORTEST = 1_000;

export function withoutBlobs(text: string): readonly Draft[] {
  if (text.includes('-----BEGIN')) return [];
  let characters = 0;
  const rest = text.replace(run, (blob) => {
    if (blob.length < SHORTEST || !isEncoded(blob)) return blob;
    characters += blob.length;
    return leftOut(blob.length, 'characters of base64', `: ${blob.slice(0, 16)}...`);
  });
  if (characters === 0) return [];
  return [{ text: rest, isLossless: false, note: `${characters} characters of base64 left out` }];
}

/** Also in the lines of mail, which are all of one length and end in a line break, escaped or not. */
const run = /(?:[A-Za-z0-9+/_-]{60,}(?:\r?\n|\\r\\n|\\n)?)+(?:[A-Za-z0-9+/_-]{0,59}={1,2})?/g;

/** Data has letters of both kinds and digits all over; a long word, a path or a row of one letter has not. */
function isEncoded(blob: string): boolean {
  const sample = blob.slice(0, 1_000);
  return (
    new Set(sample).size > 40 &&
    (sample.match(/\d/g)?.length ?? 0) > 60 &&
    (sample.match(/[A-Z]/g)?.length ?? 0) > 150
  );
}
