import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Codec } from '../codecs/codec.ts';
import { gemini } from '../codecs/gemini/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import type { Edit } from '../conversation/edit.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { offloadResults } from '../strategies/offload.ts';
import type { Strategy } from '../strategies/strategy.ts';
import { messagesFixture } from '../../test/support/codec-suite/anthropic-messages/fixture.ts';
import type { CodecFixture } from '../../test/support/codec-suite/fixture.ts';
import { geminiFixture } from '../../test/support/codec-suite/gemini/fixture.ts';
import { chatFixture } from '../../test/support/codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from '../../test/support/codec-suite/openai-responses/fixture.ts';
import { chatBody, jobSteps } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { newFault } from './protect.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const formats: readonly (readonly [Codec, CodecFixture])[] = [
  [openaiChat, chatFixture],
  [anthropicMessages, messagesFixture],
  [openaiResponses, responsesFixture],
  [gemini, geminiFixture],
];

describe.each(formats)('the faults of $name', ({ rules }, fixture) => {
  // Older models refuse user text after results, but clients send it.
  const recorded = Object.entries(fixture.recorded).filter(([name]) => name !== 'results-then-words');

  it.each(recorded)('are none in the requests of %s', (_, body) => {
    expect(rules.faults(body)).toEqual([]);
  });

  it('are the rules that calls and results break', () => {
    const call = { id: 'a', name: 'run', argumentsJson: '{}' };
    const asked = { say: 'assistant', calls: [call], text: 'Hm.' } as const;
    const result = { say: 'results', results: [{ id: 'a', text: 'r' }] } as const;
    const user = { say: 'user', text: 'Go.' } as const;
    const faultsOf = (...turns: Parameters<CodecFixture['body']>[0]['turns']) =>
      rules.faults(fixture.body({ turns, tools: ['run'] }));
    expect(faultsOf(user, asked, result)).toEqual([]);
    expect(faultsOf(user, asked)).toEqual(['calls-answered-next']);
    expect(faultsOf(user, { ...asked, calls: [] }, result)).toContain('results-answer-calls');
    expect(rules.faults(encoder.encode('{"a":'))).toEqual(['body-is-json']);
  });
});

describe('the check after a fold', () => {
  /** A codec that reports no broken rule, and a strategy that breaks one: it drops the oldest result and leaves its call. */
  const blind: Codec = { ...openaiChat, rules: { ...openaiChat.rules, problems: () => [] } };
  const dropResult: Strategy = {
    name: 'drop-result',
    reach: 'history',
    propose({ edits }): readonly Edit[] {
      return edits.some(({ kind }) => kind === 'drop-message')
        ? []
        : [{ kind: 'drop-message', message: 2, memory: 'mem_a' }];
    },
  };
  const body = chatBody(jobSteps(30), { tools: ['run'], model: 'gpt-4o' });
  const results = (sent: Uint8Array) => decoder.decode(sent).split('"role":"tool"').length - 1;

  it('undoes the edits that broke the body although the codec saw no problem, and keeps the rest of the fold', async () => {
    const { engine } = testEngine({ window: 20_000, strategies: [dropResult, offloadResults()] });
    const prepared = await engine.prepare({ codec: blind, body, tenant: 't' });
    expect(results(prepared.body)).toBe(30);
    expect(prepared.report.steps).toEqual([
      { strategy: 'drop-result', edits: 0, tokensSaved: 0, refused: 'calls-answered-next' },
      expect.objectContaining({ strategy: 'offload-results' }),
    ]);
    expect(prepared.outcome).toEqual({ status: 'compacted' });
  });

  it('rejects a broken fold that another process recorded, and continues without it', async () => {
    const store = inMemoryStore();
    const unchecked: Codec = { ...blind, rules: { ...blind.rules, faults: () => [] } };
    const broken = testEngine({ window: 20_000, store, strategies: [dropResult, offloadResults()] });
    const sent = await broken.engine.prepare({ codec: unchecked, body, tenant: 't' });
    expect(results(sent.body)).toBe(29);
    const { engine } = testEngine({ window: 200_000, store });
    const longer = chatBody([...jobSteps(30), { assistant: 'Done.' }, { user: 'More.' }], {
      tools: ['run'],
      model: 'gpt-4o',
    });
    const prepared = await engine.prepare({ codec: openaiChat, body: longer, tenant: 't' });
    expect(prepared.report.replayed).toBe(0);
    expect(results(prepared.body)).toBe(30);
  });

  it('allows faults that the body had before, and finds the loss of a loaded tool', () => {
    const before = encoder.encode(
      '{"messages":[{"role":"tool","tool_call_id":"a","content":"r"},{"role":"user","content":[{"type":"tool_reference","tool_name":"a"}]}]}',
    );
    const { rules } = openaiChat;
    expect(newFault(rules, before, before)).toBeUndefined();
    const without = encoder.encode('{"messages":[{"role":"user","content":"a"}]}');
    expect(newFault(rules, before, without)).toBe('loaded-tools-stay');
    const worse = encoder.encode('{"messages":[{"role":"tool","content":""},{"role":"tool","content":""}]}');
    expect(newFault(rules, before, worse)).toBe('results-answer-calls');
  });

  it.each([-60, -30, -12, 0, 12])(
    'finds a loaded tool %i bytes from a place where a long body is cut',
    (at) => {
      const bodyOf = (second: string) => {
        const head = '{"messages":[{"role":"user","content":[';
        const first = '{"type":"tool_reference","tool_name":"é"},{"type":"text","text":"';
        const text = 'é'.repeat((131_072 + at - head.length - first.length) >> 1);
        return encoder.encode(`${head}${first}${text}"},{"type":"${second}","tool_name":"b"}]}]}`);
      };
      const before = bodyOf('tool_reference');
      expect(newFault(openaiChat.rules, before, before)).toBeUndefined();
      expect(newFault(openaiChat.rules, before, bodyOf('other'))).toBe('loaded-tools-stay');
      expect(newFault(openaiChat.rules, bodyOf('other'), before)).toBeUndefined();
    },
  );
});
