/** Offsets of a text that do not part a character. Pure. */

/** The nearest offset at or before this one that is no second half of a surrogate pair. */
export function wholeBefore(text: string, offset: number): number {
  return isInsidePair(text, offset) ? offset - 1 : offset;
}

/** The nearest offset at or after this one that is no second half of a surrogate pair. */
export function wholeAfter(text: string, offset: number): number {
  return isInsidePair(text, offset) ? offset + 1 : offset;
}

function isInsidePair(text: string, offset: number): boolean {
  const before = text.charCodeAt(offset - 1);
  const after = text.charCodeAt(offset);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}
