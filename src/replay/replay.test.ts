import { describe, expect, it } from 'vitest';
import { replayFormats } from '../cli/replay/sources.ts';
import type { FormatName } from '../library/formats.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { asResponses } from '../../test/support/as-responses.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { cutResults, fullContext, keepLast, enginePolicy } from './policies.ts';
import { play } from './replay.ts';
import { readRecording } from './recording.ts';

/** Counts one token per character. */
const characters: TokenCounter = {
  name: 'characters',
  exact: true,
  count: (text) => text.length,
  image: () => 0,
  overhead: { message: 0, tool: 0, request: 0 },
};

const looked = (name: string, marked: string): Step => ({
  calls: [
    {
      name: 'look',
      input: `{"at":"${name}"}`,
      result: `${`${name} `.repeat(200)}${marked}${` ${name}`.repeat(200)}`,
    },
  ],
});

/** Reads four files, and then uses a value of the first one twice. */
const steps: readonly Step[] = [
  { user: 'Look at all, then send what is due.' },
  looked('one', 'order_4711'),
  looked('two', 'order_4712'),
  looked('three', 'order_4713'),
  looked('four', 'order_4714'),
  { calls: [{ name: 'send', input: '{"order":"order_4711"}', result: 'sent' }] },
  { calls: [{ name: 'send', input: '{"order":"order_4711","again":true}', result: 'sent again' }] },
  { assistant: 'Done.' },
];

const body = chatBody(steps, { tools: ['look', 'send'] });
const recordingOf = (name: FormatName, bytes: Uint8Array) =>
  readRecording({ id: 'one', source: 'test', format: replayFormats[name], body: bytes }, characters);
const recording = recordingOf('chat', body);

const options = { window: 10_000 };

const engine = enginePolicy({
  name: 'engine',
  settings: {
    triggers: { tokenBudget: { triggerTokens: 8_000, targetTokens: 5_500, bufferTokens: 0 } },
    minResultBytes: 100,
  },
  window: 10_000,
  counter: characters,
});

