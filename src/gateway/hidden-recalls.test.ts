/** Tests what the next request gets of a recorded reply, with a real engine and through a stream. */
import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import type { ModelReply, RecallAnswer } from '../codecs/codec.ts';
import type { Engine } from '../engine/types.ts';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import type { ScriptedPart } from '../../test/support/codec-suite/fixture.ts';
import { chatFixture } from '../../test/support/codec-suite/openai-chat/fixture.ts';
import { outline } from '../../test/support/codec-suite/outline.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { recordHiddenRecalls, relayStream, relayWhole } from './recall-loop.ts';
import type { UpstreamResponse } from './http/http.ts';

const asked: readonly Step[] = [{ user: 'What does the log say?' }];

function prepare(engine: Engine, steps: readonly Step[]) {
  return engine.prepare({ codec: openaiChat, body: chatBody(steps, { tools: ['read_file'] }), tenant: 't' });
}

/** Returns the messages that are sent for these steps, one per line. */
async function sent(engine: Engine, steps: readonly Step[]): Promise<readonly string[]> {
  return outline(readChat((await prepare(engine, steps)).body)).filter((line) => !line.startsWith('beside'));
}

const text = (words: string): ScriptedPart => ({ type: 'text', pieces: [words] });
const recall = (id: string): ScriptedPart => ({
  type: 'call',
  id,
  name: 'read_memory',
  pieces: ['{"id":"mem_a"}'],
});
const readFile: ScriptedPart = { type: 'call', id: 'call_1', name: 'read_file', pieces: ['{}'] };

function turn(...parts: readonly ScriptedPart[]) {
  const finish = parts.some(({ type }) => type === 'call') ? 'calls' : 'stop';
  return { parts, finish, usage: { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 } } as const;
}

const reply = (...parts: readonly ScriptedPart[]): ModelReply =>
  openaiChat.readResponse(chatFixture.response(turn(...parts)), new Set(['read_memory']));

const answersTo = ({ recalls }: ModelReply, words: string): readonly RecallAnswer[] =>
  recalls.map((call) => ({ call, text: words }));

/** Opens a recorder for the reply to a request, with a real engine. */
async function openRecorder() {
  const { engine } = testEngine();
  const note = { problem: (said: string) => expect.unreachable(said) };
  return { engine, recorder: recordHiddenRecalls(await prepare(engine, asked), note, 'first') };
}

const lookLines = [
  'user: "What does the log say?"',
  'assistant: "I look. ", call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
  'tool: result m1 ["all of it"]',
];

const look = reply(text('I look. '), recall('m1'));
const replied = (...words: readonly string[]): readonly Step[] => [
  ...asked,
  { assistant: words.join('') },
  { user: 'And now?' },
];

