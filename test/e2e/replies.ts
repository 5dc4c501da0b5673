/** What the answers to plain fetch hold in every format: ends of streams, wordings, kinds of errors. */
import type { Format } from './bodies.ts';

type Replies = {
  /** What the end of a whole stream looks like, when the model just stopped. */
  readonly streamEnd: RegExp;
  /** The same when it stopped for its calls. */
  readonly endWithCalls: RegExp;
  /** How the client's own first call, or the first block, is counted when a recall stood before it. */
  readonly firstCall: RegExp;
  /** The script's word for a reply that was cut off, and how a reply says it. */
  readonly cutOff: { readonly finish: string; readonly told: string };
  /** The whole event of an error in a stream; an error of the gateway's is a 502. */
  readonly errorEvent: (message: string) => string;
  readonly bodyTooLarge: object;
  readonly upstreamDown: object;
  /** How the provider says that a request is too long, and how it is told that it was the instructions. */
  readonly overflow: string;
  /** The same with the tokens of the prompt and of the limit. */
  readonly overflowNaming: (prompt: number, limit: number) => string;
  readonly rulesTooLarge: RegExp;
};

const invalid = { type: 'invalid_request_error' };
const openaiError = (message: string) => ({ message, type: 'server_error', param: null, code: null });

export const replies: Readonly<Record<Format, Replies>> = {
  chat: {
    streamEnd: /"finish_reason":"stop"[^]*data: \[DONE\]\n\n$/,
    endWithCalls: /"finish_reason":"tool_calls"/,
    firstCall: /"tool_calls":\[\{"index":0,/,
    cutOff: { finish: 'length', told: '"finish_reason":"length"' },
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
    cutOff: { finish: 'max_tokens', told: '"stop_reason":"max_tokens"' },
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
    cutOff: { finish: 'max_output_tokens', told: '"reason":"max_output_tokens"' },
    // Behind the two events that begin a response.
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
    // The step's first call is signed, which the recall was.
    firstCall: /"functionCall":\{"name":"run".*?\},"thoughtSignature":"/,
    cutOff: { finish: 'MAX_TOKENS', told: '"finishReason":"MAX_TOKENS"' },
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

/** A reply without what its provider repeats of the request: the tools, among them the one that the gateway adds. */
export function withoutEcho(text: string): string {
  return text.replaceAll(/"tools":\[.*?\],"top_p"/g, '"top_p"');
}

/** A reply without the numbers and dates that the scripted provider gives it. */
export function masked(text: string): string {
  return text.replaceAll(
    /"(?:(?:msg|fc|rs|req|resp)_|chatcmpl-|response-)\w+"|(?<="(?:created|created_at|completed_at)":)\d+|(?<="thoughtSignature":)"\w+=*"/g,
    '"N"',
  );
}
