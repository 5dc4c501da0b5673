import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import type { Edit } from '../conversation/edit.ts';
import { recallToolFor } from '../recall/tool.ts';
import { chatBody, freshReading, readChat, type Step } from '../testing/chat-conversation.ts';
import { createConversationCounter } from '../tokens/count-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { deadWeight } from './dead-weight.ts';
import { draft } from './plan.ts';
import { type Pins, protectionOf } from './protection.ts';

/** A token for four characters. */
const counter: TokenCounter = {
  name: 'by hand',
  exact: true,
  overhead: { message: 0, tool: 0, request: 0 },
  count: (text) => Math.ceil(text.length / 4),
  image: () => 0,
};
const run = (result: string): Step => ({ calls: [{ name: 'run', input: '{}', result }] });
const large = run('x'.repeat(4_000));
const small = run('x'.repeat(900));
const never = { results: 99, arguments: 99, steps: 99 };

function weigh(
  steps: readonly Step[],
  usedFor: Partial<typeof never>,
  {
    edits = [],
    pins = { tools: [], texts: [] },
    recalls = true,
  }: Partial<{ edits: readonly Edit[]; pins: Pins; recalls: boolean }> = {},
) {
  const conversation = readChat(chatBody(steps, { tools: ['run'] }));
  const input = {
    codec: openaiChat,
    reading: freshReading(),
    conversation,
    counter: createConversationCounter({ counter }),
    protects: protectionOf(conversation, pins, 'read_memory'),
    idOf: () => 'mem_1',
    recallTool: recalls ? recallToolFor(['run']) : undefined,
    shrinking: undefined,
    compressionBytesThreshold: 1_000,
    toolCosts: new Map<string, number>(),
    isTooLate: () => false,
  };
  return deadWeight(input, draft(input, edits), { ...never, ...usedFor }).map(
    ({ message, goes, requests }) => `${message} ${goes} since ${requests}`,
  );
}

describe('dead weight', () => {
  it('are large results that came so many requests ago', () => {
    const steps = [{ user: 'Go' }, large, small, large, large, large];
    expect(weigh(steps, { results: 2 })).toEqual(['2 texts since 2']);
    expect(weigh(steps, { results: 1 })).toEqual(['2 texts since 3', '6 texts since 1']);
  });

  it('are long arguments of calls', () => {
    const write: Step = {
      calls: [{ name: 'run', input: JSON.stringify({ text: 'y'.repeat(4_000) }), result: 'ok' }],
    };
    expect(weigh([{ user: 'Go' }, write, small, small], { arguments: 1 })).toEqual(['1 texts since 2']);
  });

  it('are whole steps, what would be left of them, but not what the user and the model told each other', () => {
    const steps: readonly Step[] = [
      { user: 'Go' },
      large,
      { assistant: 'Done.' },
      { user: 'On' },
      small,
      small,
      small,
    ];
    expect(weigh(steps, { results: 1, steps: 2 })).toEqual([
      '1 message since 2',
      '2 message since 2',
      '2 texts since 3',
    ]);
  });

  it('are nothing that is pinned, gone or stubbed', () => {
    const steps = [{ user: 'Go' }, large, large, large];
    expect(weigh(steps, { results: 0 })).toEqual(['2 texts since 2', '4 texts since 1']);
    expect(weigh(steps, { results: 0 }, { pins: { tools: ['run'], texts: [] } })).toEqual([]);
    const at = { message: 2, part: 0, text: 0 };
    const edits: readonly Edit[] = [{ kind: 'replace-text', at, stub: 'gone', memory: 'mem_1' }];
    expect(weigh(steps, { results: 0 }, { edits })).toEqual(['4 texts since 1']);
  });

  it('is nothing where the model could not ask for it again', () => {
    expect(
      weigh([{ user: 'Go' }, large, large, large], { results: 0, steps: 0 }, { recalls: false }),
    ).toEqual([]);
  });
});