describe('play', () => {
  it('needs values that calls used and earlier messages contain', () => {
    const needs = recording.steps.map((step) =>
      step.needs.map(({ value, in: places }) => [value.text, places]),
    );
    expect(needs).toEqual([[], [], [], [], [['order_4711', [2]]], [['order_4711', [2, 9]]], []]);
  });

  it('sends the full context, and pays the full price of each message once', async () => {
    const { tally, contexts } = await play(recording, fullContext, options);
    const largest = contexts.at(-1)!;
    expect(tally).toMatchObject({
      steps: 7,
      needs: 2,
      missing: 0,
      lost: 0,
      recalls: 0,
      stable: 7,
      overWindow: 0,
    });
    expect(tally.tokens.written).toBe(largest);
    expect(tally.tokens.read).toBe(contexts.slice(0, -1).reduce((sum, context) => sum + context));
    expect(tally.contextPeak).toBe(largest);
  });

  it('pays the full price after the cache expired, and passes the pause to the engine', async () => {
    const priced = chatBody(steps, { tools: ['look', 'send'], model: 'priced' });
    const source = { id: 'one', source: 'test', format: replayFormats.chat, body: priced };
    const cold = readRecording({ ...source, coldAt: new Set([9]) }, characters);
    const warm = await play(recording, fullContext, options);
    const { tally, contexts } = await play(cold, fullContext, options);
    expect(tally.tokens.written - warm.tally.tokens.written).toBe(contexts[3]);
    const usdPerMillionTokens = { priced: { input: 1, cacheRead: 0.000_1, cacheWrite: 1.25, output: 5 } };
    const settings = {
      triggers: { coldCache: { keepForRequests: 1, minTokens: 100 } },
      minResultBytes: 100,
      usdPerMillionTokens,
    };
    const patient = enginePolicy({ name: 'patient', settings, window: 12_000, counter: characters });
    const never = await play(readRecording(source, characters), patient, options);
    expect(never.tally.folds).toBe(0);
    expect((await play(cold, patient, options)).tally.folds).toBe(1);
  });

  it('runs a tool again if the policy keeps nothing, once for a result that stays then', async () => {
    const { tally } = await play(recording, keepLast(2), options);
    expect(tally).toMatchObject({ needs: 2, missing: 1, lost: 1, recalls: 1 });
    expect(tally.forRecalls.output).toBe(60);
    const careless = await play(recording, keepLast(2), { ...options, skipsRecovery: true });
    expect(careless.tally).toMatchObject({ needs: 2, missing: 1, lost: 1, recalls: 0 });
    expect(careless.contexts.at(-1)).toBeLessThan(5_500);
  });

  it('keeps the whole result of a tool that is run again, also if the policy cuts results', async () => {
    const { tally, contexts } = await play(recording, cutResults(5), options);
    expect(tally).toMatchObject({ missing: 1, recalls: 1, stable: 7 });
    // The result, its call, and the stub of the cut result.
    expect(contexts[5]! - contexts[4]!).toBeGreaterThan(1_600);
  });

  it('counts requests that a provider would reject', async () => {
    expect((await play(recording, fullContext, { window: 7_000 })).tally.overWindow).toBe(3);
  });

  it.each<[FormatName, Uint8Array]>([
    ['chat', body],
    ['responses', asResponses(body)],
    ['anthropic', asAnthropic(body)],
    ['gemini', asGemini(body)],
  ])('has the engine fold and the model recall in the format %s; what it read stays', async (name, bytes) => {
    const { tally, contexts } = await play(recordingOf(name, bytes), engine, options);
    expect(tally).toMatchObject({ steps: 7, needs: 2, missing: 1, lost: 0, recalls: 1, failed: 0, unfit: 0 });
    expect(tally.folds).toBe(1);
    expect(tally.stable).toBe(6);
    expect(Math.max(...contexts)).toBeLessThan(8_000);
  });

  it('costs the tool definition without a fold, and nothing if the tool comes with the first fold', async () => {
    const played = async (offerRecall: 'always' | 'with-fold') => {
      const settings = { offerRecall };
      const idle = enginePolicy({ name: 'idle', settings, window: 10_000_000, counter: characters });
      return (await play(recording, idle, options)).tally.tokens;
    };
    const full = (await play(recording, fullContext, options)).tally.tokens;
    expect(await played('with-fold')).toEqual(full);
    expect((await played('always')).written).toBeGreaterThan(full.written);
  });

  it('loses values that cannot be recalled', async () => {
    const silent = enginePolicy({
      name: 'silent',
      settings: {
        triggers: { tokenBudget: { triggerTokens: 7_000, targetTokens: 5_500, bufferTokens: 0 } },
        minResultBytes: 100,
        offerRecall: 'never',
      },
      window: 10_000,
      counter: characters,
    });
    expect((await play(recording, silent, options)).tally).toMatchObject({ missing: 1, lost: 1, recalls: 0 });
  });
});

/** The same conversation as a generateContent body. */
function asGemini(chat: Uint8Array): Uint8Array {
  type Call = {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  };
  const { messages } = JSON.parse(new TextDecoder().decode(chat)) as {
    readonly messages: readonly {
      readonly role: string;
      readonly content: string | null;
      readonly tool_calls?: readonly Call[];
      readonly tool_call_id?: string;
    }[];
  };
  const calls = new Map(
    messages.flatMap((message) => message.tool_calls ?? []).map((call) => [call.id, call]),
  );
  const contents = messages.map(({ role, content, tool_calls: made = [], tool_call_id: id = '' }) => {
    const name = calls.get(id)?.function.name;
    if (role === 'tool')
      return { role: 'user', parts: [{ functionResponse: { id, name, response: { output: content } } }] };
    const parts = [
      ...(content ? [{ text: content }] : []),
      ...made.map((call) => ({
        functionCall: {
          id: call.id,
          name: call.function.name,
          args: JSON.parse(call.function.arguments) as unknown,
        },
      })),
    ];
    return { role: role === 'assistant' ? 'model' : 'user', parts };
  });
  const declarations = ['look', 'send'].map((name) => ({ name, parameters: { type: 'object' } }));
  return new TextEncoder().encode(
    JSON.stringify({ contents, tools: [{ functionDeclarations: declarations }] }),
  );
}
