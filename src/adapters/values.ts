/**
 * Public entry `leporello/codecs/values`: codecs over values, for programs that have a request as objects and send it themselves. The adapters use the
 * same codecs. Nothing here imports a package of a framework; the codec for LangChain does, and is an entry of its own.
 */
import type { Codec } from '../codecs/codec.ts';
import { isRecord, jsonBytes } from '../conversation/json-scan.ts';
import { itemForm } from './lib/agents-items.ts';
import { sdkForm } from './lib/ai-sdk-messages.ts';
import { type MessagesRequest, type ValuesCodec, valuesCodec } from './lib/wire-body.ts';

export type { MessagesRequest, ValuesCodec, WrittenValues } from './lib/wire-body.ts';

/**
 * Reads and writes messages of the AI SDK: the prompts that its models get, and the messages that programs keep.
 *
 * @example
 * const { codec, body, read } = aiSdkMessages.write({ model: 'gpt-5', messages, tools });
 * const prepared = await leporello.prepare({ codec, body });
 * const { messages: folded } = read(prepared.body);
 */
export const aiSdkMessages: ValuesCodec<MessagesRequest> = valuesCodec(sdkForm);

/**
 * Reads and writes the items of OpenAI Agents.
 *
 * @example
 * const { codec, body, read } = agentsItems.write({ model: 'gpt-5', messages: items, tools });
 */
export const agentsItems: ValuesCodec<MessagesRequest> = valuesCodec(itemForm);

/**
 * Returns the codec for the object that a provider's own SDK takes: a body of the wire format of `codec`.
 *
 * @example
 * const { codec, body, read } = wireBody(anthropicMessages).write({ model: 'claude-sonnet-5', max_tokens: 1_000, messages, tools });
 */
export function wireBody(codec: Codec): ValuesCodec<object> {
  return {
    write(request) {
      const body = bytesOf(request);
      return {
        codec,
        body: body as Uint8Array<ArrayBuffer>,
        read: (folded) => (folded === body ? request : parsedLike(request, folded)),
      };
    },
  };
}

/** A body that JSON cannot spell is empty, which the engine leaves alone. */
function bytesOf(request: object): Uint8Array {
  try {
    return jsonBytes(request);
  } catch {
    return new Uint8Array();
  }
}

/** Parses a body. An element of its lists that is spelled as one of the request is the same object. */
function parsedLike<Request extends object>(request: Request, folded: Uint8Array): Request {
  const parsed = JSON.parse(new TextDecoder().decode(folded)) as Request;
  const lists = Object.entries(parsed).flatMap(([key, list]: [string, unknown]) => {
    const own: unknown = Reflect.get(request, key);
    if (!Array.isArray(list) || !Array.isArray(own)) return [];
    const known = new Map(own.filter(isRecord).map((element) => [JSON.stringify(element), element]));
    return [[key, list.map((element: unknown) => known.get(JSON.stringify(element)) ?? element)]];
  });
  return { ...parsed, ...(Object.fromEntries(lists) as object) };
}