describe('the hidden recalls of a reply come back', () => {
  const withTwoErrors = [...lookLines, 'assistant: "Two errors."', 'user: "And now?"'];

  it("with the model's last text", async () => {
    const { engine, recorder } = await openRecorder();
    recorder.answered(look, answersTo(look, 'all of it'));
    await recorder.complete(reply(text('Two errors.')));
    expect(await sent(engine, replied('I look. Two errors.'))).toEqual(withTwoErrors);
    expect(await sent(engine, replied('I look. No error.'))).toEqual([
      'user: "What does the log say?"',
      'assistant: "I look. No error."',
      'user: "And now?"',
    ]);
  });

  it('with the answers that were sent last, if the first were too long', async () => {
    const { engine, recorder } = await openRecorder();
    recorder.answered(look, answersTo(look, 'too much of it'));
    recorder.answered(look, answersTo(look, 'all of it'));
    await recorder.complete(reply(text('Two errors.')));
    expect(await sent(engine, replied('I look. Two errors.'))).toEqual(withTwoErrors);
  });

  it('round by round', async () => {
    const { engine, recorder } = await openRecorder();
    recorder.answered(look, answersTo(look, 'all of it'));
    const again = reply(recall('m2'), recall('m3'));
    recorder.answered(again, answersTo(again, 'more'));
    await recorder.complete(reply(text('Two errors.')));
    expect(await sent(engine, replied('I look. Two errors.'))).toEqual([
      ...lookLines,
      'assistant: call m2 read_memory("{\\"id\\":\\"mem_a\\"}"), call m3 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m2 ["more"]',
      'tool: result m3 ["more"]',
      'assistant: "Two errors."',
      'user: "And now?"',
    ]);
  });

  it("with its own turn when the last recall was next to a call of the client's tool", async () => {
    const { engine, recorder } = await openRecorder();
    const both = reply(text('Both. '), recall('m1'), readFile);
    recorder.answered(both, answersTo(both, 'all of it'));
    await recorder.complete(both);
    const steps: readonly Step[] = [
      ...asked,
      { text: 'Both. ', calls: [{ name: 'read_file', result: 'ok' }] },
    ];
    expect(await sent(engine, steps)).toEqual([
      'user: "What does the log say?"',
      'assistant: "Both. ", call m1 read_memory("{\\"id\\":\\"mem_a\\"}"), call call_1 read_file("{}")',
      'tool: result m1 ["all of it"]',
      'tool: result call_1 ["ok"]',
    ]);
  });

  it('up to the point where the client disconnected', async () => {
    const { engine, recorder } = await openRecorder();
    recorder.answered(look, answersTo(look, 'all of it'));
    await recorder.disconnected();
    expect(await sent(engine, replied('I look. Two er'))).toEqual([
      ...lookLines,
      'assistant: "Two er"',
      'user: "And now?"',
    ]);
  });

  it('never after an error that the client saw', async () => {
    const { engine, recorder } = await openRecorder();
    recorder.answered(look, answersTo(look, 'all of it'));
    await recorder.forget();
    await recorder.disconnected();
    expect(await sent(engine, replied('I look. '))).toHaveLength(3);
  });

  it('with its end when the client disconnected after it', async () => {
    const { engine, recorder } = await openRecorder();
    recorder.answered(look, answersTo(look, 'all of it'));
    await recorder.complete(reply(text('Two errors.')));
    await recorder.disconnected();
    // Without its end it would count as a reply that continues differently.
    expect(await sent(engine, replied('I look. No error.'))).toHaveLength(3);
  });
});

/** Returns a response that streams this turn. */
const streamed = (number: number, ...parts: readonly ScriptedPart[]): UpstreamResponse => ({
  status: 200,
  headers: [],
  body: (async function* () {
    yield await Promise.resolve(new TextEncoder().encode(chatFixture.stream(turn(...parts), number)));
  })(),
});

/** An exchange whose continuations are answered by `continued`; `room` is the space left in the window. */
async function exchangeOf(
  engine: Engine,
  continued: (body: Uint8Array) => Promise<UpstreamResponse>,
  { room, recalled = () => undefined }: { room?: number; recalled?: (tokens: number) => void } = {},
) {
  const nothing = () => undefined;
  const prepared = await prepare(engine, asked);
  return {
    codec: openaiChat,
    prepared: { ...prepared, room, counter: undefined },
    recall: { maxRounds: 5, maxTokens: 8_000 },
    send: continued,
    hasLeft: () => false,
    pause: () => Promise.resolve(),
    failed: nothing,
    note: {
      recalled: ({ tokens }: { readonly tokens: number }) => recalled(tokens),
      used: nothing,
      ended: nothing,
      replied: nothing,
      upstreamStatus: nothing,
      problem: nothing,
    },
  };
}

/** Relays a stream with a recall. */
async function relayed(...exchange: Parameters<typeof exchangeOf>) {
  return relayStream(await exchangeOf(...exchange), streamed(0, text('I look. '), recall('m1')));
}

