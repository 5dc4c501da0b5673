/**
 * A strict provider of all four formats within the process. It refuses what real providers refuse, by rules that use `JSON.parse` and share
 * no code with the product, and answers as a script says.
 */
import type { Upstream } from '../../src/gateway/http/http.ts';
import { chatFormat } from '../support/fake-provider/chat-format.ts';
import { countFormats } from '../support/fake-provider/counts.ts';
import { endpointOf } from '../support/fake-provider/endpoints.ts';
import { geminiFormat } from '../support/fake-provider/gemini-format.ts';
import { isObject, parseJson } from '../support/fake-provider/json.ts';
import { messagesFormat } from '../support/fake-provider/messages-format.ts';
import { responsesFormat } from '../support/fake-provider/responses-format.ts';
import { keptResponses } from '../support/fake-provider/responses-memory.ts';
import type {
  JsonObject,
  ModelRequest,
  ScriptFormat,
  TurnPart,
  WireFormat,
} from '../support/fake-provider/script.ts';

export type SentBody = {
  readonly bytes: Uint8Array;
  readonly body: JsonObject | undefined;
  /** The reason for a refusal; `isTooLong`: only the length is. */
  readonly refused: string | undefined;
  readonly isTooLong: boolean;
};

export type StrictProvider = {
  readonly upstream: Upstream;
  /** Bodies received since the list was last emptied. */
  readonly sent: SentBody[];
  /** Maximum tokens of a request, at four bytes each. */
  limit: number;
  script: (body: JsonObject) => readonly TurnPart[];
  /** Returns why a client's own body would be refused, apart from its length. */
  refusalOf(target: string, bytes: Uint8Array): string | undefined;
};

const overflows: Readonly<Record<ScriptFormat, (limit: number, tokens: number) => string>> = {
  chat: (limit, tokens) =>
    `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${tokens} tokens.`,
  messages: (limit, tokens) => `prompt is too long: ${tokens} tokens > ${limit} maximum`,
  responses: (limit, tokens) =>
    `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${tokens} tokens.`,
  gemini: (limit, tokens) =>
    `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${limit}).`,
};

export function strictProvider(): StrictProvider {
  const responses = responsesFormat(keptResponses());
  const formats: Readonly<Record<ScriptFormat, WireFormat>> = {
    chat: chatFormat,
    messages: messagesFormat(false),
    responses,
    gemini: geminiFormat(true),
  };
  const counts = { ...countFormats(false, responses), gemini: countFormats(true, responses).gemini };
  let index = 0;

  function judged(target: string, bytes: Uint8Array) {
    const endpoint = endpointOf('POST', target);
    const body = parseJson(bytes);
    if ((endpoint.kind !== 'reply' && endpoint.kind !== 'count') || !isObject(body))
      return { endpoint, refusal: { message: 'We could not parse the JSON body of your request.' } };
    const { model, stream } = body;
    const request: ModelRequest = {
      body,
      model: typeof model === 'string' ? model : '',
      reply: stream === true ? 'events' : 'whole',
      ...endpoint.named,
    };
    const count = endpoint.kind === 'count' ? counts[endpoint.format] : undefined;
    return { endpoint, body, request, count, refusal: (count ?? formats[endpoint.format]).refusal(request) };
  }

  const provider: StrictProvider = {
    sent: [],
    limit: Number.POSITIVE_INFINITY,
    script: () => [{ type: 'text', text: 'Done.' }],
    refusalOf: (target, bytes) => judged(target, bytes).refusal?.message,
    upstream: {
      async send({ url, body: given }) {
        const bytes = given as Uint8Array;
        const { pathname, search } = new URL(url);
        const { endpoint, body, request, count, refusal } = judged(pathname + search, bytes);
        const format = formats[endpoint.format];
        const tokens = Math.ceil(bytes.length / 4);
        const isTooLong = !refusal && !count && tokens > provider.limit;
        const refused =
          refusal ?? (isTooLong ? overflowOf(endpoint.format, provider.limit, tokens) : undefined);
        provider.sent.push({ bytes, body, refused: refused?.message, isTooLong });
        if (refused || !request) return json(400, format.errorBody(400, refused ?? { message: 'odd' }));
        if (count) return json(200, count.answer(tokens));
        const answer = {
          index: index++,
          request,
          parts: provider.script(request.body),
          usage: { input: tokens, output: 9, cacheRead: 0, cacheWrite: 0 },
          finish: undefined,
          chunkSize: 7,
        };
        if (request.reply === 'whole') return json(200, format.whole(answer));
        const text = format.events(answer).map((event) => event.text);
        return { status: 200, headers: [['content-type', 'text/event-stream']], body: chunks(text) };
      },
      close: () => Promise.resolve(),
    },
  };
  return provider;
}

function overflowOf(format: ScriptFormat, limit: number, tokens: number) {
  return {
    message: overflows[format](limit, tokens),
    ...((format === 'chat' || format === 'responses') && { code: 'context_length_exceeded' }),
  };
}

function json(status: number, value: unknown) {
  const headers = [['content-type', 'application/json']] as const;
  return { status, headers, body: chunks([JSON.stringify(value)]) };
}

async function* chunks(texts: readonly string[]): AsyncGenerator<Uint8Array> {
  yield* texts.map((text) => new TextEncoder().encode(text));
}
