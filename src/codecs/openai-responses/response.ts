/**
 * Reads and rewrites complete responses of OpenAI Responses, and spells our own errors in its shape.
 * https://platform.openai.com/docs/api-reference/responses/object, https://platform.openai.com/docs/guides/error-codes
 */
import { isRecord, jsonBytes } from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import type { GatewayProblem, ModelReply, ToolCall, ReplyUsage } from '../codec.ts';
import {
  addUsage,
  jsonList,
  memberBytes,
  numberAt,
  recordAt,
  setMembers,
  stringIn,
  parseResponse,
  elementsOf,
  type JsonElement,
} from '../event-json.ts';
import {
  contextLengthWordings,
  readOverflow,
  type Overflow,
  type OverflowWording,
} from '../provider-errors.ts';
import { callsOfItems, didProviderWork, textOfItems, visibleItems } from './output.ts';

export function readResponse(body: Uint8Array, recallTool: string | undefined): ModelReply {
  const response = parseResponse(body);
  if (!isRecord(response) || !Array.isArray(response['output'])) {
    throw new LeporelloError('bad-response', "The upstream response has no 'output' array.");
  }
  return replyFrom({ turn: memberBytes(body, 'output')!, response, recallTool });
}

/** Makes a reply from a list of output items. `response` is the object they came in; streams have it without the items. */
export function replyFrom(given: {
  readonly turn: Uint8Array;
  readonly response: unknown;
  readonly recallTool: string | undefined;
}): ModelReply {
  const items = elementsOf(given.turn);
  const calls = callsOfItems(items);
  const isRecall = (call: ToolCall) => call.name === given.recallTool;
  const rawUsage = isRecord(given.response) ? given.response['usage'] : undefined;
  return {
    text: textOfItems(items),
    recalls: calls.filter(isRecall),
    calls: calls.filter((call) => !isRecall(call)),
    usage: usageFrom(rawUsage, items),
    rawUsage: rawUsage ?? undefined,
    finish:
      stringIn(recordAt(given.response, 'incomplete_details'), 'reason') ??
      stringIn(given.response, 'status'),
    turn: given.turn,
    replyId:
      isRecord(given.response) && given.response['store'] !== false
        ? stringIn(given.response, 'id')
        : undefined,
  };
}

export function isComplete(reply: ModelReply): boolean {
  return reply.finish === 'completed';
}

export function isTruncated(reply: ModelReply): boolean {
  return reply.finish === 'max_output_tokens';
}

/** Keeps the id of the last response: the provider keeps the whole exchange under it, so a client may continue from it. */
export function writeResponse(
  body: Uint8Array,
  earlier: readonly ModelReply[],
  reply: ModelReply,
): Uint8Array {
  const rounds = [...earlier, reply];
  if (rounds.every((round) => round.recalls.length === 0)) return body;
  const usage = rounds.map((round) => round.rawUsage).reduce(addUsage);
  return setMembers(body, {
    output: jsonList(rounds.flatMap(visibleItems).map(({ bytes }) => bytes)),
    ...(usage === undefined ? {} : { usage: jsonBytes(usage) }),
  });
}

/**
 * `input_tokens` includes cached tokens, read and written, and the prompts of all rounds that the provider ran within the call.
 * `items` are those of the reply: they show whether there were such rounds.
 */
export function usageFrom(raw: unknown, items: readonly JsonElement[]): ReplyUsage | undefined {
  if (!isRecord(raw)) return undefined;
  const details = recordAt(raw, 'input_tokens_details');
  return {
    input: numberAt(raw, 'input_tokens'),
    cacheRead: numberAt(details, 'cached_tokens'),
    cacheWrite: numberAt(details, 'cache_write_tokens'),
    output: numberAt(raw, 'output_tokens'),
    ...(didProviderWork(items) ? { sentPrompt: 'unknown' as const } : {}),
  };
}

export function errorBody(problem: GatewayProblem): Uint8Array {
  return jsonBytes({ error: errorOf(problem) });
}

/** Spells the event that ends a stream: the SDK, and with it most clients, read `message` and `code` from its top level. */
export function errorEvent(error: Readonly<Record<string, unknown>>, sequenceNumber: number): Uint8Array {
  const { message, param = null, code, type } = error;
  return jsonBytes({ type: 'error', code: code ?? type, message, param, sequence_number: sequenceNumber });
}

export function errorOf({ status, message }: GatewayProblem) {
  if (status === 429) return { message, type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded' };
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  return { message, type, param: null, code: status === 413 ? 'request_too_large' : null };
}

const overflowWordings: readonly OverflowWording[] = [
  ...contextLengthWordings,
  // Only the code, from servers with other wordings
  /"code"\s*:\s*"context_length_exceeded"/,
];

export function overflowIn(status: number, body: string): Overflow | undefined {
  return readOverflow(status, body, overflowWordings);
}

/** False always: a call without the reasoning that led to it is refused. */
export function refusesReasoning(): boolean {
  return false;
}