describe('a complete reply whose last part is too long to be read', () => {
  it('keeps its hidden recall', async () => {
    const { engine } = testEngine({ offerRecall: 'always' });
    const pieces = (size: number, ...bytes: readonly Uint8Array[]) =>
      (async function* piece() {
        for (let at = 0; at < size; at++) yield* bytes;
        await Promise.resolve();
      })();
    const whole = chatFixture.response(turn(recall('m1')));
    const huge = { status: 200, headers: [], body: pieces(65, new Uint8Array(1024 * 1024)) };
    const exchange = await exchangeOf(engine, () => Promise.resolve(huge));
    await relayWhole(exchange, { status: 200, headers: [], body: pieces(1, whole) });
    expect(await sent(engine, replied('Two errors.'))).toEqual([
      'user: "What does the log say?"',
      'assistant: call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
      expect.stringContaining('tool: result m1 '),
      'assistant: "Two errors."',
      'user: "And now?"',
    ]);
  });
});

describe('a client that stops reading in the middle of a stream', () => {
  it('finds the recalls up to then when it continues', async () => {
    const { engine } = testEngine({ offerRecall: 'always' });
    const stream = await relayed(engine, () =>
      Promise.resolve(streamed(1, { type: 'text', pieces: ['Two ', 'errors.'] })),
    );
    let heard = '';
    for await (const bytes of stream) {
      heard += new TextDecoder().decode(bytes);
      if (heard.includes('Two ')) break;
    }
    expect(heard).not.toContain('errors.');
    expect(await sent(engine, replied('I look. Two '))).toEqual([
      ...lookLines.slice(0, 2),
      expect.stringMatching(/^tool: result m1 \[".*mem_a.*"\]$/) as string,
      'assistant: "Two "',
      'user: "And now?"',
    ]);
  });
});

describe('a second recall in one stream', () => {
  /** Returns the tokens that the first one took, and true if there was room for the second. Without a counter, each character is a token. */
  async function secondRecall(room?: number) {
    const { engine } = testEngine({ offerRecall: 'always' });
    const bodies: string[] = [];
    const tokens: number[] = [];
    const continued = (body: Uint8Array) => {
      bodies.push(new TextDecoder().decode(body));
      return Promise.resolve(
        bodies.length === 1 ? streamed(1, text('And. '), recall('m2')) : streamed(2, text('Done.')),
      );
    };
    const options = { ...(room !== undefined && { room }), recalled: (count: number) => tokens.push(count) };
    let heard = '';
    for await (const bytes of await relayed(engine, continued, options))
      heard += new TextDecoder().decode(bytes);
    expect(heard).toContain('Done.');
    const { messages } = JSON.parse(bodies[0]!) as { messages: readonly unknown[] };
    const taken = JSON.stringify(messages.at(-2)).length + tokens[0]!;
    return { taken, hadRoom: !bodies[1]!.includes('has no room left to read memory') };
  }

  it('has the room that the first one, and the reply that asked for it, have left', async () => {
    const { taken, hadRoom } = await secondRecall();
    expect(hadRoom).toBe(true);
    // The smallest useful answer has 200 tokens.
    const needed = 200 + taken;
    expect((await secondRecall(needed)).hadRoom).toBe(true);
    expect((await secondRecall(needed - 1)).hadRoom).toBe(false);
  });
});

describe('a stream that could not be continued after a recall', () => {
  it.each([
    ['the provider refused', () => Promise.resolve({ status: 400, headers: [], body: refusal() }), 'not now'],
    ['nobody answered', () => Promise.reject(new Error('unreachable')), 'could not continue the response'],
  ])('leaves no hidden recall: %s', async (_, continued, said) => {
    const { engine } = testEngine({ offerRecall: 'always' });
    let heard = '';
    for await (const bytes of await relayed(engine, continued)) heard += new TextDecoder().decode(bytes);
    expect(heard).toContain(said);
    expect(await sent(engine, replied('I look. '))).toHaveLength(3);
  });
});

async function* refusal(): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(new TextEncoder().encode('{"error":{"message":"not now"}}'));
}
