/** Shortens one conversation with the AI SDK's own `pruneMessages` and with our middleware, and compares its form. docs/defects.md has the results. */
import { generateText, jsonSchema, type ModelMessage, pruneMessages, tool, wrapLanguageModel } from 'ai';
import { expect, it } from 'vitest';
import { foldingEarly, log } from '../../test/support/folded-logs.ts';
import { scriptedModel } from '../../test/support/scripted-sdk-model.ts';
import { createLeporello } from '../library/leporello.ts';
import { leporelloMiddleware } from './ai-sdk.ts';

/** 20 questions, each answered by a thought, a call and its result. */
const messages = Array.from({ length: 20 }, (_, at): ModelMessage[] => [
  { role: 'user', content: `Read log ${at}.` },
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: `Thought ${at}.`, providerOptions: { one: { signature: `s${at}` } } },
      { type: 'tool-call', toolCallId: `c${at}`, toolName: 'read', input: { at } },
    ],
  },
  {
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: `c${at}`,
        toolName: 'read',
        output: { type: 'text', value: log(at) },
      },
    ],
  },
]).flat();

type Shaped = { readonly role: string; readonly content: unknown };

/** Counts user messages that follow another one, and reasoning that no part follows. */
function faultsIn(list: readonly Shaped[]) {
  const adjacent = list.filter(({ role }, at) => role === 'user' && list[at - 1]?.role === 'user').length;
  const calls = list.filter(({ role }) => role === 'assistant').length;
  const lonely = list.filter(
    ({ content }) => Array.isArray(content) && (content as { type: string }[]).at(-1)?.type === 'reasoning',
  ).length;
  return { adjacent, calls, lonely };
}

it('keeps turns in order; with pruneMessages user messages follow each other, and the calls between are gone', async () => {
  const pruned = pruneMessages({ messages, toolCalls: 'before-last-3-messages' });
  expect(faultsIn(pruned)).toEqual({ adjacent: 19, calls: 1, lonely: 0 });
  const model = scriptedModel(() => [{ type: 'text', text: 'Done.' }]);
  await generateText({
    model: wrapLanguageModel({ model, middleware: leporelloMiddleware(createLeporello(foldingEarly)) }),
    messages,
    tools: { read: tool({ inputSchema: jsonSchema<object>({ type: 'object' }) }) },
  });
  const [{ prompt }] = model.asked as [(typeof model.asked)[0]];
  expect(JSON.stringify(prompt).includes('[Folded')).toBe(true);
  expect(faultsIn(prompt)).toEqual({ adjacent: 0, calls: 20, lonely: 0 });
});
