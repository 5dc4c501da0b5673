/** Describes the replies of each format: ends of streams, error texts, error types. */
import type { Format } from './bodies.ts';

type Replies = {
  /** The end of a complete stream whose model stopped without calls. */
  readonly streamEnd: RegExp;
  /** The end of a stream whose model stopped for tool calls. */
  readonly endWithCalls: RegExp;
  /** The index of the client's first call or block if a recall preceded it. */
  readonly firstCall: RegExp;
  /** The script's finish reason for a reply that was cut off, and its form in the reply. */
  readonly cutOff: { readonly finish: string; readonly reported: string };
  /** The complete error event of a stream; the gateway's own errors are 502. */
  readonly errorEvent: (message: string) => string;
  readonly bodyTooLarge: object;
  readonly upstreamDown: object;
  /** The provider's error for a request that is too long. */
  readonly overflow: string;
  /** The same error with the tokens of the prompt and of the limit. */
  readonly overflowNaming: (prompt: number, limit: number) => string;
  /** Leporello's addition to it when the system prompt is too large. */
  readonly rulesTooLarge: RegExp;
};

const invalid = { type: 'invalid_request_error' };
const openaiError = (message: string) => ({ message, type: 'server_error', param: null, code: null });

export const replies: Readonly<Record<Format, Replies>> = {
  chat: {
    streamEnd: /"finish_reason":"stop"[^]*data: \[DONE\]\n\n$/,
    endWithCalls: /"finish_reason":"tool_calls"/,
    firstCall: /"tool_calls":\[\{"index":0,/,
    cutOff: { finish: 'length', reported: '"finish_reason":"length"' },
    errorEvent: (message) => `data: ${JSON.stringify({ error: openaiError(message) })}\n\n`,
    bodyTooLarge: invalid,
    upstreamDown: { type: 'server_error' },
    overflow: "This model's maximum context length is 20000 tokens.",
    overflowNaming: (prompt, limit) =>
      `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${prompt} tokens.`,
    rulesTooLarge: /message 0 \(system\) \d+/,
  },
  messages: {
    streamEnd: /"stop_reason":"end_turn"[^]*event: message_stop\n.*\n\n$/,
    endWithCalls: /"stop_reason":"tool_use"/,
    firstCall: /"type":"content_block_start","index":0,/,
    cutOff: { finish: 'max_tokens', reported: '"stop_reason":"max_tokens"' },
    errorEvent: (message) =>
      `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'api_error', message } })}\n\n`,
    bodyTooLarge: { type: 'request_too_large' },
    upstreamDown: { type: 'api_error' },
    overflow: 'prompt is too long: 30000 tokens > 20000 maximum',
    overflowNaming: (prompt, limit) => `prompt is too long: ${prompt} tokens > ${limit} maximum`,
    rulesTooLarge: /fit: system \d+/,
  },
  responses: {
    streamEnd: /event: response\.completed\n.*\n\n$/,
    endWithCalls: /event: response\.completed\n.*"type":"function_call"/,
    firstCall: /"type":"response.output_item.added","sequence_number":2,"output_index":0,/,
    cutOff: { finish: 'max_output_tokens', reported: '"reason":"max_output_tokens"' },
    // Two events begin a response, so the error is the third.
    errorEvent: (message) =>
      `event: error\ndata: ${JSON.stringify({ type: 'error', code: 'server_error', message, param: null, sequence_number: 2 })}\n\n`,
    bodyTooLarge: { ...invalid, code: 'request_too_large' },
    upstreamDown: { type: 'server_error' },
    overflow: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    overflowNaming: (prompt, limit) =>
      `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${prompt} tokens.`,
    rulesTooLarge: /fit: system \d+/,
  },
  gemini: {
    streamEnd: /"finishReason":"STOP"[^]*\n\n$/,
    endWithCalls: /"functionCall"[^]*"finishReason":"STOP"/,
    // The first call of a step is signed; here the recall was.
    firstCall: /"functionCall":\{"name":"run".*?\},"thoughtSignature":"/,
    cutOff: { finish: 'MAX_TOKENS', reported: '"finishReason":"MAX_TOKENS"' },
    errorEvent: (message) =>
      `data: ${JSON.stringify({ error: { code: 502, message, status: 'UNAVAILABLE' } })}\n\n`,
    bodyTooLarge: { code: 413, status: 'INVALID_ARGUMENT' },
    upstreamDown: { code: 502, status: 'UNAVAILABLE' },
    overflow: 'The input token count (30000) exceeds the maximum number of tokens allowed (20000).',
    overflowNaming: (prompt, limit) =>
      `The input token count (${prompt}) exceeds the maximum number of tokens allowed (${limit}).`,
    rulesTooLarge: /fit: system \d+/,
  },
};

/** Returns a reply without the request's tools, which some providers repeat; the recall tool is among them. */
export function withoutEcho(text: string): string {
  return text.replaceAll(/"tools":\[.*?\],"top_p"/g, '"top_p"');
}

/** Returns a reply with the scripted provider's ids and times masked. */
export function masked(text: string): string {
  return text.replaceAll(
    /"(?:(?:msg|fc|rs|req|resp)_|chatcmpl-|response-)\w+"|(?<="(?:created|created_at|completed_at)":)\d+|(?<="thoughtSignature":)"\w+=*"/g,
    '"N"',
  );
}
