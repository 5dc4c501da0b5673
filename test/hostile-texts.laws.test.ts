/**
 * Folds conversations whose texts repeat one sign or a few, in each place that Leporello reads: commands, paths, arguments, results, replies and the
 * user's words. A pattern that backtracks makes such a text take minutes, and the test runs into its timeout; it checks no time itself.
 */
import { expect, it } from 'vitest';
import { createLeporello } from '../src/library/leporello.ts';
import { type Step, chatMessages } from './support/chat-conversation.ts';

/** UTF-16 units of each text. Their cube is minutes, and their square less than a second. */
const length = 8_000;

const units = [
  'a',
  ' ',
  '\n',
  ' \n',
  '\t',
  '\r\n',
  '\u200b',
  '\u0000',
  '\u001b[31m',
  '\ud800',
  '😀',
  '漢',
  '漢。',
  '\u202eא',
  '1',
  '"',
  '`',
  '```\n',
  '[',
  '(',
  '{',
  '<',
  '<a>',
  '<system-reminder>',
  '- ',
  '- [ ] a\n',
  '| a ',
  '\\',
  '/',
  '/a/b.ts ',
  'a.',
  'a! ',
  'a, ',
  'a: ',
  '"a": ',
  '"a": {',
  '; ',
  '&& ',
  'cd a && ',
  '$(a ',
  "<<'EOF'\n",
  'xargs -a ',
  'git -C a ',
  'A=a ',
  '*',
  '**a ',
  '# ',
  '_',
  'a-',
  'A_B ',
  '= ',
  '=====',
  '? ',
  '… ',
  '” ',
  'https://a.b/c?',
  '@',
  '%',
  '+a\n-b\n',
  '1 passed, ',
  'Error: a\n',
  '    at a (b.ts:1:2)\n',
  'USER: a\n',
  '{"a":1}\n',
  '\\"',
  '<<a\n',
  '; git -a',
  'xargs -',
  '</_',
] as const;

/** Each unit stands alone, and behind and before ordinary words. */
const textsOf = (unit: string): readonly string[] => {
  const repeated = unit.repeat(Math.ceil(length / unit.length));
  return [
    repeated,
    `The build was red.${repeated} It is green.`,
    `**${repeated} tells why this was left out**`,
  ];
};

const makes = Array.from(
  { length: 12 },
  (_, at): Step => ({
    calls: [{ name: 'Bash', input: `{"command":"make ${at}"}`, result: `${at} ok\n${'word '.repeat(200)}` }],
  }),
);

function conversationOf(text: string): readonly Step[] {
  const call = (name: string, input: object, said: string): Step => ({
    text: said,
    calls: [{ name, input: JSON.stringify(input), result: text }],
  });
  return [
    { user: 'Mend the build.' },
    call('Bash', { command: text, description: text }, text),
    { assistant: text },
    { user: text },
    call('Read', { file_path: `/app/${text.slice(0, 4_000)}` }, 'I read it.'),
    call('Edit', { file_path: '/app/a.ts', old_string: text, new_string: `${text}b` }, 'I edit it.'),
    call('Grep', { pattern: text, path: '/app' }, 'I look for it.'),
    call('TodoWrite', { todos: [{ content: text, status: 'pending' }] }, 'I plan it.'),
    call('WebFetch', { url: text }, 'I fetch it.'),
    { assistant: text },
    ...makes,
    { user: 'Go on.' },
  ];
}

const page = '<!doctype html><link rel="canonical" href="/"><meta property="og:title">';
const resultOf = (result: string): Step => ({
  calls: [{ name: 'Bash', input: '{"command":"make"}', result }],
});

/** Texts of 1 MB that took minutes, or hours: a run of signs was read again from each of its places. */
const longTexts: readonly (readonly [string, readonly Step[]])[] = [
  ['quotes behind a word, in a result', [resultOf(`It is red${'’'.repeat(1_000_000)}! It was green.\n`)]],
  [
    'quotes behind a word, in a reply',
    [{ assistant: `It is red${'’'.repeat(1_000_000)}! Go?` }, { user: 'ok' }],
  ],
  ['empty lines of a hook', [{ user: `Operation stopped by hook: no${'\n'.repeat(1_000_000)}x` }]],
  [
    'pages with lines of 4,980 units',
    Array.from({ length: 20 }, (_, at) => resultOf(`${page}${at}\n${`${'w '.repeat(2_490)}\n`.repeat(10)}`)),
  ],
  [
    'questions with blanks, and their answers',
    Array.from({ length: 50 }, () => [{ assistant: `1. a${' '.repeat(19_900)}b?` }, { user: '1' }]).flat(),
  ],
];

it.each(longTexts)('1 MB is folded: %s', { timeout: 240_000 }, async (_, steps) => {
  for (const summaries of [false, { kind: 'extractive' }] as const)
    await expectFolded(summaries, [{ user: 'Mend the build.' }, ...steps, ...makes, { user: 'Go on.' }]);
});

it.each(units.map((unit) => [JSON.stringify(unit), unit] as const))(
  'many %s, in every place, are folded',
  { timeout: 240_000 },
  async (_, unit) => {
    for (const summaries of [false, { kind: 'extractive' }] as const)
      for (const text of textsOf(unit)) await expectFolded(summaries, conversationOf(text));
  },
);

async function expectFolded(
  summaries: false | { readonly kind: 'extractive' },
  steps: readonly Step[],
): Promise<void> {
  const leporello = createLeporello({
    summaries,
    storeDeadlineMs: 60_000,
    triggers: { tokenBudget: { triggerTokens: 3_000, targetTokens: 1_500, bufferTokens: 0 } },
  });
  const { outcome } = await leporello.prepare({
    body: {
      model: 'gpt-4o',
      tools: [{ type: 'function', function: { name: 'Bash', parameters: { type: 'object' } } }],
      messages: chatMessages(steps),
    },
  });
  expect(outcome.status).toBe('compacted');
}
