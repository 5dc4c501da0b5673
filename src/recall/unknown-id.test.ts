import { beforeAll, describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createLeporello } from '../library/leporello.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';

/** Folds a conversation of 24 reads. Returns the ids of its stubs, and the lines of the answer to a call, cut at 400 tokens. */
async function open(windowTokens: number) {
  const file = (at: number) =>
    Array.from(
      { length: 80 },
      (_, line) => `export const setting${at}_${line} = ${line * at}; // of the shop`,
    );
  const steps: readonly Step[] = [
    { user: 'Find the port.' },
    ...Array.from({ length: 24 }, (_, at): Step => {
      const input = JSON.stringify({ path: `src/shop/part${at}.ts` });
      return { calls: [{ name: 'read', input, result: file(at).join('\n') }] };
    }),
  ];
  const body = chatBody(steps, { tools: ['read'], model: 'gpt-4o' });
  const leporello = createLeporello({ models: { 'gpt-4o': { windowTokens } } });
  const prepared = await leporello.prepare({ codec: openaiChat, body });
  const ask = async (args: unknown) =>
    (await leporello.recall(prepared, JSON.stringify(args), 400)).split('\n');
  return { ids: prepared.report.memories, ask };
}

describe('a call that names no original', () => {
  let results: Awaited<ReturnType<typeof open>>;
  let steps: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    results = await open(20_000);
    steps = await open(5_000);
  });
  const missing = (id: string) => `No memory with id "${id}" in this conversation.`;

  it('gets the original whose id was cut or misspelled, beside the right ones', async () => {
    const [id] = results.ids as [string];
    for (const wrong of [id.slice(0, 14), `${id.slice(0, -2)}zz`, `${id}x`])
      expect(await results.ask({ id: wrong, lines: '1' })).toEqual([
        `${missing(wrong)} The closest is ${id}:`,
        'export const setting0_0 = 0; // of the shop',
        '[Line 1 of 80.]',
      ]);
    expect(await results.ask({ id: [id, `${id.slice(0, -1)}!z`], lines: '2' })).toContain(
      'export const setting0_1 = 0; // of the shop',
    );
  });

  it('gets the original of a call by the id of the call', async () => {
    expect(await results.ask({ id: 'call_2', lines: '2' })).toEqual([
      `${missing('call_2')} It is the id of a call, to which ${results.ids[1]} belongs:`,
      'export const setting1_1 = 1; // of the shop',
      '[Line 2 of 80.]',
    ]);
    expect((await steps.ask({ id: 'call_2' })).slice(0, 4)).toEqual([
      expect.stringMatching(/^No memory with id "call_2" .* It is the id of a call in mem_\w{16}:$/),
      '── 3 of 6 · call read src/shop/part1.ts ──',
      'path: src/shop/part1.ts',
      '── 4 of 6 · result of read src/shop/part1.ts ──',
    ]);
  });

  it('gets the newest original by its title or a path, in place of an id, a path or a query', async () => {
    const newest = `${results.ids[2]} is the newest about it:`;
    const path = 'src/shop/part2.ts';
    for (const [args, sentence] of [
      [{ id: path }, missing(path)],
      [{ id: `result of read ${path}` }, missing(`result of read ${path}`)],
      [{ path }, `No match for "${path}" in all that was folded.`],
      [{ query: `öffnen: ${path}` }, `No match for "öffnen: ${path}" in all that was folded.`],
    ] as const)
      expect((await results.ask(args)).slice(0, 2)).toEqual([
        `${sentence} ${newest}`,
        'export const setting2_0 = 0; // of the shop',
      ]);
    expect(await results.ask({ id: results.ids[2], path, lines: '1' })).toEqual([
      'export const setting2_0 = 0; // of the shop',
      '[Line 1 of 80.]',
    ]);
  });

  it('gets messages by their numbers in a summary, in whatever form', async () => {
    for (const id of [3, '3', 'message 3', '#3'])
      expect(await steps.ask({ id })).toEqual([
        expect.stringMatching(/ Message 3 of those that were taken out is in mem_\w{16}:$/),
        '── 3 of 6 · call read src/shop/part1.ts ──',
        'path: src/shop/part1.ts',
        expect.stringMatching(/^\[Lines 84-85 of \d+\.\]$/),
      ]);
    expect(await steps.ask({ id: 'messages 3-4' })).toContain('export const setting1_0 = 0; // of the shop');
    expect(await steps.ask({ id: 7 })).toContain('── 1 of 6 · call read src/shop/part3.ts ──');
  });

  it('gets a search by the words it has', async () => {
    expect((await results.ask({ id: 'mem_0000000000000000', query: 'setting4_7 = 28' })).slice(0, 2)).toEqual(
      [
        `${missing('mem_0000000000000000')} A search of all that was folded:`,
        expect.stringMatching(/· result of read src\/shop\/part4\.ts ──$/),
      ],
    );
    expect((await results.ask({ id: 'the settings of the shop' }))[0]).toBe(
      `${missing('the settings of the shop')} A search of all that was folded:`,
    );
  });

  it('gets a list of what can be read when nothing else is known', async () => {
    const list = [
      'Folded in this conversation, the newest first:',
      `${results.ids.at(-1)} · result of read src/shop/part${results.ids.length - 1}.ts`,
    ];
    const form = 'No id was given. Send a JSON object with the id of a stub, such as {"id":"ID"}';
    for (const [args, sentence] of [
      [{ id: 999 }, missing('999')],
      [{ id: 'mem_0000000000000000' }, missing('mem_0000000000000000')],
      [{ query: 'Wo ist das festgelegt?' }, 'No match for "Wo ist das festgelegt?" in all that was folded.'],
      [{}, form],
      ['', form],
    ] as const) {
      const [first, ...rest] = await results.ask(args);
      expect([first?.startsWith(sentence), ...rest.slice(0, 2)]).toEqual([true, ...list]);
    }
    expect((await steps.ask({ id: 999 })).at(-1)).toMatch(
      /^mem_\w{16} · 6 messages, the first: call read src\/shop\/part0\.ts$/,
    );
  });
});
