import { wrapLanguageModel } from 'ai';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { folding, foldingEarly, log, memoryIdIn } from '../../test/support/folded-logs.ts';
import {
  call,
  type Params,
  type SdkModel,
  scriptedModel,
  text,
} from '../../test/support/scripted-sdk-model.ts';
import { createLeporello, type LeporelloOptions } from '../library/leporello.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { tokenBudget } from '../triggers/limits.ts';
import { leporelloMiddleware } from './ai-sdk.ts';

/** A prompt of a tool loop whose results fill the window, with parts that no fold may change. */
function longPrompt(): Params['prompt'] {
  const image = { type: 'data', data: new Uint8Array([137, 80, 78, 71]) } as const;
  return [
    { role: 'system', content: 'Be brief.', providerOptions: { one: { cache: true } } },
    {
      role: 'user',
      content: [text('Read all.'), { type: 'file', mediaType: 'image/png', data: image }],
      providerOptions: { one: { a: 1 } },
    },
    ...Array.from({ length: 24 }, (_, at): Params['prompt'] => [
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: `Thought ${at}.`, providerOptions: { one: { signature: `s${at}` } } },
          { type: 'tool-call', toolCallId: `p${at}`, toolName: 'search', input: {}, providerExecuted: true },
          {
            type: 'tool-result',
            toolCallId: `p${at}`,
            toolName: 'search',
            output: { type: 'json', value: [at] },
          },
          { type: 'custom', kind: 'one.usage', providerOptions: { one: { at } } },
          {
            type: 'tool-call',
            toolCallId: `c${at}`,
            toolName: 'read',
            input: { at },
            providerOptions: { one: { at } },
          },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-approval-response', approvalId: `a${at}`, approved: true },
          {
            type: 'tool-result',
            toolCallId: `c${at}`,
            toolName: 'read',
            output: { type: 'text', value: log(at) },
            providerOptions: { one: { kept: at } },
          },
        ],
      },
    ]).flat(),
  ];
}

const tools: NonNullable<Params['tools']> = [
  {
    type: 'function',
    name: 'read',
    inputSchema: { type: 'object' },
    providerOptions: { one: { strict: true } },
  },
  { type: 'provider', id: 'one.search', name: 'search', args: { deep: true } },
];

function wrapped(model: SdkModel, options: LeporelloOptions = folding) {
  return wrapLanguageModel({ model, middleware: leporelloMiddleware(createLeporello(options)) });
}

const resultsIn = (prompt: Params['prompt']) =>
  prompt.flatMap(({ role, content }) =>
    role === 'tool' ? content.filter(({ type }) => type === 'tool-result') : [],
  );

