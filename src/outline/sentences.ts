/**
 * Takes what people wrote apart into lines that can be kept word for word, and tells which of them bind: what must, must not, may only.
 * Each pass is linear, also on hostile text. Pure.
 */

/** Longer lines are taken apart at the ends of their sentences. */
const longestLine = 320;
/** A sentence is kept word for word up to here. */
const longestSentence = 600;

/** Of longer texts both ends are read. */
const mostRead = 200_000;

/** Lines of a text, those that are long by sentences, without bullets, blank ones and fenced code. */
export function sentencesOf(text: string): readonly string[] {
  const sentences: string[] = [];
  let isFenced = false;
  for (const raw of endsOf(text, mostRead).split(/[\n\r\u2028\u2029]/)) {
    const line = plain(raw);
    if (/^(?:```|~~~)/.test(line)) isFenced = !isFenced;
    else if (!isFenced && /[\p{L}\d]/u.test(line))
      for (const part of partsOf(withoutBullet(line))) sentences.push(part);
  }
  return sentences;
}

/** Words by which someone says what is to be done, or not, from now on. Wide: a line too many costs less than a rule lost. */
const binding =
  /\b(?:must(?:n['’]t)?|never|always|do(?:es)?(?:n['’]?t| not)|can(?:not|['’]t)|may not|should(?:n['’]t)?|shall|only|no more|no less|at (?:most|least)|up to|avoid|ensure|make sure|keep|requires?|required|needs? to|prefer|without|except|unless|until|forbidden|(?:not )?allowed|ha(?:s|ve) to|limit(?:ed)?|exactly|instead of|rather than|use|stick to|remember|important|from now on|leave|stay|nothing|no one|nobody|every|all|any|no)\b/i;

/** What nobody says by the way. */
const strict =
  /\b(?:must(?:n['’]t)?|never|always|do(?:n['’]?t| not)|cannot|may not|shall|only|at (?:most|least)|avoid|make sure|required|forbidden|not allowed|no more than|exactly|from now on|important)\b/i;

export function isBinding(sentence: string): boolean {
  return binding.test(sentence);
}

export function isStrict(sentence: string): boolean {
  return strict.test(sentence);
}

/** One line without what a terminal or a parser would take for something else. */
export function plain(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\uFFFD]+/gu, ' ')
    .trim();
}

/** A name that a tool, an argument or a state goes by: one word, whatever it is made of. */
export function nameOf(text: string): string {
  return text.slice(0, 64).replaceAll(/[^\w./-]+/g, '_') || '_';
}

/** A text of at most `most` characters as it is, of a longer one as much from both ends, in whole lines where there are some. */
export function endsOf(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = text.slice(0, most / 2);
  const tail = text.slice(-most / 2);
  return `${head.slice(0, head.lastIndexOf('\n') + 1) || head}\n${tail.slice(tail.indexOf('\n') + 1)}`;
}

/** At most so many UTF-16 units, never half a character; what is cut off is marked. */
export function clipped(text: string, most: number): string {
  if (text.length <= most) return text;
  const cut = text.slice(0, Math.max(0, most - 1)).toWellFormed();
  return `${cut.replace(/\uFFFD$/, '').trimEnd()}…`;
}

function withoutBullet(line: string): string {
  return line.replace(/^(?:[-*•+]|\d{1,3}[.)])\s+/, '');
}

function partsOf(line: string): readonly string[] {
  if (line.length <= longestLine) return [line];
  return line
    .split(/(?<=[.!?])\s+(?=[^\s\p{Ll}])/u)
    .filter((sentence) => sentence !== '')
    .map((sentence) => clipped(sentence, longestSentence));
}
