import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import type { PreparedRequest } from '../engine/types.ts';
import { createEventSplitter } from './http/http.ts';
import { openBudget } from '../recall/tool.ts';
import { relayChunk } from './recall-loop.ts';

/** Opens a budget for a request with this many tokens left in its window, in which every character is a token. */
function budgetOf(room: number | undefined, limits = { maxRounds: 2, maxTokens: 800 }) {
  return openBudget({ prepared: { room } as PreparedRequest, recall: limits });
}

const noRoom = 'The context window has no room left to read memory. Go on with what is there.';

describe('the budget of recalls', () => {
  it('shares what is left of the window between the answers of one round', () => {
    expect(budgetOf(1_000).forEach(1, 1)).toBe(800);
    expect(budgetOf(1_000).forEach(1, 2)).toBe(500);
    expect(budgetOf(1_000).forEach(1, 4)).toBe(250);
  });

  it('gives later answers only what earlier texts have left', () => {
    const budget = budgetOf(1_000);
    budget.spend('x'.repeat(300));
    expect(budget.forEach(1, 1)).toBe(700);
    budget.spend('x'.repeat(300));
    expect(budget.forEach(2, 1)).toBe(400);
    budget.spend('x'.repeat(300));
    expect(budget.forEach(2, 1)).toBe(noRoom);
  });

  it('has only the limit of one answer when the window is unknown', () => {
    const budget = budgetOf(undefined);
    budget.spend('x'.repeat(10_000));
    expect(budget.forEach(1, 9)).toBe(800);
  });

  it('ends with the last round, in which the model reads that there are no more', () => {
    const budget = budgetOf(1_000);
    expect([2, 3].map((round) => typeof budget.forEach(round, 1))).toEqual(['number', 'string']);
    expect([3, 4].map((round) => budget.isSpent(round))).toEqual([false, true]);
  });
});

describe('a chunk of a stream', () => {
  const say = (delta: string) => `data: {"choices":[{"index":0,"delta":${delta}}]}\n\n`;
  const recall = say(
    '{"tool_calls":[{"index":0,"id":"r","function":{"name":"read_memory","arguments":"{}"}}]}',
  );
  /** Relays chunks. */
  function relayed(...chunks: readonly string[]) {
    const relay = openaiChat.openStream({ privateTools: new Set(['read_memory']) });
    const splitter = createEventSplitter();
    return chunks.map((text) => {
      const chunk = new TextEncoder().encode(text);
      const bytes = relayChunk(splitter, relay, chunk);
      return { bytes, texts: bytes.map((piece) => new TextDecoder().decode(piece)), chunk };
    });
  }

  it('is passed on as it is when all its events are', () => {
    const text = say('{"content":"a"}');
    for (const { bytes, chunk } of relayed(text, `${text}${text}: ping\n\n`, text))
      expect(bytes[0]).toBe(chunk);
  });

  it('is passed on without a private call, in pieces as long as possible', () => {
    const text = say('{"content":"a"}');
    const [mixed] = relayed(`${text}${text}${recall}${text}${text}`);
    expect(mixed!.texts).toEqual([`${text}${text}`, `${text}${text}`]);
    expect(relayed(recall)[0]!.bytes).toEqual([]);
    expect(relayed('')[0]!.bytes).toEqual([]);
  });

  it('waits for the end of an event that it has in part', () => {
    const text = say('{"content":"a"}');
    const [first, second, third] = relayed(`${text}${text.slice(0, 20)}`, text.slice(20, -1), `\n${text}`);
    expect(first!.texts).toEqual([text]);
    expect(second!.texts).toEqual([]);
    expect(third!.texts).toEqual([text, text]);
  });
});
