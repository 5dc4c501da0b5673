/**
 * Splits text that people wrote into lines that can be kept word for word, and recognizes binding ones: must, must not, may only. Every pass
 * is linear, also on hostile text. Pure.
 */

/** Longer lines are split into sentences. */
const maxLine = 320;
/** Longer sentences are cut. */
const maxSentence = 600;

/** Characters of the longest text that is read completely; only both ends of a longer one are read. */
const maxRead = 200_000;

/** Returns the lines of a text, long ones split into sentences, without bullets, blank lines and fenced code. */
export function sentencesOf(text: string): readonly string[] {
  const sentences: string[] = [];
  let isFenced = false;
  for (const raw of endsOf(text, maxRead).split(/[\n\r\u2028\u2029]/)) {
    const line = plain(raw);
    if (/^(?:```|~~~)/.test(line)) isFenced = !isFenced;
    else if (!isFenced && /[\p{L}\d]/u.test(line))
      for (const part of partsOf(withoutBullet(line))) sentences.push(part);
  }
  return sentences;
}

/** Words of instructions that hold from now on. Broad: one line too many costs less than a lost rule. */
const binding =
  /\b(?:must(?:n['’]t)?|never|always|do(?:es)?(?:n['’]?t| not)|can(?:not|['’]t)|may not|should(?:n['’]t)?|shall|only|no more|no less|at (?:most|least)|up to|avoid|ensure|make sure|keep|requires?|required|needs? to|prefer|without|except|unless|until|forbidden|(?:not )?allowed|ha(?:s|ve) to|limit(?:ed)?|exactly|instead of|rather than|use|stick to|remember|important|from now on|leave|stay|nothing|no one|nobody|every|all|any|no)\b/i;

/** Phrases that mark a binding instruction. */
const strict =
  /\b(?:must(?:n['’]t)?|never|always|do(?:n['’]?t| not)|cannot|may not|shall|only|at (?:most|least)|avoid|make sure|required|forbidden|not allowed|no more than|exactly|from now on|important)\b/i;

/** True for a sentence that may bind. */
export function isBinding(sentence: string): boolean {
  return binding.test(sentence);
}

/** True for a sentence that surely binds. */
export function isStrict(sentence: string): boolean {
  return strict.test(sentence);
}

/** Returns a line without control characters and separators. */
export function plain(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\uFFFD]+/gu, ' ')
    .trim();
}

/** Turns the name of a tool, an argument or a state into one word. */
export function nameOf(text: string): string {
  return text.slice(0, 64).replaceAll(/[^\w./-]+/g, '_') || '_';
}

/** Returns a text of at most `max` UTF-16 units unchanged; of a longer one both ends, in whole lines if possible. */
export function endsOf(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = text.slice(0, max / 2);
  const tail = text.slice(-max / 2);
  return `${head.slice(0, head.lastIndexOf('\n') + 1) || head}\n${tail.slice(tail.indexOf('\n') + 1)}`;
}

/** Cuts a text to at most `max` UTF-16 units, never inside a character, and marks the cut. */
export function clipped(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, Math.max(0, max - 1)).toWellFormed();
  return `${cut.replace(/\uFFFD$/, '').trimEnd()}…`;
}

function withoutBullet(line: string): string {
  return line.replace(/^(?:[-*•+]|\d{1,3}[.)])\s+/, '');
}

function partsOf(line: string): readonly string[] {
  if (line.length <= maxLine) return [line];
  return line
    .split(/(?<=[.!?])\s+(?=[^\s\p{Ll}])/u)
    .filter((sentence) => sentence !== '')
    .map((sentence) => clipped(sentence, maxSentence));
}
