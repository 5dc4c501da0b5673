import {
  generateText,
  isStepCount,
  type ModelMessage,
  Output,
  streamText,
  tool,
  wrapLanguageModel,
} from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { folding, log, memoryIdIn } from '../../test/support/folded-logs.ts';
import { call, scriptedModel, text } from '../../test/support/scripted-sdk-model.ts';
import { createLeporello } from '../library/leporello.ts';
import { leporelloMiddleware } from './ai-sdk.ts';

/** The model reads 26 logs, recalls one with some words ahead, and answers. Streamed texts come in pieces of eight characters. */
const model = (answer: string, ahead: string) =>
  scriptedModel(
    ({ prompt }, index) => {
      if (index < 26) return [text(`Log ${index}.`), call('read', { at: index }, `c${index}`)];
      const recall = call('read_memory', { id: memoryIdIn(prompt) }, 'r1');
      return index === 26 ? [{ type: 'reasoning', text: 'Which?' }, text(ahead), recall] : [text(answer)];
    },
    (words) => words.match(/.{1,8}/g) ?? [],
  );

const options = (
  inner: ReturnType<typeof model>,
  messages: ModelMessage[] = [{ role: 'user', content: 'Read all.' }],
) => ({
  model: wrapLanguageModel({ model: inner, middleware: leporelloMiddleware(createLeporello(folding)) }),
  messages,
  stopWhen: isStepCount(30),
  tools: { read: tool({ inputSchema: z.object({ at: z.number() }), execute: ({ at }) => log(at) }) },
  output: Output.object({ schema: z.object({ state: z.string() }) }),
});

describe('the structured output of a reply with a recall', () => {
  it('has no words from ahead of the recall, which later requests have in its place', async () => {
    const inner = model('{"state":"well"}', 'Let me look.');
    const first = options(inner);
    const result = await generateText(first);
    expect([result.output, result.text]).toEqual([{ state: 'well' }, '{"state":"well"}']);
    await generateText({
      ...first,
      messages: [...first.messages, ...result.responseMessages, { role: 'user', content: 'Again.' }],
    });
    const [answer, asked] = inner.asked.slice(-2).map(({ prompt }) => prompt);
    expect(asked!.slice(0, answer!.length)).toEqual(answer);
    expect(JSON.stringify(answer!.slice(-2))).toContain('Let me look.');
    expect(asked!.slice(answer!.length).map(({ content }) => content)).toEqual([
      [text('{"state":"well"}')],
      [text('Again.')],
    ]);
  });

  it('streams as it comes, without words from ahead of the recall', async () => {
    const result = streamText(options(model('{"state":"all is well"}', 'Let me look.')));
    const partial: unknown[] = [];
    for await (const value of result.partialOutputStream) partial.push(value);
    expect(partial).toEqual([{}, { state: 'all is' }, { state: 'all is well' }]);
    expect([await result.output, await result.text]).toEqual([
      { state: 'all is well' },
      '{"state":"all is well"}',
    ]);
  });

  it('keeps other words in their order when no recall follows them', async () => {
    const events: string[] = [];
    const said = 'It is well.';
    const result = streamText({ ...options(model(said, 'Let me look.')), onError: () => undefined });
    for await (const part of result.fullStream)
      if (part.type === 'text-delta' || part.type === 'tool-call' || part.type === 'reasoning-delta')
        events.push(part.type === 'tool-call' ? part.toolName : part.text);
    expect(events.slice(0, 4)).toEqual(['Log 0.', 'read', 'Log 1.', 'read']);
    expect(events.slice(-3)).toEqual(['read', 'Which?', said]);
    await expect(result.output).rejects.toThrow('No object generated');
  });

  it('is left alone where the program asked for a text', async () => {
    const { output: _, ...plain } = options(model('Well.', 'Let me look. '));
    expect((await generateText(plain)).text).toBe('Let me look. Well.');
    expect(await streamText({ ...plain, model: options(model('Well.', 'Let me look. ')).model }).text).toBe(
      'Let me look. Well.',
    );
  });
});
