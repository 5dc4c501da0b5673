/**
 * Spells Chat Completions as the provider does, plain and streamed. Ids and times are computed, so that two runs give the same
 * bytes.
 */
import { chatRefusal } from './chat-rules.ts';
import { isObject } from './json.ts';
import { argumentsJson, pieces } from './script.ts';
import type { Answer, JsonObject, Refusal, TurnPart, WireEvent, WireFormat } from './script.ts';

export const chatFormat: WireFormat = {
  idHeader: 'x-request-id',
  refusal: ({ body }) => chatRefusal(body),
  whole: (answer) => ({
    ...envelope(answer, 'chat.completion'),
    choices: [{ index: 0, message: message(answer), logprobs: null, finish_reason: finishOf(answer) }],
    usage: usageOf(answer),
  }),
  events: (answer) => {
    const options = answer.request.body['stream_options'];
    const withUsage = isObject(options) && options['include_usage'] === true;
    const head = { ...envelope(answer, 'chat.completion.chunk'), ...(withUsage && { usage: null }) };
    const chunk = (delta: JsonObject, finish: string | null = null): JsonObject => ({
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    });
    const closing = [chunk({}, finishOf(answer))];
    if (withUsage) closing.push({ ...head, choices: [], usage: usageOf(answer) });
    return [
      event(chunk({ role: 'assistant', content: contentOf(answer) === null ? null : '', refusal: null })),
      ...deltas(answer).map(({ delta, part }) => event(chunk(delta), part)),
      ...closing.map((one) => event(one)),
      { text: 'data: [DONE]\n\n' },
    ];
  },
  errorBody,
};

/** The shape of all of this provider's errors, whatever the endpoint. */
export function errorBody(status: number, { message: text, param, code }: Refusal): JsonObject {
  return { error: { message: text, type: errorType(status), param: param ?? null, code: code ?? null } };
}

function event(data: JsonObject, part?: number): WireEvent {
  const text = `data: ${JSON.stringify(data)}\n\n`;
  return part === undefined ? { text } : { text, part };
}

function envelope({ index, request }: Answer, object: string): JsonObject {
  return {
    id: `chatcmpl-${index}`,
    object,
    created: 1_700_000_000 + index,
    model: request.model,
    service_tier: 'default',
    system_fingerprint: null,
  };
}

function message(answer: Answer): JsonObject {
  const calls = callsOf(answer);
  const reasoning = answer.parts.filter((part) => part.type === 'thinking');
  return {
    role: 'assistant',
    content: contentOf(answer),
    refusal: null,
    annotations: [],
    ...(reasoning.length > 0 && { reasoning_content: reasoning.map(({ text }) => text).join('') }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function contentOf({ parts }: Answer): string | null {
  const texts = parts.filter((part) => part.type === 'text');
  return texts.length === 0 && parts.some((part) => part.type === 'tool-call')
    ? null
    : texts.map(({ text }) => text).join('');
}

function callsOf({ parts, index }: Answer): readonly JsonObject[] {
  return parts
    .filter((part) => part.type === 'tool-call')
    .map((part, n) => ({
      id: part.id ?? `call_${index}_${n}`,
      type: 'function',
      function: { name: part.name, arguments: argumentsJson(part) },
    }));
}

/** Returns the deltas between the one with the role and the one with the finish reason. */
function deltas(answer: Answer): readonly { delta: JsonObject; part: number | undefined }[] {
  const calls = callsOf(answer);
  let seen = 0;
  return answer.parts.flatMap((part, index) => {
    const list = partDeltas(part, answer.chunkSize, calls[seen], seen);
    if (part.type === 'tool-call') seen += 1;
    return list.map((delta, i) => ({ delta, part: i === 0 ? index : undefined }));
  });
}

function partDeltas(
  part: TurnPart,
  size: number,
  call: JsonObject | undefined,
  index: number,
): readonly JsonObject[] {
  switch (part.type) {
    case 'text':
      return pieces(part.text, size).map((content) => ({ content }));
    case 'thinking':
      return pieces(part.text, size).map((text) => ({ reasoning_content: text }));
    case 'tool-call': {
      const opening = { index, ...call, function: { name: part.name, arguments: '' } };
      const fragments = pieces(argumentsJson(part), size);
      const rest = fragments.map((json) => ({ index, function: { arguments: json } }));
      return [opening, ...rest].map((one) => ({ tool_calls: [one] }));
    }
    case 'block':
      return [];
  }
}

function finishOf({ parts, finish }: Answer): string {
  return finish ?? (parts.some((part) => part.type === 'tool-call') ? 'tool_calls' : 'stop');
}

function usageOf({ usage }: Answer): JsonObject {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

function errorType(status: number): string {
  if (status === 429) return 'requests';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}
