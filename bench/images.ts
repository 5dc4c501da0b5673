/**
 * Computes what a computer-use loop of 100 screenshots costs. Run `node bench/images.ts`; it prints a table and writes bench/results/images.json. It
 * takes about a minute.
 *
 * In each of the four formats, an agent sends 100 requests, each with one more screenshot of 1280 × 800 pixels and 20 kB (a body of 2.7 MB at the end).
 * Compared are the untouched context, a context that keeps only the last 3 images (as many agents do in every request), and Leporello with its
 * defaults, in the model's own window and in one of 32,000 tokens. The model looks at an old screenshot again after every 25 steps: Leporello answers
 * with the image and sends it in later requests, and both are billed. The others are not billed for it.
 *
 * Traps: (1) Costs are computed from token counts and the list prices of a model of each provider, with a prompt cache that reads the longest
 * beginning that equals the request before. No provider was asked. (2) The steps are short and alike: 60 tokens of output, no reasoning, no long texts. With longer texts
 * beside them, images are a smaller share. (3) The untouched context is not a real alternative where a provider limits images or bytes (100 images and 32 MB
 * at Anthropic). (4) With the last 3 images alone, a real agent would open pages again to see what it no longer sees, which is not billed here; how
 * often a model looks back is our assumption. (5) Screenshots of real programs compress otherwise than these; tokens depend on pixels only.
 */
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import type { Codec, ModelReply, ReadBlock, ReadContext } from '../src/codecs/codec.ts';
import { geminiFor } from '../src/codecs/gemini/index.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../src/codecs/openai-responses/index.ts';
import type { Edit } from '../src/conversation/edit.ts';
import { concatBytes } from '../src/conversation/json-scan.ts';
import type { Conversation } from '../src/conversation/conversation.ts';
import { mediaOf } from '../src/conversation/messages.ts';
import type { PreparedRequest } from '../src/engine/types.ts';
import { createDefaultEngine } from '../src/library/default-engine.ts';
import { createPriceList } from '../src/tokens/model-facts.ts';
import { answerRecall } from '../src/recall/tool.ts';
import { createBill, type Tokens, sumOf } from '../src/replay/tally.ts';
import { createEncryptedStore, sha256 } from '../src/store/encrypted-store.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { loadCatalog } from '../src/tokens/catalog.ts';
import { conversationCounter, type ConversationCounter } from '../src/tokens/count-conversation.ts';
import { loadTokenCounter } from '../src/tokens/load-counter.ts';
import type { ScriptFormat } from '../test/support/fake-provider/script.ts';
import { screenshotLoop, type ScreenshotLoop } from '../test/support/screenshot-loop.ts';
import { writeResult } from './results.ts';

const steps = 100;
const screenshotBytes = 20_000;
const outputTokens = 60;
const recallEvery = 25;

type Format = {
  readonly name: string;
  readonly format: ScriptFormat;
  readonly codec: Codec;
  readonly model: string;
};

const formats: readonly Format[] = [
  { name: 'Anthropic Messages', format: 'messages', codec: anthropicMessages, model: 'claude-sonnet-4-5' },
  { name: 'OpenAI Responses', format: 'responses', codec: openaiResponses, model: 'gpt-5' },
  { name: 'Chat Completions', format: 'chat', codec: openaiChat, model: 'gpt-5' },
  {
    name: 'Gemini',
    format: 'gemini',
    codec: geminiFor({ model: 'gemini-3-pro-preview', streaming: false }),
    model: 'gemini-3-pro-preview',
  },
];

/** A request as it is sent. `prepared` answers recalls. */
type Sent = { readonly body: Uint8Array; readonly prepared?: PreparedRequest };
type Way = {
  readonly name: string;
  readonly open: (format: Format) => (client: Conversation) => Promise<Sent>;
};

const ways: readonly Way[] = [
  {
    name: 'untouched',
    open:
      () =>
      async ({ body }) => ({ body }),
  },
  {
    name: 'the last 3 images',
    open:
      ({ codec }) =>
      async (client) => ({ body: codec.write(client, oldImages(client, 3)) }),
  },
  { name: 'Leporello', open: withEngine(undefined) },
  { name: 'Leporello, window of 32,000', open: withEngine(32_000) },
];

function oldImages({ messages }: Conversation, keep: number): readonly Edit[] {
  const edits = messages.flatMap(({ index: message, parts }) =>
    parts.flatMap((part, at) =>
      mediaOf(part).map(
        (_, media): Edit => ({
          kind: 'replace-media',
          message,
          part: at,
          media,
          stub: '[image removed]',
          memory: '',
        }),
      ),
    ),
  );
  return edits.slice(0, Math.max(0, edits.length - keep));
}

