import type { AgentInputItem } from '@openai/agents';
import { HumanMessage } from '@langchain/core/messages';
import { describe, expect, it } from 'vitest';
import { unremembered } from '../../codecs/read-body.ts';
import { conversationCounter } from '../../tokens/count-conversation.ts';
import { loadTokenCounter } from '../../tokens/load-counter.ts';
import { itemForm } from './agents-items.ts';
import { sdkForm } from './ai-sdk-messages.ts';
import { langchainForm } from './langchain-messages.ts';
import { frameworkCodec } from './wire-body.ts';
import { packBytes, unpackBytes } from './media-blocks.ts';
import { type MessageForm, wireRequest } from './wire-body.ts';

const bytes = new Uint8Array(300_000).fill(65);
const base64 = 'QUJD'.repeat(100_000);
const pdf = `data:application/pdf;base64,${base64}`;

async function tokensOf<Message>(messages: readonly Message[], form: MessageForm<Message>): Promise<number> {
  const { body } = wireRequest({ model: undefined, messages, tools: [] }, form);
  const counter = conversationCounter(await loadTokenCounter('gpt-4o'));
  return counter.total(frameworkCodec.read(body, unremembered));
}

const sdk = (part: object) => tokensOf([{ role: 'user', content: [part] }], sdkForm);
const langchain = (part: { readonly type: string }) =>
  tokensOf([new HumanMessage({ content: [part] })], langchainForm);
const agents = (part: object) =>
  tokensOf([{ role: 'user', content: [part] } as unknown as AgentInputItem], itemForm);

describe('bytes within a message', () => {
  it.each<[string, Promise<number>]>([
    ['a sound', sdk({ type: 'file', mediaType: 'audio/wav', data: base64 })],
    ['the bytes of a sound', sdk({ type: 'file', mediaType: 'audio/wav', data: bytes })],
    ['a PDF', sdk({ type: 'file', mediaType: 'application/pdf', data: base64 })],
    ['the bytes of an image', langchain({ type: 'image', data: bytes, mimeType: 'image/png' } as never)],
    ['a sound', langchain({ type: 'audio', data: base64, mimeType: 'audio/wav' } as never)],
    ['a PDF', langchain({ type: 'file', file: { file_data: pdf } } as never)],
    ['a PDF', langchain({ type: 'file', data: base64, mimeType: 'application/pdf' } as never)],
    ['a PDF', agents({ type: 'input_file', file: pdf })],
    ['a sound', agents({ type: 'audio', audio: base64, format: 'wav' })],
    [
      'the bytes of an image in a result',
      tokensOf<AgentInputItem>(
        [
          { type: 'function_call', callId: 'a', name: 'see', arguments: '{}' },
          {
            type: 'function_call_result',
            callId: 'a',
            name: 'see',
            status: 'completed',
            output: { type: 'image', image: { data: bytes, mediaType: 'image/png' } },
          },
        ],
        itemForm,
      ),
    ],
  ])('are not counted as text: %s', async (_, tokens) => {
    expect(await tokens).toBeLessThan(12_000);
  });

  it('are counted as text where they are sealed text', async () => {
    const sealed = { type: 'compaction', encrypted_content: base64 } as unknown as AgentInputItem;
    expect(await tokensOf([sealed], itemForm)).toBeGreaterThan(90_000);
  });
});

it('packs bytes, and leaves to JSON what writes itself', () => {
  const item = { file: new Uint8Array([1, 2]), at: new Date(0), link: new URL('https://a.example/b') };
  const kept: unknown = JSON.parse(JSON.stringify(packBytes({ list: [item] })));
  expect(unpackBytes(kept)).toEqual({
    list: [{ file: item.file, at: '1970-01-01T00:00:00.000Z', link: 'https://a.example/b' }],
  });
});
