/** Makes files of any size that each contain one secret number. Pure: equal names give equal files. */

/** Returns about this many tokens of log lines, with the secret in the middle. */
export function contentOf(file: string, tokens: number): string {
  const lines = Math.max(4, Math.round(tokens / tokensInLine));
  const line = (at: number) =>
    at === Math.floor(lines / 2)
      ? `the secret of ${file} is ${secretOf(file)}\n`
      : `${file} step ${at}: ${(at * 7919) % 997} rows checked, all is well\n`;
  return Array.from({ length: lines }, (_, at) => line(at)).join('');
}

const tokensInLine = 18;

export function secretOf(file: string): string {
  let hash = 17;
  for (const character of file) hash = (hash * 31 + character.codePointAt(0)!) % 899_981;
  return String(100_003 + hash);
}

/** Returns the file's secret if this text contains it. */
export function secretIn(file: string, text: string): string | undefined {
  return text.includes(`the secret of ${file} is ${secretOf(file)}`) ? secretOf(file) : undefined;
}
