/** Files of any size that each hold one number, which nobody can know who has not read them. Pure: the same name, the same file. */

/** About so many tokens of log lines, with the secret in the middle. */
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

/** The file's secret, if it stands in this text. */
export function secretIn(file: string, text: string): string | undefined {
  return text.includes(`the secret of ${file} is ${secretOf(file)}`) ? secretOf(file) : undefined;
}
