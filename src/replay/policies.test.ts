import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { chatBody, readChat } from '../../test/support/chat-conversation.ts';
import { clientCompaction, cutResults, fullContext, keepLast, type Policy } from './policies.ts';

const body = chatBody([
  { user: 'Begin.' },
  {
    calls: [
      { name: 'read', result: 'the first result' },
      { name: 'read', result: 'the second one' },
    ],
  },
  { calls: [{ name: 'read', result: 'tiny' }] },
  { calls: [{ name: 'read', result: 'the last result' }] },
]);

/** Returns the results as they are sent. */
async function resultsUnder(policy: Policy, rerun: readonly number[] = []): Promise<readonly string[]> {
  const request = { conversation: readChat(body), rerun: new Set(rerun), at: 0 };
  const sent = await policy.open(openaiChat).send(request);
  const { messages } = JSON.parse(new TextDecoder().decode(sent.body)) as {
    readonly messages: readonly { readonly role: string; readonly content: string }[];
  };
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
}

describe('the full context', () => {
  it('is the body itself', async () => {
    const conversation = readChat(body);
    const sent = await fullContext.open(openaiChat).send({ conversation, rerun: new Set(), at: 0 });
    expect(sent).toEqual({ body: conversation.body, prepared: undefined });
  });
});

describe('keepLast', () => {
  it('clears all results but the last, and never makes a result longer', async () => {
    expect(await resultsUnder(keepLast(1))).toEqual(['[cleared]', '[cleared]', 'tiny', 'the last result']);
    expect(await resultsUnder(keepLast(3))).toEqual([
      '[cleared]',
      'the second one',
      'tiny',
      'the last result',
    ]);
    expect(await resultsUnder(keepLast(9))).toEqual([
      'the first result',
      'the second one',
      'tiny',
      'the last result',
    ]);
  });
});

describe('cutResults', () => {
  it('keeps both ends of long results', async () => {
    const long = 'x'.repeat(40);
    const conversation = readChat(
      chatBody([{ user: 'Begin.' }, { calls: [{ name: 'read', result: `ab${long}yz` }] }]),
    );
    const { body: sent } = await cutResults(2)
      .open(openaiChat)
      .send({ conversation, rerun: new Set(), at: 0 });
    expect(new TextDecoder().decode(sent)).toContain(JSON.stringify('ab\n[40 characters cut]\nyz'));
  });

  it('keeps short results, and those of tools that were run again', async () => {
    const whole = ['the first result', 'the second one', 'tiny', 'the last result'];
    expect(await resultsUnder(cutResults(8))).toEqual(whole);
    const conversation = readChat(
      chatBody([{ user: 'Begin.' }, { calls: [{ name: 'read', result: 'x'.repeat(99) }] }]),
    );
    const { body: sent } = await cutResults(2)
      .open(openaiChat)
      .send({ conversation, rerun: new Set([2]), at: 0 });
    expect(sent).toBe(conversation.body);
  });
});

describe('clientCompaction', () => {
  it('replaces everything but the newest step by a summary, and bills the request that wrote it', async () => {
    const counter: TokenCounter = {
      name: 'characters',
      exact: true,
      count: (text) => text.length,
      image: () => 0,
      overhead: { message: 0, tool: 0, request: 0 },
    };
    const long = chatBody([
      { user: 'x'.repeat(60) },
      { calls: [{ name: 'read', result: 'old' }] },
      { calls: [{ name: 'read', result: 'new' }] },
    ]);
    const session = clientCompaction({ atTokens: 50, summaryTokens: 2, counter }).open(openaiChat);
    const { body: sent, forSummary } = await session.send({
      conversation: readChat(long),
      rerun: new Set(),
      at: 0,
    });
    const { messages } = JSON.parse(new TextDecoder().decode(sent)) as {
      readonly messages: readonly { readonly role: string; readonly content?: string }[];
    };
    expect(messages.map(({ role, content }) => [role, content])).toMatchInlineSnapshot(`
      [
        [
          "user",
          "word word",
        ],
        [
          "assistant",
          null,
        ],
        [
          "tool",
          "new",
        ],
      ]
    `);
    expect(forSummary).toMatchInlineSnapshot(`
      {
        "output": 2,
        "read": 78,
        "written": 0,
      }
    `);
  });
});
