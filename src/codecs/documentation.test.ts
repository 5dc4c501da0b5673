import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec } from './codec.ts';
import { gemini } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

const page = readFileSync('docs/wire-formats.md', 'utf8');
const overflow = page.slice(page.indexOf('## Overflow'));

const formats: readonly (readonly [title: string, codec: Codec, sources: readonly string[]])[] = [
  ['Chat Completions', openaiChat, ['openai-chat/response.ts', 'provider-errors.ts']],
  ['Messages', anthropicMessages, ['anthropic-messages/response.ts']],
  ['Responses', openaiResponses, ['openai-responses/response.ts', 'provider-errors.ts']],
  ['generateContent', gemini, ['gemini/response.ts']],
];

/** Returns the sentences that the table quotes for a format; code in them is marked as code. */
function quoted(title: string): readonly string[] {
  return overflow
    .split('\n')
    .filter((line) => line.startsWith(`| ${title} |`))
    .map((line) => line.split(' | ')[1]!.replace(/ \|$/, '').replaceAll('`', ''));
}

/** Returns the wordings as the source spells them: each a regular expression in a line of its own. */
function wordings(source: string): readonly RegExp[] {
  const text = readFileSync(`src/codecs/${source}`, 'utf8');
  const [, list = ''] = /Wordings: readonly OverflowWording\[\] = \[\n(.*?)\n\];/s.exec(text) ?? [];
  return [...list.matchAll(/^ *(?:\{ unit: 'bytes', says: )?\/(?!\/)(.+)\/([a-z]*)(?: \})?,$/gm)].map(
    ([, pattern = '', flags]) => new RegExp(pattern, flags),
  );
}

describe('docs/wire-formats.md', () => {
  it.each(formats)('quotes every overflow that %s recognizes, and no other', (title, codec, sources) => {
    const said = quoted(title);
    expect(said.filter((sentence) => !codec.overflowIn(400, sentence))).toEqual([]);
    const known = sources.flatMap(wordings);
    expect(known).not.toEqual([]);
    expect(known.filter((wording) => !said.some((sentence) => wording.test(sentence)))).toEqual([]);
  });

  it('names only existing tests', () => {
    const tests = globSync(['src/**/*.test.ts', 'test/support/**/*-cases.ts', 'test/**/*.test.ts'])
      .map((path) => readFileSync(path, 'utf8'))
      .join('\n');
    const rows = page.split('\n').filter((line) => line.startsWith('|'));
    const cells = rows.map((row) => row.split(' | ')[2] ?? '').filter((cell) => cell.startsWith('"'));
    const lines = [...page.matchAll(/^(?:[^\n]*\. )?Tests: ("[^]*?")\.$/gm)].map(([, names = '']) => names);
    const named = [...cells, ...lines].flatMap((names) =>
      [...names.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name.replaceAll(/\s+/g, ' ')),
    );
    expect(named.length).toBeGreaterThan(60);
    expect(named.filter((name) => !tests.includes(`'${name}'`) && !tests.includes(`"${name}"`))).toEqual([]);
  });
});