function withEngine(windowTokens: number | undefined): Way['open'] {
  return ({ codec }) => {
    const encryptedStore = createEncryptedStore({
      store: inMemoryStore(),
      secret: new Uint8Array(32).fill(1),
    });
    const models = windowTokens === undefined ? {} : { '*': { windowTokens } };
    const engine = createDefaultEngine({ cacheMarks: false, models }, encryptedStore, { clock: () => 0 });
    return async ({ body }) => {
      const prepared = await engine.prepare({ codec, body, tenant: 'bench' });
      return { body: prepared.body, prepared };
    };
  };
}

const reading: ReadContext = { digest: sha256, blocks: new Map<string, ReadBlock>() };
const prices = createPriceList(await loadCatalog());
const rows = [];
for (const format of formats) {
  const counter = conversationCounter(await loadTokenCounter(format.model));
  let untouched: number | undefined;
  for (const way of ways) {
    const played = await play(format, way, counter);
    const price = prices.priceOf(format.model)!;
    const { read, written, output } = played.tokens;
    const usd = (read * price.cacheRead + written * price.cacheWrite + output * price.output) / 1_000_000;
    untouched ??= usd;
    const { tokens: _, ...figures } = played;
    rows.push({ format: format.name, context: way.name, cost: usd / untouched, usd, ...figures });
  }
}
console.table(rows);
writeResult('images', { steps, screenshotBytes, recallEvery, rows });

async function play({ format, codec, model }: Format, way: Way, counter: ConversationCounter) {
  const loop = screenshotLoop(format, screenshotBytes);
  const send = way.open({ name: '', format, codec, model });
  const bill = createBill(counter);
  const request = openRequest(loop, model);
  let tokens: Tokens = { read: 0, written: 0, output: 0 };
  const add = (body: Uint8Array) => {
    const billed = bill(codec.read(body, reading));
    tokens = sumOf(tokens, { ...billed, output: outputTokens });
    return billed;
  };
  let [stable, peakTokens, peakBytes, seenAgain] = [0, 0, 0, 0];
  for (let step = 0; step < steps; step++) {
    if (step > 0) request.add(loop.step(step));
    const { body, prepared } = await send(codec.read(request.body(), reading));
    const billed = add(body);
    stable += Number(billed.isStable);
    peakTokens = Math.max(peakTokens, billed.context);
    peakBytes = Math.max(peakBytes, body.length);
    if (prepared && (step + 1) % recallEvery === 0) {
      const shown = await recallOldest(codec, loop, body, prepared);
      if (shown) add(shown);
      seenAgain += Number(shown !== undefined);
    }
  }
  return {
    tokens,
    'peak tokens': peakTokens,
    'peak MB': peakBytes / 1_000_000,
    stable: stable / steps,
    'seen again': seenAgain,
  };
}

/** Has the model recall the oldest screenshot; returns the request that continues its reply, or undefined when none was folded. */
async function recallOldest(
  codec: Codec,
  loop: ScreenshotLoop,
  sent: Uint8Array,
  prepared: PreparedRequest,
): Promise<Uint8Array | undefined> {
  const id = [...prepared.media.keys()][0];
  if (id === undefined) return undefined;
  const call = { id: 'recall', name: 'read_memory', argumentsJson: JSON.stringify({ id }) };
  const { text, media } = await answerRecall(prepared, call.argumentsJson, 8_000);
  if (!media) return undefined;
  const turn = new TextEncoder().encode(JSON.stringify(loop.recallTurn(call.id, id)));
  const answers = [{ call, text, media }];
  await prepared.remember({ rounds: [{ turn, answers }], closing: undefined });
  return codec.continueWith(sent, { turn } as ModelReply, answers);
}

/** Builds the client's requests from bytes: no message is written twice. */
function openRequest(loop: ScreenshotLoop, model: string) {
  const whole = new TextEncoder().encode(JSON.stringify({ ...loop.body([], false), model }));
  const end = whole.lastIndexOf(']'.charCodeAt(0));
  const pieces: Uint8Array[] = [whole.subarray(0, end)];
  return {
    add(messages: readonly object[]) {
      for (const message of messages) pieces.push(new TextEncoder().encode(`,${JSON.stringify(message)}`));
    },
    body: () => concatBytes([...pieces, whole.subarray(end)]),
  };
}
