/** Recognizes stubs in sent texts, for tests that do not depend on their wording. test/golden/model-texts.md has the wording. */

/** Matches the beginning of the stubs of results, media and messages: `[Folded result: …`, `[Folded 12 earlier messages …`. */
const stub = /\[Folded\b/;

/** True if a text contains a stub. */
export function hasStub(text: string): boolean {
  return stub.test(text);
}

/** Returns the ids that a text's stubs name first, in order. */
export function stubIdsIn(text: string): readonly string[] {
  const named = new RegExp(`${stub.source}[^\\]]*?(mem_[0-9a-z]{16})`, 'g');
  return [...text.matchAll(named)].map(([, id]) => id!);
}

/** Returns the id in a text's stubs that leads to what `word` names: in a log of messages, the id ahead of the word. Undefined without one. */
export function idNear(text: string, word: string): string | undefined {
  const stubs = text.match(new RegExp(`${stub.source}[^\\]]*`, 'g')) ?? [];
  for (const one of stubs) {
    const at = one.indexOf(word);
    const ids = [...one.matchAll(/mem_[0-9a-z]{16}/g)];
    const near = ids.findLast(({ index }) => index < at) ?? ids[0];
    if (at >= 0 && near) return near[0];
  }
  return undefined;
}
