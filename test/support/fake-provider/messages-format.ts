/** Spells the Messages API as the provider does, plain and streamed. Ids are computed, so that two runs give the same bytes. */
import { promptCache } from './messages-cache.ts';
import { messagesRefusal } from './messages-rules.ts';
import { argumentsJson, pieces } from './script.ts';
import type { Answer, JsonObject, TurnPart, WireEvent, WireFormat } from './script.ts';

export function messagesFormat(strictRoles: boolean): WireFormat {
  return {
    idHeader: 'request-id',
    cached: promptCache(),
    refusal: ({ body }) => messagesRefusal(body, { maxTokens: true, strictRoles }),
    whole: (answer) => ({
      ...envelope(answer, usageOf(answer)),
      content: answer.parts.map((part, n) => block(part, callId(answer, n))),
      stop_reason: finishOf(answer),
    }),
    events: (answer) => [
      event({ type: 'message_start', message: envelope(answer, { ...usageOf(answer), output_tokens: 1 }) }),
      ...answer.parts.flatMap((part, n) => partEvents(part, n, answer)),
      event({
        type: 'message_delta',
        delta: { stop_reason: finishOf(answer), stop_sequence: null },
        usage: usageOf(answer),
      }),
      event({ type: 'message_stop' }),
    ],
    errorBody: (status, { message }) => ({
      type: 'error',
      error: { type: errorTypes[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'), message },
      request_id: 'req_fake',
    }),
  };
}

function event(data: JsonObject & { readonly type: string }, part?: number): WireEvent {
  const text = `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  return part === undefined ? { text } : { text, part };
}

function envelope({ index, request }: Answer, usage: JsonObject): JsonObject {
  return {
    id: `msg_${index}`,
    type: 'message',
    role: 'assistant',
    model: request.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  };
}

function callId({ index, parts }: Answer, n: number): string {
  const part = parts[n];
  return part?.type === 'tool-call' && part.id !== undefined ? part.id : `toolu_${index}_${n}`;
}

function block(part: TurnPart, id: string): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'thinking':
      return { type: 'thinking', thinking: part.text, signature: part.signature };
    case 'tool-call':
      return { type: 'tool_use', id, name: part.name, input: JSON.parse(argumentsJson(part)) as unknown };
    case 'block':
      return part.block;
  }
}

/** Returns start, deltas and stop of one content block; a ping follows the first start, as the provider's does. */
function partEvents(part: TurnPart, n: number, answer: Answer): readonly WireEvent[] {
  const { opening, deltas } = streamed(part, callId(answer, n), answer.chunkSize);
  return [
    event({ type: 'content_block_start', index: n, content_block: opening }, n),
    ...(n === 0 ? [event({ type: 'ping' })] : []),
    ...deltas.map((delta) => event({ type: 'content_block_delta', index: n, delta })),
    event({ type: 'content_block_stop', index: n }),
  ];
}

type Streamed = { readonly opening: JsonObject; readonly deltas: readonly JsonObject[] };

function streamed(part: TurnPart, id: string, size: number): Streamed {
  switch (part.type) {
    case 'text':
      return {
        opening: { type: 'text', text: '' },
        deltas: pieces(part.text, size).map((text) => ({ type: 'text_delta', text })),
      };
    case 'thinking': {
      const thoughts = pieces(part.text, size).map((thinking) => ({ type: 'thinking_delta', thinking }));
      return {
        opening: { type: 'thinking', thinking: '', signature: '' },
        deltas: [...thoughts, { type: 'signature_delta', signature: part.signature }],
      };
    }
    case 'tool-call':
      return {
        opening: { type: 'tool_use', id, name: part.name, input: {} },
        deltas: inputDeltas(argumentsJson(part), size),
      };
    case 'block': {
      // A call that the provider runs is streamed like one of the client's, and its result as a whole.
      const { input } = part.block;
      if (input === undefined) return { opening: part.block, deltas: [] };
      return {
        opening: { ...part.block, input: {} },
        deltas: inputDeltas(JSON.stringify(input), size),
      };
    }
  }
}

function inputDeltas(json: string, size: number): readonly JsonObject[] {
  return ['', ...pieces(json, size)].map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
}

function finishOf({ parts, finish }: Answer): string {
  return finish ?? (parts.some((part) => part.type === 'tool-call') ? 'tool_use' : 'end_turn');
}

function usageOf({ usage }: Answer): JsonObject {
  return {
    input_tokens: Math.max(0, usage.input - usage.cacheRead - usage.cacheWrite),
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cacheRead,
    output_tokens: usage.output,
  };
}

const errorTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};
