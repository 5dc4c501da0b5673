/**
 * Reads and rewrites complete responses of OpenAI Responses, and spells our own errors in its shape.
 * https://platform.openai.com/docs/api-reference/responses/object, https://platform.openai.com/docs/guides/error-codes
 */
import { isRecord, jsonBytes } from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import type { GatewayProblem, ModelReply, ToolCall, Overflow } from '../codec.ts';
import type { Usage } from '../../conversation/conversation.ts';
import {
  type JsonElement,
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
import { type OverflowWording, contextLengthWordings, readOverflow } from '../provider-errors.ts';
import { type PrivateTools, privateToolsOf } from '../../conversation/turns.ts';

export function readResponse(body: Uint8Array, privateTools: PrivateTools): ModelReply {
  const response = parseResponse(body);
  if (!isRecord(response) || !Array.isArray(response['output'])) {
    throw new LeporelloError('bad-response', "The upstream response has no 'output' array.");
  }
  return replyFrom({ turn: memberBytes(body, 'output')!, response, privateTools });
}

/** Makes a reply from a list of output items. `response` is the object that contained them; streams have it without the items. */
export function replyFrom(given: {
  readonly turn: Uint8Array;
  readonly response: unknown;
  readonly privateTools: PrivateTools;
}): ModelReply {
  const items = elementsOf(given.turn);
  const calls = callsOfItems(items);
  const isRecall = (call: ToolCall) => given.privateTools.has(call.name);
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
 * Reads the usage. `input_tokens` includes cached tokens, read and written, and the prompts of all rounds that the provider ran within the call.
 * `items` are those of the reply: they show whether there were such rounds.
 */
export function usageFrom(raw: unknown, items: readonly JsonElement[]): Usage | undefined {
  if (!isRecord(raw)) return undefined;
  const details = recordAt(raw, 'input_tokens_details');
  return {
    input: tokensAt(raw, 'input_tokens'),
    cacheRead: tokensAt(details, 'cached_tokens'),
    cacheWrite: tokensAt(details, 'cache_write_tokens'),
    output: tokensAt(raw, 'output_tokens'),
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

// Items of a response: their text and calls, and which of them the client may see

function textOfItems(items: readonly JsonElement[]): string {
  return items
    .flatMap(({ value }) => {
      const content = isRecord(value) && value['type'] === 'message' ? value['content'] : undefined;
      return Array.isArray(content) ? (content as readonly unknown[]) : [];
    })
    .map((part) => (stringIn(part, 'type') === 'output_text' ? stringIn(part, 'text') : ''))
    .join('');
}

export function isPrivate(value: unknown, privateTools: PrivateTools): boolean {
  return stringIn(value, 'type') === 'function_call' && privateTools.has(stringIn(value, 'name') ?? '');
}

/** Returns the calls that wait for an answer, whatever their type: the provider answers its own calls in the same output. */
function callsOfItems(items: readonly JsonElement[]): readonly ToolCall[] {
  const outputs = new Set(
    items.map(({ value }) => `${stringIn(value, 'type')} ${stringIn(value, 'call_id')}`),
  );
  return items.flatMap(({ value }): readonly ToolCall[] => {
    const type = stringIn(value, 'type') ?? '';
    const isApproval = type === 'mcp_approval_request';
    const id = stringIn(value, isApproval ? 'id' : 'call_id');
    if (id === undefined || (!isApproval && !type.endsWith('_call'))) return [];
    if (outputs.has(`${type}_output ${id}`) || stringIn(value, 'execution') === 'server') return [];
    return [
      { id, name: stringIn(value, 'name') ?? type.replace(/_call$/, ''), argumentsJson: argumentsOf(value) },
    ];
  });
}

/**
 * True when the provider ran tools of its own, listed those of an MCP server, or compacted the conversation within the call: then
 * it read prompts that nobody sent.
 */
function didProviderWork(items: readonly JsonElement[]): boolean {
  const others = items.filter(({ value }) => !/^(?:message|reasoning)$/.test(stringIn(value, 'type') ?? ''));
  return others.length > callsOfItems(items).length;
}

function argumentsOf(value: unknown): string {
  const fields = isRecord(value) ? value : {};
  const asked =
    fields['arguments'] ?? fields['input'] ?? fields['action'] ?? fields['actions'] ?? fields['operation'];
  return typeof asked === 'string' ? asked : JSON.stringify(asked ?? {});
}

/** Leaves out reasoning that no item of another kind follows: the provider would refuse it in the next request. */
export function withoutStrayReasoning(items: readonly JsonElement[]): readonly JsonElement[] {
  return items.filter((item, index) => {
    const next = items[index + 1];
    return !isReasoning(item) || (next !== undefined && !isReasoning(next));
  });
}

/**
 * Returns the items of a reply that the client may see: all but the private calls, and the reasoning that led to nothing else. A
 * client that sent such reasoning back would be refused: "reasoning … without its required following item".
 */
export function visibleItems(reply: ModelReply): readonly JsonElement[] {
  const items = elementsOf(reply.turn);
  const privateTools = privateToolsOf(reply.recalls.map(({ name }) => name));
  if (privateTools.size === 0) return items;
  const isHidden = ({ value }: JsonElement) =>
    isPrivate(value, privateTools) || (reply.hidesText === true && stringIn(value, 'type') === 'message');
  return items.filter((item, index) =>
    isReasoning(item) ? !ledToHiddenOnly(items, index, isHidden) : !isHidden(item),
  );
}

function ledToHiddenOnly(
  items: readonly JsonElement[],
  index: number,
  isHidden: (item: JsonElement) => boolean,
): boolean {
  const behind = items.slice(index + 1);
  const start = behind.findIndex((item) => !isReasoning(item));
  if (start < 0) return true;
  const rest = behind.slice(start);
  const end = rest.findIndex(isReasoning);
  return rest.slice(0, end < 0 ? undefined : end).every(isHidden);
}

export function isReasoning({ value }: JsonElement): boolean {
  return stringIn(value, 'type') === 'reasoning';
}
