import { generateText, isStepCount, streamText, tool, wrapLanguageModel } from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { folding, foldingEarly, log, memoryIdIn } from '../../test/support/folded-logs.ts';
import { call, type Params, scriptedModel, text } from '../../test/support/scripted-sdk-model.ts';
import { createLeporello } from '../library/leporello.ts';
import { leporelloMiddleware, leporelloPrepareStep, leporelloTools, shrinkResults } from './ai-sdk.ts';

const resultsIn = (prompt: Params['prompt']) =>
  prompt.flatMap(({ role, content }) =>
    role === 'tool' ? content.filter(({ type }) => type === 'tool-result') : [],
  );

describe('leporelloMiddleware', () => {
  it.each(['v2', 'v3'])('folds and recalls for a model of specification %s', async (version) => {
    const inner = scriptedModel(({ prompt }, index) => {
      if (index < 26) return [call('read', { at: index }, `c${index}`)];
      return index === 26 ? [call('read_memory', { id: memoryIdIn(prompt) }, 'r1')] : [text('Done.')];
    });
    const older = {
      ...inner,
      specificationVersion: version,
      async doGenerate(params: Params) {
        const reply = await inner.doGenerate(params);
        const usage = { inputTokens: 100, outputTokens: 5, totalTokens: 105 };
        return version === 'v2' ? { ...reply, finishReason: reply.finishReason.unified, usage } : reply;
      },
    } as unknown as Parameters<typeof wrapLanguageModel>[0]['model'];
    const { text: said, steps } = await generateText({
      model: wrapLanguageModel({
        model: older,
        middleware: leporelloMiddleware(createLeporello(folding)),
      }),
      prompt: 'Read all.',
      stopWhen: isStepCount(30),
      tools: { read: tool({ inputSchema: z.object({ at: z.number() }), execute: ({ at }) => log(at) }) },
    });
    expect([said, steps.length, inner.asked.length]).toEqual(['Done.', 27, 28]);
    expect(steps.at(-1)!.usage.inputTokens).toBe(200);
    expect(JSON.stringify(inner.asked[26]!.prompt)).toContain('[Folded');
    expect(JSON.stringify(resultsIn(inner.asked[27]!.prompt).at(-1))).toContain(log(0).slice(0, 20));
  });
});

describe('leporelloPrepareStep', () => {
  it('folds the messages of a loop, whose model reads them with the tools', async () => {
    const leporello = createLeporello(foldingEarly);
    const model = scriptedModel(({ prompt }, index) => {
      if (index < 20) return [call('read', { at: index }, `c${index}`)];
      if (index === 20) return [call('read_memory', { id: memoryIdIn(prompt) }, 'r1')];
      return [text('Done.')];
    });
    const result = await generateText({
      model,
      prompt: 'Read all.',
      stopWhen: isStepCount(30),
      prepareStep: leporelloPrepareStep(leporello),
      tools: {
        read: tool({ inputSchema: z.object({ at: z.number() }), execute: ({ at }) => log(at) }),
        ...leporelloTools(leporello),
      },
    });
    expect(result.text).toBe('Done.');
    expect(JSON.stringify(model.asked[20]!.prompt)).toContain('[Folded');
    expect(resultsIn(model.asked[21]!.prompt).at(-1)).toMatchObject({
      toolName: 'read_memory',
      output: { type: 'text' },
    });
    const results = result.responseMessages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    expect(results.slice(0, 20).map((part) => (part.type === 'tool-result' ? part.output : part))).toEqual(
      Array.from({ length: 20 }, (_, at) => ({ type: 'text', value: log(at) })),
    );
  });
});

describe('shrinkResults', () => {
  const sentence = (at: number) =>
    `Item ${at} is about subject ${at}. ${'It has many more words that say little. '.repeat(8)}`;
  const list = (about: string) =>
    JSON.stringify(
      Array.from({ length: 160 }, (_, at) => ({
        title: `${at}`,
        body: at === 33 ? `${about}. ${sentence(at)}` : sentence(at),
      })),
    );

  it.each([['generateText'], ['streamText']])(
    'shortens the least relevant items of a list that would fill the window, with %s',
    async (way) => {
      const leporello = createLeporello(folding);
      const model = scriptedModel((_, index) => (index === 0 ? [call('find', {}, 'c1')] : [text('Done.')]));
      const options = {
        model: wrapLanguageModel({ model, middleware: leporelloMiddleware(leporello) }),
        prompt: 'What is known about the lighthouse keeper?',
        stopWhen: isStepCount(3),
        tools: shrinkResults(leporello, {
          find: tool({
            inputSchema: z.object({}),
            execute: () => list('The lighthouse keeper left at noon'),
          }),
        }),
      };
      const result = way === 'generateText' ? await generateText(options) : streamText(options);
      const messages = await result.responseMessages;
      const [first] = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
      const output = first?.type === 'tool-result' && first.output.type === 'text' ? first.output.value : '';
      expect(output.length).toBeLessThan(list('').length);
      expect(output).toContain('The lighthouse keeper left at noon. Item 33 is about subject 33.');
      expect(output).toMatch(/mem_[a-z0-9]{16}/);
    },
  );

  it('leaves results that fit, and tools that yield their progress', async () => {
    const leporello = createLeporello(folding);
    const fits = { value: [1, 2] };
    async function* progress() {
      yield 'half';
      yield 'whole';
    }
    const wrappedTools = shrinkResults(leporello, {
      small: tool({ inputSchema: z.object({}), execute: () => fits }),
      progress: tool({ inputSchema: z.object({}), execute: progress }),
    });
    const how = { toolCallId: 'c1', messages: [], context: {} };
    expect(await wrappedTools.small.execute({}, how)).toBe(fits);
    const yielded: unknown[] = [];
    for await (const part of wrappedTools.progress.execute({}, how) as AsyncGenerator<string>)
      yielded.push(part);
    expect(yielded).toEqual(['half', 'whole']);
  });

  it('leaves results that a tool writes for the model itself, results that are no JSON, and `this`', async () => {
    const leporello = createLeporello(folding);
    const endless: { self?: unknown; readonly words: string } = { words: 'yes '.repeat(2_000) };
    endless.self = endless;
    class OwnTool {
      readonly inputSchema = z.object({});
      readonly words = 'mine';
      execute() {
        return this.words;
      }
    }
    const wrappedTools = shrinkResults(leporello, {
      endless: tool({
        inputSchema: z.object({}),
        execute: (): object => endless,
        toModelOutput: () => ({ type: 'text', value: 'No end.' }),
      }),
      list: tool({
        inputSchema: z.object({}),
        execute: () => ({ items: JSON.parse(list('Noon')) as object[] }),
        toModelOutput: ({ output }) => ({ type: 'text', value: `${output.items.length} items` }),
      }),
      own: new OwnTool(),
    });
    const model = scriptedModel((_, index) =>
      index === 0
        ? [call('endless', {}, 'c1'), call('list', {}, 'c2'), call('own', {}, 'c3')]
        : [text('Done.')],
    );
    const middleware = leporelloMiddleware(leporello);
    await generateText({
      model: wrapLanguageModel({ model, middleware }),
      prompt: 'Read.',
      stopWhen: isStepCount(3),
      tools: wrappedTools,
    });
    expect(resultsIn(model.asked[1]!.prompt)).toMatchObject([
      { output: { type: 'text', value: 'No end.' } },
      { output: { type: 'text', value: '160 items' } },
      { output: { type: 'text', value: 'mine' } },
    ]);
  });
});
