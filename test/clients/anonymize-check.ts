/** Finds text of a recorded body that its fixture still contains: runs of words, and machine folders. Pure. */
import { isProse, stringsIn } from './anonymize.ts';
import { isOfLoop, ownPaths } from './anonymize-words.ts';

/** Words in a row that count as somebody's wording. */
const runLength = 5;

/** Returns the runs of words in both, except those of the recorded loop itself. */
export function survivors(recorded: Uint8Array, fixture: Uint8Array): readonly string[] {
  const known = new Set(textsOf(recorded).flatMap(runsIn));
  const fixtureTexts = textsOf(fixture);
  return [
    ...new Set(fixtureTexts.flatMap(runsIn).filter((words) => known.has(words))),
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
  return words.flatMap((_, at) =>
    at + runLength <= words.length ? words.slice(at, at + runLength).join(' ') : [],
  );
}
