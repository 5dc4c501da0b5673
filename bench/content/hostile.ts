/** Texts that would keep a quadratic shrink busy for hours. `make` returns one of about `length` UTF-16 units. */

export type Hostile = { readonly name: string; readonly make: (length: number) => string };

const page = '<!doctype html><link rel="canonical" href="x"><meta property="og:url" content="x">';

export const hostileTexts: readonly Hostile[] = [
  { name: 'open brackets', make: repeated('[') },
  { name: 'a line for each open bracket', make: repeated('[\n') },
  { name: 'unclosed objects', make: repeated('{"a":\n') },
  { name: 'unclosed strings', make: repeated('{"a": "') },
  { name: 'JSON in many brackets', make: repeated(`${'['.repeat(45)}${']'.repeat(45)}\n`) },
  { name: 'objects in objects', make: repeated(`${'{"x":'.repeat(40)}1${'}'.repeat(40)}\n`) },
  { name: 'backslashes', make: (length) => `["${repeated('\\\\')(length)}"]` },
  { name: 'escaped letters', make: (length) => `["${repeated('\\u2019')(length)}"]` },
  { name: 'numbers', make: (length) => `[${repeated('1,')(length)}1]` },
  {
    name: 'rows',
    make: (length) => `[${counted((at) => `{"a":${at},"b":{"c":"x y"}},`)(length)}{"a":0,"b":{"c":"x"}}]`,
  },
  { name: 'one line number', make: repeated('     1→x\n') },
  { name: 'line numbers', make: counted((at) => `${String(at + 1).padStart(6)}→x\n`) },
  { name: 'one match per file', make: counted((at) => `/x/a${at}.ts:${at}:some text\n`) },
  {
    name: 'ambiguous dashes after paths',
    make: (length) => `${'a.ts:1:x\n'.repeat(9)}${repeated('/a/b-1-2-3-4-5-6-7\n')(length)}`,
  },
  { name: 'one path of dashes', make: (length) => `${'a.ts:1:x\n'.repeat(9)}${repeated('/-1-')(length)}` },
  { name: 'nested common prefixes', make: counted((at) => `${'/abcdefgh'.repeat(at % 300)}\n`) },
  { name: 'one line', make: repeated('a') },
  { name: 'empty lines', make: repeated('\n') },
  {
    name: 'carriage returns',
    make: (length) => `${repeated('abc ')(length / 2)}\r${repeated('x\r')(length / 2)}`,
  },
  { name: 'backspaces', make: repeated('a\b') },
  { name: 'far columns', make: repeated('\x1b[500C\x1b[1K') },
  { name: 'very far columns', make: repeated('\x1b[99999999Cx\n') },
  {
    name: 'up and down',
    make: (length) => `${'x\n'.repeat(length / 4)}${repeated('\x1b[1A\x1b[1B')(length / 2)}`,
  },
  { name: 'unclosed titles', make: repeated('\x1b]') },
  { name: 'unclosed tags', make: (length) => page + repeated('<a')(length) },
  { name: 'unclosed scripts', make: (length) => page + repeated('<script>')(length) },
  { name: 'unclosed comments', make: (length) => page + repeated('<!--')(length) },
  { name: 'unclosed links', make: (length) => page + repeated('<a href="/x">')(length) },
  { name: 'blanks in a page', make: (length) => `${page}<pre>some text${repeated(' ')(length)}` },
  { name: 'almost base64', make: repeated(`${'A'.repeat(59)} `) },
  { name: 'almost a stack', make: repeated('\tat a(b') },
];

function repeated(piece: string): (length: number) => string {
  return (length) => piece.repeat(Math.ceil(length / piece.length));
}

function counted(piece: (at: number) => string): (length: number) => string {
  return (length) => {
    const pieces: string[] = [];
    for (let at = 0, size = 0; size < length; at++) size += pieces[pieces.push(piece(at)) - 1]!.length;
    return pieces.join('');
  };
}
