/** Finds what of a recorded body is left in the fixture made of it: runs of words, and machine folders. Pure. */
import { isProse, stringsIn } from './anonymise.ts';
import { isOfLoop, ownPaths } from './anonymise-words.ts';

/** As many words in a row are somebody's wording. */
const run = 5;

/** Each run of words that both hold, but for what the recorded loop itself says. */
export function survivors(recorded: Uint8Array, fixture: Uint8Array): readonly string[] {
  const known = new Set(textsOf(recorded).flatMap(runsIn));
  const told = textsOf(fixture);
  return [
    ...new Set(told.flatMap(runsIn).filter((words) => known.has(words))),
    ...(new TextDecoder().decode(fixture).match(/\/(?:home|root|tmp|work|Users)\/[^"\s]*/g) ?? []),
  ];
}

function textsOf(body: Uint8Array): readonly string[] {
  const value: unknown = JSON.parse(new TextDecoder().decode(body));
  return stringsIn(value).flatMap(({ key, text }) => (isProse(key, text) ? [text] : []));
}

function runsIn(text: string): readonly string[] {
  const lines = text.split('\n').filter((line) => !isOfLoop(ownPaths(line)));
  const words =
    lines
      .join('\n')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.flatMap((_, at) => (at + run <= words.length ? words.slice(at, at + run).join(' ') : []));
}
