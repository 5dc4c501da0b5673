/**
 * Tests all recorded conversations in both formats: they are read without a problem, written back as the same array, and mean the
 * same in both.
 */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Conversation } from '../conversation/conversation.ts';
import { pairCalls } from '../conversation/turns.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { newReading, textsIn } from '../../test/support/codec-suite/views.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec } from './codec.ts';
import { openaiChat } from './openai-chat/index.ts';

const source = '../shared/data/trajectories-dev.jsonl.gz';
const isThere = existsSync(source);

describe.skipIf(!isThere)(`recorded conversations (${isThere ? source : `${source} is not here`})`, () => {
  let recorded: readonly Uint8Array[];
  beforeAll(() => {
    const lines = gunzipSync(readFileSync(source)).toString().trim().split('\n');
    recorded = lines.map((line) => {
      const { messages, tools } = JSON.parse(line) as {
        readonly messages: unknown;
        readonly tools?: unknown;
      };
      return new TextEncoder().encode(JSON.stringify({ model: 'test-model', messages, tools }));
    });
    expect(recorded.length).toBe(822);
  });

  const formats: readonly (readonly [Codec, (chat: Uint8Array) => Uint8Array])[] = [
    [openaiChat, (chat) => chat],
    [anthropicMessages, asAnthropic],
  ];

  it.each(formats)('are read completely, cold and warm: $name', (codec, inFormat) => {
    const reading = newReading();
    const wrong = recorded.flatMap((chat, at) => {
      const body = inFormat(chat);
      const cold = codec.read(body, reading);
      const warm = codec.read(body.slice(), reading);
      const problems = codec.rules.problems(cold).map(({ rule }) => rule);
      const orphans = pairCalls(cold).orphans.map(() => 'orphan');
      const changed = codec.write(cold, []) === body ? [] : ['changed'];
      const forgotten = warm.messages.every(({ parts }, index) => parts === cold.messages[index]!.parts);
      const found = [...problems, ...orphans, ...changed, ...(forgotten ? [] : ['read twice'])];
      return found.length === 0 ? [] : [`conversation ${at}: ${found.join(', ')}`];
    });
    expect(wrong).toEqual([]);
  });

  it('mean the same in both formats', () => {
    const different = recorded.flatMap((chat, at) => {
      const one = said(openaiChat.read(chat, newReading()));
      const other = said(anthropicMessages.read(asAnthropic(chat), newReading()));
      return one === other ? [] : [at];
    });
    expect(different).toEqual([]);
  });
});

/** Returns every text and call, without the additions of the converter. */
function said(conversation: Conversation): string {
  const texts = textsIn(conversation).filter((text) => !['', 'Begin.', '(nothing)'].includes(text));
  const calls = pairCalls(conversation).pairs.map(({ name, result }) => `${name} ${result !== undefined}`);
  return JSON.stringify([texts, calls]);
}
