/** Runs the suite of codecs over values for every framework, and for the objects that the SDKs of providers take. */
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { tool } from '../../test/e2e/adapters/long-loop.ts';
import { requestsFor } from '../../test/support/codec-suite/arbitrary.ts';
import { messagesFixture } from '../../test/support/codec-suite/anthropic-messages/fixture.ts';
import type { NeutralTurn, RequestFixture } from '../../test/support/codec-suite/fixture.ts';
import { geminiFixture } from '../../test/support/codec-suite/gemini/fixture.ts';
import { chatFixture } from '../../test/support/codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from '../../test/support/codec-suite/openai-responses/fixture.ts';
import {
  agentsItems as generatedItems,
  langchainMessages as generatedLangchain,
  plainMessage,
  sdkMessages,
} from '../../test/support/framework-messages.ts';
import { valuesSuite } from '../../test/support/values-suite.ts';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { gemini } from '../codecs/gemini/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { createLeporello } from '../index.ts';
import { itemForm } from './lib/agents-items.ts';
import { agentsItems, aiSdkMessages, wireBody } from './values.ts';
import { langchainMessages } from './values-langchain.ts';

const formats = [
  { codec: openaiChat, fixture: chatFixture },
  { codec: openaiResponses, fixture: responsesFixture },
  { codec: anthropicMessages, fixture: messagesFixture },
  { codec: gemini, fixture: geminiFixture },
] as const;

const inputSchema = { type: 'object', properties: { path: { type: 'string' } } };

valuesSuite({
  name: 'the AI SDK',
  list: 'messages',
  messages: sdkMessages,
  write: (messages) => aiSdkMessages.write({ model: 'm', messages, tools: [{ ...tool, inputSchema }] }),
  say: (said) => ({ role: 'user', content: said }),
  step: ({ id: toolCallId, path, result }) => [
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId, toolName: tool.name, input: { path } }],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId, toolName: tool.name, output: { type: 'text', value: result } },
      ],
    },
  ],
});

valuesSuite({
  name: 'LangChain',
  list: 'messages',
  messages: generatedLangchain,
  write: (messages) =>
    langchainMessages.write({
      model: 'm',
      messages,
      tools: [{ ...tool, schema: z.object({ path: z.string() }) }],
    }),
  say: (said) => new HumanMessage(said),
  step: ({ id, path, result }) => [
    new AIMessage({ content: '', tool_calls: [{ id, name: tool.name, args: { path } }] }),
    new ToolMessage({ tool_call_id: id, name: tool.name, content: result }),
  ],
  plain: plainMessage,
});

valuesSuite({
  name: 'OpenAI Agents',
  list: 'messages',
  messages: generatedItems,
  write: (messages) =>
    agentsItems.write({
      model: 'm',
      messages,
      tools: [{ type: 'function', ...tool, parameters: inputSchema }],
    }),
  say: (said) => ({ role: 'user', content: said }),
  step: ({ id: callId, path, result }) => [
    { type: 'function_call', callId, name: tool.name, arguments: JSON.stringify({ path }) },
    {
      type: 'function_call_result',
      callId,
      name: tool.name,
      status: 'completed',
      output: { type: 'text', text: result },
    },
  ],
  // Reasoning needs the item that it led to.
  settled: (left) => itemForm.order!([...left] as never[], new Set()),
});

for (const { codec, fixture } of formats) {
  const list = fixture.messagesKey as 'messages' | 'input' | 'contents';
  const messagesOf = (...turns: readonly NeutralTurn[]) =>
    Reflect.get(requestOf(fixture, turns), list) as readonly object[];
  valuesSuite({
    name: codec.name,
    list,
    messages: requestsFor(fixture).map(({ turns }) => messagesOf(...turns)),
    write: (messages) => wireBody(codec).write({ ...requestOf(fixture, []), [list]: messages }),
    say: (text) => messagesOf({ say: 'user', text })[0]!,
    step: ({ id, path, result }) =>
      messagesOf(
        { say: 'assistant', calls: [{ id, name: 'read', argumentsJson: JSON.stringify({ path }) }] },
        { say: 'results', results: [{ id, text: result }] },
      ),
  });
}

function requestOf(fixture: RequestFixture, turns: readonly NeutralTurn[]): object {
  const body = fixture.body({ turns, tools: ['read'], stream: false });
  return JSON.parse(new TextDecoder().decode(body)) as object;
}

it('a request that JSON cannot spell is not folded, and comes back as it is', async () => {
  const circular: { role: string; content: unknown } = { role: 'user', content: [] };
  circular.content = [{ type: 'text', text: circular }];
  const leporello = createLeporello();
  for (const written of [
    wireBody(openaiChat).write({ messages: [circular] }),
    aiSdkMessages.write({ messages: [circular] }),
  ]) {
    const { outcome, body } = await leporello.prepare({ codec: written.codec, body: written.body });
    expect(outcome.status).toBe('untouched');
    expect(written.read(body).messages[0]).toBe(circular);
  }
});
