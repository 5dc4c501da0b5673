/**
 * Plays long conversations in every format through two gateways on one store, with restarts. The model reads files and recalls: alone,
 * several times at once, and together with calls of the client's tools. The provider refuses what real providers refuse.
 */
import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { gemini } from '../../src/codecs/gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { freshReading } from '../support/chat-conversation.ts';
import { messagesFixture } from '../support/codec-suite/anthropic-messages/fixture.ts';
import type { CodecFixture, NeutralTurn } from '../support/codec-suite/fixture.ts';
import { geminiFixture } from '../support/codec-suite/gemini/fixture.ts';
import { chatFixture } from '../support/codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from '../support/codec-suite/openai-responses/fixture.ts';
import type { ScriptRequest, Turn, TurnPart } from '../support/fake-provider/script.ts';
import { startStack } from './stack.ts';
import { stubIdsIn } from '../support/stub-texts.ts';

const requests = 300;

/** The seeds; `SEED=7 npm run test:laws -- test/e2e/long-conversations.laws.test.ts` plays another conversation. */
const seeds = [Number(process.env['SEED'] ?? 1)];
const tools = ['read', 'run'];

const formats: readonly [Codec, CodecFixture, (streaming: boolean) => string][] = [
  [openaiChat, chatFixture, () => '/v1/chat/completions'],
  [anthropicMessages, messagesFixture, () => '/v1/messages'],
  [openaiResponses, responsesFixture, () => '/v1/responses'],
  [
    gemini,
    geminiFixture,
    (streaming) =>
      `/v1beta/models/${geminiFixture.model}:${streaming ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  ],
];

describe.each(formats)('a conversation of 300 requests in $name', (codec, fixture, pathFor) => {
  it.each(seeds)(
    'is always valid, and each request extends the one before, except at folds (seed %i)',
    async (seed) => {
      const random = randomFrom(seed);
      const made = { single: 0, parallel: 0, withCalls: 0 };
      const model = scriptedModel(random, made);
      await using stack = await startStack(model, { models: { '*': { windowTokens: 12_000 } } });
      const other = await stack.another();
      const turns: NeutralTurn[] = [{ say: 'user', text: 'Find out why the build fails.' }];
      let before: readonly string[] = [];
      const seen = { folds: 0, recalls: 0, restarts: 0 };
      for (let request = 0; request < requests; request++) {
        if (random() < 0.02) {
          await stack.restart();
          seen.restarts++;
        }
        const streaming = random() < 0.7;
        const first = stack.provider.requests.length;
        const url = random() < 0.5 ? stack.url : other;
        const response = await fetch(`${url}${pathFor(streaming)}`, {
          method: 'POST',
          headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
          body: Buffer.from(fixture.body({ turns, tools, stream: streaming })),
        });
        const text = await response.text();
        expect(response.status, text).toBe(200);
        const receipt = await receiptOf(url, response);
        const { outcome, problem, unfit } = receipt;
        expect({ ...outcome, problem, unfit }).toMatchObject({
          status: expect.stringMatching(/untouched|compacted/) as string,
          problem: undefined,
          unfit: undefined,
        });

        const folded = receipt.steps.some((step) => step.edits > 0);
        for (const [order, sent] of stack.provider.requests.slice(first).entries()) {
          const messages = messagesOf(codec, sent.body);
          if (!folded || order > 0)
            expect(messages.slice(0, before.length), `request ${request}.${order}`).toEqual(before);
          before = messages;
        }
        seen.folds += folded ? 1 : 0;
        seen.recalls += receipt.recalls.length;

        const reply = streaming
          ? fixture.client(text.replaceAll('\r\n', '\n'))
          : fixture.clientResponse(new TextEncoder().encode(text));
        expect(reply.calls.map(({ name }) => name)).not.toContain('read_memory');
        turns.push({
          say: 'assistant',
          ...(reply.text === '' ? {} : { text: reply.text }),
          calls: reply.calls,
        });
        turns.push(
          reply.calls.length > 0
            ? { say: 'results', results: reply.calls.map(({ id }) => ({ id, text: logOf(random) })) }
            : { say: 'user', text: `Go on with step ${request}.` },
        );
      }
      for (const count of [...Object.values(seen), ...Object.values(made)]) expect(count).toBeGreaterThan(1);
    },
    120_000,
  );
});

type RecallCounts = { single: number; parallel: number; withCalls: number };

function scriptedModel(random: () => number, made: RecallCounts) {
  let calls = 0;
  const call = (name: string, args: Readonly<Record<string, unknown>>): TurnPart => ({
    type: 'tool-call',
    id: `call_${calls++}`,
    name,
    arguments: args,
  });
  const recall = (ids: readonly string[]) =>
    call('read_memory', { id: ids[Math.floor(random() * ids.length)]!, query: 'error' });
  const read = () => call('read', { path: `log/${calls}.txt` });
  return ({ body }: ScriptRequest): Turn => {
    const ids = stubIdsIn(JSON.stringify(body));
    const dice = ids.length > 0 ? random() : 0.3 + random() * 0.7;
    const words: readonly TurnPart[] = random() < 0.5 ? [{ type: 'text', text: `I look at ${calls}. ` }] : [];
    if (dice < 0.12) {
      made.single++;
      return { type: 'turn', parts: [...words, recall(ids)] };
    }
    if (dice < 0.17) {
      made.parallel++;
      return { type: 'turn', parts: [recall(ids), ...words, recall(ids)] };
    }
    if (dice < 0.25) {
      made.withCalls++;
      return { type: 'turn', parts: [...words, recall(ids), read()] };
    }
    if (dice < 0.5) return { type: 'turn', parts: [...words, read(), read()] };
    if (dice < 0.85) return { type: 'turn', parts: [...words, read()] };
    return { type: 'turn', parts: [{ type: 'text', text: `Step ${calls} is done.` }] };
  };
}

function logOf(random: () => number): string {
  const lines = Math.floor(random() * 60);
  return Array.from(
    { length: lines + 1 },
    (_, at) => `${at} ${Math.floor(random() * 1e6)} error in the log\n`,
  ).join('');
}

async function receiptOf(url: string, response: Response): Promise<Receipt> {
  const id = response.headers.get('x-leporello-receipt')!;
  const answer = await fetch(`${url}/_leporello/receipts/${id}`, {
    headers: { authorization: 'Bearer key' },
  });
  return (await answer.json()) as Receipt;
}

function messagesOf(codec: Codec, body: Uint8Array): readonly string[] {
  return codec
    .read(body, freshReading())
    .messages.map(({ span }) =>
      withoutBreakpoints(new TextDecoder().decode(body.subarray(span.start, span.end))),
    );
}

/** Removes cache breakpoints, which move with the conversation, and the text block that holds one for a user's text. */
function withoutBreakpoints(message: string): string {
  const mark = ',"cache_control":{"type":"ephemeral"}';
  const [start, end] = ['[{"type":"text","text":', `${mark}}]`];
  const at = message.indexOf(`"content":${start}`);
  if (at < 0 || !message.endsWith(`${end}}`)) return message.replaceAll(mark, '');
  return message.replace(start, '').replace(end, '');
}

/** Returns a generator of numbers from 0 to 1; the same seed gives the same numbers (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