describe('leporelloMiddleware', () => {
  it('gives a prompt that fits to the model as the very same objects', async () => {
    const model = scriptedModel(() => [text('Hi.')]);
    const prompt = longPrompt().slice(0, 6);
    const result = await wrapped(model).doGenerate({ prompt, tools });
    expect(result.content).toEqual([text('Hi.')]);
    const [asked] = model.asked;
    expect(asked!.prompt.map((message, at) => message === prompt[at])).toEqual(prompt.map(() => true));
    expect(asked!.tools!.slice(0, 2)).toEqual(tools);
    expect(asked!.tools!.map(({ name }) => name)).toEqual(['read', 'search', 'read_memory']);
  });

  it('changes nothing but the results that it folds', async () => {
    const model = scriptedModel(() => [text('Hi.')]);
    const prompt = longPrompt();
    await wrapped(model).doGenerate({ prompt, tools });
    const sent = model.asked[0]!.prompt;
    expect(sent.length).toBe(prompt.length);
    const changed = sent.flatMap((message, at) => (message === prompt[at] ? [] : [at]));
    expect(changed.length).toBeGreaterThan(5);
    for (const at of changed) {
      const [before, after] = [prompt[at]!, sent[at]!];
      expect(after).toEqual({
        ...before,
        content: [
          before.content[0],
          {
            ...(before.content[1] as object),
            output: { type: 'text', value: expect.stringMatching(/^\[Folded/) },
          },
        ],
      });
      expect(after.content[0]).toBe(before.content[0]);
    }
    expect(prompt).toEqual(longPrompt());
  });

  it('answers recalls inside the reply, and puts them back for another process', async () => {
    const shared = { ...folding, store: inMemoryStore(), secret: new Uint8Array(32).fill(1) };
    const prompt = longPrompt();
    const first = scriptedModel(({ prompt: asked }, index) =>
      index === 0
        ? [
            text('Let me see. '),
            { type: 'reasoning', text: 'Hm.' },
            call('read_memory', { id: memoryIdIn(asked) }, 'r1'),
          ]
        : [
            text('It is well.'),
            call('read', { at: 99 }, 'c99'),
            call('read_memory', { id: memoryIdIn(asked, 1) }, 'r2'),
          ],
    );
    const reply = await wrapped(first, shared).doGenerate({ prompt, tools });
    expect(reply.content).toEqual([
      text('Let me see. '),
      { type: 'reasoning', text: 'Hm.' },
      text('It is well.'),
      call('read', { at: 99 }, 'c99'),
    ]);
    expect(reply.finishReason.unified).toBe('tool-calls');
    expect(reply.usage.inputTokens).toEqual({
      total: 200,
      noCache: 180,
      cacheRead: 20,
      cacheWrite: undefined,
    });
    const recalled = first.asked[1]!.prompt.slice(-2);
    expect(recalled).toEqual([
      {
        role: 'assistant',
        content: [
          text('Let me see. '),
          { type: 'reasoning', text: 'Hm.' },
          {
            type: 'tool-call',
            toolCallId: 'r1',
            toolName: 'read_memory',
            input: { id: memoryIdIn(first.asked[0]) },
          },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'r1',
            toolName: 'read_memory',
            output: { type: 'text', value: log(0) },
          },
        ],
      },
    ]);

    const next: Params['prompt'] = [
      ...prompt,
      {
        role: 'assistant',
        content: [
          text('Let me see. '),
          { type: 'reasoning', text: 'Hm.' },
          text('It is well.'),
          { type: 'tool-call', toolCallId: 'c99', toolName: 'read', input: { at: 99 } },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'c99',
            toolName: 'read',
            output: { type: 'text', value: 'fine' },
          },
        ],
      },
    ];
    // The recalls of a reply are stored while the program already has it.
    await eventually(async () => {
      const second = scriptedModel(() => [text('Bye.')]);
      await wrapped(second, shared).doGenerate({ prompt: next, tools });
      const later = second.asked[0]!.prompt;
      expect(later.slice(0, -2)).toEqual(first.asked[1]!.prompt);
      expect(later.slice(-2)).toEqual([
        {
          role: 'assistant',
          content: [
            text('It is well.'),
            { type: 'tool-call', toolCallId: 'c99', toolName: 'read', input: { at: 99 } },
            {
              type: 'tool-call',
              toolCallId: 'r2',
              toolName: 'read_memory',
              input: { id: memoryIdIn(first.asked[1], 1) },
            },
          ],
        },
        {
          role: 'tool',
          content: [
            {
              type: 'tool-result',
              toolCallId: 'r2',
              toolName: 'read_memory',
              output: { type: 'text', value: log(1) },
            },
            {
              type: 'tool-result',
              toolCallId: 'c99',
              toolName: 'read',
              output: { type: 'text', value: 'fine' },
            },
          ],
        },
      ]);
    });
  });

  it('answers the tool for notes as it answers recalls, plain and streamed', async () => {
    const note = call('save_context', { text: 'It is due on Friday.' }, 'n1');
    const script = () =>
      scriptedModel((_, index) => (index === 0 ? [text('I note it. '), note] : [text('Done.')]));
    const [plain, streamed] = [script(), script()];
    const options = { ...folding, offerNotes: true };
    const reply = await wrapped(plain, options).doGenerate({ prompt: longPrompt(), tools });
    expect(reply.content).toEqual([text('I note it. '), text('Done.')]);
    const { stream } = await wrapped(streamed, options).doStream({ prompt: longPrompt(), tools });
    const parts: unknown[] = [];
    for await (const part of stream) parts.push(part);
    expect(JSON.stringify(parts)).not.toContain('save_context');
    for (const { asked } of [plain, streamed]) {
      expect(asked[0]!.tools!.map(({ name }) => name).slice(-2)).toEqual(['read_memory', 'save_context']);
      expect(JSON.stringify(asked[1]!.prompt.slice(-2))).toContain('The newest saved texts stay in view.');
    }
  });

  it('ends the rounds when the model recalls without end', async () => {
    const model = scriptedModel(({ prompt }) => [call('read_memory', { id: memoryIdIn(prompt) }, 'r')]);
    const middleware = leporelloMiddleware(createLeporello(folding), { maxRecallRounds: 2 });
    const reply = await wrapLanguageModel({ model, middleware }).doGenerate({ prompt: longPrompt(), tools });
    expect([reply.content, reply.finishReason.unified, model.asked.length]).toEqual([[], 'stop', 4]);
    expect(JSON.stringify(model.asked[3]!.prompt.at(-1))).toContain(
      'No more memory can be read in this answer.',
    );
  });

  it('gives an image back as an image', async () => {
    const data = btoa('an image '.repeat(60));
    const prompt: Params['prompt'] = [
      { role: 'user', content: [text('Look.')] },
      ...Array.from({ length: 12 }, (_, at): Params['prompt'] => [
        {
          role: 'assistant',
          content: [{ type: 'tool-call', toolCallId: `c${at}`, toolName: 'read', input: { at } }],
        },
        {
          role: 'tool',
          content: [
            {
              type: 'tool-result',
              toolCallId: `c${at}`,
              toolName: 'read',
              output: {
                type: 'content',
                value: [
                  text(`Screen ${at}`),
                  { type: 'file', mediaType: 'image/png', data: { type: 'data', data: data + at } },
                ],
              },
            },
          ],
        },
      ]).flat(),
    ];
    const model = scriptedModel(({ prompt: asked }, index) =>
      index === 0 ? [call('read_memory', { id: memoryIdIn(asked) }, 'r1')] : [text('I see.')],
    );
    await wrapped(model, foldingEarly).doGenerate({ prompt, tools });
    const [folded] = resultsIn(model.asked[0]!.prompt);
    expect(folded).toMatchObject({
      output: {
        type: 'content',
        value: [text('Screen 0'), { type: 'text', text: expect.stringMatching(/^\[Folded image/) }],
      },
    });
    // Some providers would write an image in a result as text.
    expect(resultsIn(model.asked[1]!.prompt).at(-1)).toMatchObject({
      output: { type: 'text', value: expect.stringContaining('as it was') },
    });
    expect(model.asked[1]!.prompt.at(-1)).toMatchObject({
      role: 'user',
      content: [
        text('[Recalled content]'),
        { type: 'file', mediaType: 'image/png', data: { type: 'data', data: `${data}0` } },
      ],
    });
  });

  it('gives messages after dropped ones to the model as the very same objects', async () => {
    const model = scriptedModel(() => [text('Fine.')]);
    const prompt: Params['prompt'] = [
      ...Array.from({ length: 60 }, (_, at): Params['prompt'] => [
        { role: 'user', content: [text(`Question ${at}: ${log(at)}`)] },
        {
          role: 'assistant',
          content: [text(`Answer ${at}: ${log(at)}`), { type: 'reasoning', text: 'Its end.' }],
        },
      ]).flat(),
      { role: 'user', content: [text('And now?')] },
    ];
    await wrapped(model, foldingEarly).doGenerate({ prompt, tools });
    const [first, ...others] = model.asked[0]!.prompt;
    expect(JSON.stringify(first)).toContain('[Folded');
    expect(others.map((message) => prompt.indexOf(message))).toEqual([119, 120]);
  });

  it('folds the arguments of calls that stood beside a recall', async () => {
    const triggers = [tokenBudget({ triggerTokens: 9_000, targetTokens: 4_000 })];
    const model = scriptedModel(({ prompt }, index) => [
      call('write', { path: `file ${index}`, content: `${log(index)}\n`.repeat(5) }, `w${index}`),
      call('read_memory', { id: memoryIdIn(prompt), lines: '1-2' }, `r${index}`),
    ]);
    const middle = wrapped(model, { ...folding, triggers });
    const prompt = longPrompt();
    for (let step = 0; step < 12; step++) {
      const { content } = await middle.doGenerate({ prompt, tools });
      const [written] = content.flatMap((part) => (part.type === 'tool-call' ? part : []));
      const { toolCallId, toolName, input } = written!;
      const output = { type: 'text', value: 'Written.' } as const;
      prompt.push(
        {
          role: 'assistant',
          content: [{ type: 'tool-call', toolCallId, toolName, input: JSON.parse(input) as object }],
        },
        { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] },
      );
    }
    const last = model.asked.at(-1)!.prompt.map((message) => JSON.stringify(message));
    expect(last.join('')).not.toContain('log 0 line 30');
    expect(last.join('')).toContain('log 10 line 30');
    expect(last.find((message) => message.includes('"r8"'))).toContain('301 lines were written here');
  });

  it('refuses anything but what createLeporello returned, at once', () => {
    expect(() => leporelloMiddleware({} as never)).toThrow(
      'The first argument is {}, but must be what createLeporello() returned.',
    );
  });
});
