/** Checks that generated conversations of each framework survive the way into the wire format and back: decision 42. */
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  agentsItems,
  langchainMessages,
  plainMessage as plain,
  sdkMessages,
} from '../../../test/support/framework-messages.ts';
import { type JsonRecord, isRecord, objectsOf } from '../../conversation/json-scan.ts';
import { itemBlocks, itemForm } from './agents-items.ts';
import { sdkForm } from './ai-sdk-messages.ts';
import { langchainForm, replyBlocks as langchainReply } from './langchain-messages.ts';
import { type MessageForm, wireRequest } from './wire-body.ts';

// The laws

type Framework = {
  readonly name: string;
  readonly form: MessageForm<object>;
  readonly messages: fc.Arbitrary<readonly object[]>;
  /** Writes a reply as blocks, for a framework whose replies have the form of its messages. */
  readonly reply?: ((message: object) => readonly JsonRecord[]) | undefined;
  readonly isReply?: (message: object) => boolean;
};

const frameworks: readonly Framework[] = [
  {
    name: 'the AI SDK',
    form: sdkForm,
    messages: sdkMessages,
  },
  {
    name: 'LangChain',
    form: langchainForm,
    messages: langchainMessages,
    reply: (message) => langchainReply(message as AIMessage),
    isReply: (message) => AIMessage.isInstance(message),
  },
  {
    name: 'OpenAI Agents',
    form: itemForm,
    messages: agentsItems,
    reply: (item) => itemBlocks([item]),
    isReply: (item) =>
      /^(?:message|reasoning|function_call)$/.test(String((item as JsonRecord)['type'])) &&
      (item as JsonRecord)['role'] !== 'user',
  },
];

const wireOf = ({ form }: Framework, messages: readonly object[]) =>
  wireRequest({ model: 'm', messages, tools: [] }, form);

/** Returns the body as an object, and its bytes after a change. */
function changed(body: Uint8Array, change: (messages: JsonRecord[]) => readonly JsonRecord[]): Uint8Array {
  const sent = JSON.parse(new TextDecoder().decode(body)) as { messages: JsonRecord[] };
  return new TextEncoder().encode(JSON.stringify({ ...sent, messages: change(sent.messages) }, undefined, 1));
}

const runs = { numRuns: 60 };

describe.each(frameworks)('messages of $name', (framework) => {
  it('change in nothing but the results that are folded', () => {
    fc.assert(
      fc.property(framework.messages, (messages) => {
        const { body, read } = wireOf(framework, messages);
        const stub = '[Folded: here it was.]';
        const folded = read(
          changed(body, (all) =>
            all.map((message) => ({
              ...message,
              content: objectsOf(message['content']).map((block) =>
                block['type'] === 'tool_result' && typeof block['content'] === 'string'
                  ? { ...block, content: stub }
                  : block,
              ),
            })),
          ),
        ).messages;
        expect(folded.length).toBe(messages.length);
        const masked = (message: object) => masking(plain(message), stub);
        for (const [at, message] of messages.entries()) {
          const result = folded[at]!;
          if (!JSON.stringify(plain(result)).includes(stub)) expect(plain(result)).toEqual(plain(message));
          else expect(masked(result)).toEqual(masked(message));
        }
      }),
      runs,
    );
  });

  it('that were replies come back from the blocks that are stored', () => {
    fc.assert(
      fc.property(framework.messages, (messages) => {
        const { reply, isReply } = framework;
        if (!reply || !isReply) return;
        for (const [at, message] of messages.entries()) {
          if (!isReply(message)) continue;
          // Reasoning comes back with the item that it led to.
          const said =
            'type' in message && message.type === 'reasoning' ? [message, messages[at + 1]!] : [message];
          const turn = JSON.stringify({ messages: [{ role: 'assistant', content: said.flatMap(reply) }] });
          const { messages: back } = wireOf(framework, []).read(new TextEncoder().encode(turn));
          if (reply(message).length > 0) expect(back.map(plain)).toEqual(said.map(plain));
        }
      }),
      runs,
    );
  });
});

describe('a reply of LangChain with reasoning beside its content', () => {
  const reasoning = {
    id: 'rs_1',
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'Hm.' }],
    encrypted_content: 'c2VjcmV0',
  };
  const messages = [
    new HumanMessage('Read.'),
    new AIMessage({ content: 'I read.', additional_kwargs: { reasoning, refusal: null } }),
  ];
  const { body, read } = wireRequest({ model: 'm', messages, tools: [] }, langchainForm);
  const block = {
    type: 'thinking',
    thinking: 'Hm.',
    signature: 'c2VjcmV0',
    id: 'rs_1',
    summary: [{ type: 'summary_text' }],
  };

  it('is written with all that is sent of it, because that is counted', () => {
    const [, { content }] = (JSON.parse(new TextDecoder().decode(body)) as { messages: JsonRecord[] })
      .messages as [JsonRecord, JsonRecord];
    expect(content).toEqual([block, { type: 'text', text: 'I read.', at: 1 }]);
  });

  it('loses the reasoning when the folded body has none', () => {
    const [, left] = read(
      changed(body, ([first, reply]) => [
        first!,
        { ...reply!, content: objectsOf(reply!['content']).filter(({ type }) => type === 'text') },
      ]),
    ).messages;
    expect(left!.content).toBe('I read.');
    expect(left!.additional_kwargs).toEqual({ refusal: null });
    expect(messages[1]!.additional_kwargs).toEqual({ reasoning, refusal: null });
  });
});

/** Returns data in which the place of a result is masked: its text, and the form that the text has. */
function masking(value: unknown, stub: string): unknown {
  if (Array.isArray(value)) return value.map((one) => masking(one, stub));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const isOutput = key === 'output' && value['type'] !== 'shell_call_output';
      const isContent = key === 'content' && 'tool_call_id' in value;
      return [key, isOutput || isContent ? stub : masking(inner, stub)];
    }),
  );
}
