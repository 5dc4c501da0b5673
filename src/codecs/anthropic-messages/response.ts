/** Reads and rewrites complete Anthropic Messages responses, and spells our own errors in Anthropic's shape. */
import { isRecord, jsonBytes } from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import type { GatewayProblem, ModelReply, ToolCall, Overflow } from '../codec.ts';
import type { Usage } from '../../conversation/conversation.ts';
import {
  addUsage,
  jsonList,
  memberBytes,
  tokensAt,
  recordAt,
  setMembers,
  stringIn,
  parseResponse,
  elementsOf,
} from '../shared-json.ts';
import { type OverflowWording, readOverflow } from '../provider-errors.ts';
import { type PrivateTools, privateToolsOf } from '../../conversation/turns.ts';

const decoder = new TextDecoder();

export function readResponse(body: Uint8Array, privateTools: PrivateTools): ModelReply {
  const message = parseResponse(body);
  const turn =
    isRecord(message) && Array.isArray(message['content']) ? memberBytes(body, 'content') : undefined;
  if (!isRecord(message) || !turn) {
    throw new LeporelloError('bad-response', "The upstream response has no 'content' array.");
  }
  return replyFrom({
    turn,
    finish: stringIn(message, 'stop_reason'),
    rawUsage: message['usage'],
    privateTools,
  });
}

/** Makes a reply from a content array; streams rebuild the same array. */
export function replyFrom(message: {
  readonly turn: Uint8Array;
  readonly finish: string | undefined;
  readonly rawUsage: unknown;
  readonly privateTools: PrivateTools;
}): ModelReply {
  const blocks = elementsOf(message.turn);
  const calls = blocks.flatMap(({ bytes, value }) => callFrom(bytes, value));
  const isRecall = (call: ToolCall) => message.privateTools.has(call.name);
  return {
    text: blocks
      .map(({ value }) => (stringIn(value, 'type') === 'text' ? stringIn(value, 'text') : ''))
      .join(''),
    recalls: calls.filter(isRecall),
    calls: calls.filter((call) => !isRecall(call)),
    usage: usageFrom(message.rawUsage),
    rawUsage: message.rawUsage,
    finish: message.finish,
    turn: message.turn,
  };
}

export function isComplete(reply: ModelReply): boolean {
  return reply.finish === 'tool_use';
}

export function isTruncated(reply: ModelReply): boolean {
  return reply.finish === 'max_tokens' || reply.finish === 'model_context_window_exceeded';
}

export function writeResponse(
  body: Uint8Array,
  earlier: readonly ModelReply[],
  reply: ModelReply,
): Uint8Array {
  const rounds = [...earlier, reply];
  if (rounds.every((round) => round.recalls.length === 0)) return body;
  const usage = rounds.map((round) => round.rawUsage).reduce(addUsage);
  return setMembers(body, {
    content: jsonList(rounds.flatMap(visibleBlocks)),
    ...(usage === undefined ? {} : { usage: jsonBytes(usage) }),
    stop_reason: jsonBytes(clientStop(reply)),
  });
}

/** Returns the stop reason for the client. A message whose only calls were private gives the client nothing to run. */
export function clientStop(reply: ModelReply): string | null {
  if (reply.finish === 'tool_use' && reply.calls.length === 0) return 'end_turn';
  return reply.finish ?? null;
}

/** Reads the usage. Anthropic counts cached tokens in addition to `input_tokens`, not as a part of them. */
export function usageFrom(raw: unknown): Usage | undefined {
  if (!isRecord(raw)) return undefined;
  const cacheRead = tokensAt(raw, 'cache_read_input_tokens');
  const cacheWrite = tokensAt(raw, 'cache_creation_input_tokens');
  const cacheWriteLong = tokensAt(recordAt(raw, 'cache_creation'), 'ephemeral_1h_input_tokens');
  return {
    input: tokensAt(raw, 'input_tokens') + cacheRead + cacheWrite,
    cacheRead,
    cacheWrite,
    ...(cacheWriteLong > 0 ? { cacheWriteLong } : {}),
    output: tokensAt(raw, 'output_tokens'),
    ...sentPromptIn(raw),
  };
}

/**
 * Returns the tokens of the prompt that was sent, when the provider ran several rounds within the call (its own tools, a
 * compaction): the input of the first round. A compaction reports its own size, not that of the prompt, and without `iterations`
 * the rounds are unknown.
 */
function sentPromptIn(raw: Readonly<Record<string, unknown>>): Pick<Usage, 'sentPrompt'> {
  const rounds = Array.isArray(raw['iterations']) ? (raw['iterations'] as readonly unknown[]) : [];
  const [first] = rounds;
  if (first === undefined) {
    const ranTools = Object.values(recordAt(raw, 'server_tool_use')).some((count) => Number(count) > 0);
    return ranTools ? { sentPrompt: 'unknown' } : {};
  }
  if (!/^(?:fallback_)?message$/.test(stringIn(first, 'type') ?? '')) return { sentPrompt: 'unknown' };
  if (rounds.length === 1) return {};
  const tokens = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];
  return { sentPrompt: tokens.reduce((sum, key) => sum + tokensAt(first, key), 0) };
}

const errorTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** Spells an error in Anthropic's shape. https://docs.anthropic.com/en/api/errors */
export function errorBody({ status, message }: GatewayProblem): Uint8Array {
  const type = errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return jsonBytes({ type: 'error', error: { type, message } });
}

const overflowWordings: readonly OverflowWording[] = [
  // "prompt is too long: 205123 tokens > 200000 maximum"
  /prompt is too long(?:: (?<prompt>[\d,]+) tokens > (?<limit>[\d,]+) maximum)?/i,
  // "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"
  /exceed context limit(?:: (?<prompt>[\d,]+) \+ [\d,]+ > (?<limit>[\d,]+))?/i,
  // "Input is too long for requested model."
  /input is too long for requested model/i,
  // 413: "Request exceeds the maximum allowed number of bytes"
  { unit: 'bytes', says: /request exceeds the maximum (?:size|allowed number of bytes)/i },
];

export function overflowIn(status: number, body: string): Overflow | undefined {
  return readOverflow(status, body, overflowWordings);
}

/** True for the refusal "Invalid `signature` in `thinking` block … bound to a different conversation" (docs, preserved thinking). */
export function refusesReasoning(status: number, body: string): boolean {
  return status === 400 && /invalid .?signature.? in .?thinking.? block/i.test(body);
}

function visibleBlocks(reply: ModelReply): readonly Uint8Array[] {
  const privateTools = privateToolsOf(reply.recalls.map(({ name }) => name));
  const isPrivate = (block: unknown) =>
    (stringIn(block, 'type') === 'tool_use' && privateTools.has(stringIn(block, 'name') ?? '')) ||
    (reply.hidesText === true && stringIn(block, 'type') === 'text');
  return elementsOf(reply.turn)
    .filter(({ value }) => !isPrivate(value))
    .map(({ bytes }) => bytes);
}

function callFrom(bytes: Uint8Array, block: unknown): readonly ToolCall[] {
  if (stringIn(block, 'type') !== 'tool_use') return [];
  // The arguments as the model spelled them: JavaScript cannot hold all of its numbers.
  const input = memberBytes(bytes, 'input');
  return [
    {
      id: stringIn(block, 'id') ?? '',
      name: stringIn(block, 'name') ?? '',
      argumentsJson: input ? decoder.decode(input) : '{}',
    },
  ];
}
