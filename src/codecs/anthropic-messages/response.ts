/** Reads and rewrites complete Anthropic Messages responses, and spells our own errors in Anthropic's shape. */
import { parseSpan, ScanError, scanArray } from '../../conversation/json-scan.ts';
import { concatBytes, jsonBytes } from '../../conversation/splice.ts';
import { LeporelloError } from '../../errors.ts';
import type { GatewayProblem, ModelReply, ToolCall, Usage } from '../codec.ts';
import { addUsage, isRecord, memberBytes, numberAt, setMembers, stringIn } from '../event-json.ts';

const encoder = new TextEncoder();

export function readResponse(body: Uint8Array, recallTool: string | undefined): ModelReply {
  const message = parseBody(body);
  const turn = memberBytes(body, 'content');
  const content = isRecord(message) ? message['content'] : undefined;
  if (!isRecord(message) || !turn || !Array.isArray(content)) {
    throw new LeporelloError(
      'bad-response',
      'The upstream response has no content array, as a message would.',
    );
  }
  return replyFrom({
    blocks: content as readonly unknown[],
    turn,
    finish: stringIn(message, 'stop_reason'),
    rawUsage: message['usage'],
    recallTool,
  });
}

/** The reply that a list of content blocks makes; streams rebuild the same list. */
export function replyFrom(message: {
  readonly blocks: readonly unknown[];
  readonly turn: Uint8Array;
  readonly finish: string | undefined;
  readonly rawUsage: unknown;
  readonly recallTool: string | undefined;
}): ModelReply {
  const calls = message.blocks.filter((block) => stringIn(block, 'type') === 'tool_use').map(callFrom);
  const isRecall = (call: ToolCall) => call.name === message.recallTool;
  return {
    text: message.blocks
      .map((block) => (stringIn(block, 'type') === 'text' ? stringIn(block, 'text') : ''))
      .join(''),
    recalls: calls.filter(isRecall),
    calls: calls.filter((call) => !isRecall(call)),
    usage: usageFrom(message.rawUsage),
    rawUsage: message.rawUsage,
    finish: message.finish,
    turn: message.turn,
  };
}

export function writeResponse(
  body: Uint8Array,
  earlier: readonly ModelReply[],
  reply: ModelReply,
): Uint8Array {
  const rounds = [...earlier, reply];
  if (rounds.every((round) => round.recalls.length === 0)) return body;
  const visible = rounds.flatMap((round) => visibleBlocks(round));
  const joined = visible.flatMap((block, index) => (index > 0 ? [encoder.encode(','), block] : [block]));
  const usage = rounds.map((round) => round.rawUsage).reduce(addUsage);
  return setMembers(body, {
    content: concatBytes([encoder.encode('['), ...joined, encoder.encode(']')]),
    ...(usage === undefined ? {} : { usage: jsonBytes(usage) }),
    stop_reason: jsonBytes(clientStop(reply)),
  });
}

/** A message whose only calls were private has nothing for the client to run. */
export function clientStop(reply: ModelReply): string | null {
  if (reply.finish === 'tool_use' && reply.calls.length === 0) return 'end_turn';
  return reply.finish ?? null;
}

/** Anthropic counts cached tokens beside `input_tokens`, not in them. */
export function usageFrom(raw: unknown): Usage | undefined {
  if (!isRecord(raw)) return undefined;
  const cacheRead = numberAt(raw, 'cache_read_input_tokens');
  const cacheWrite = numberAt(raw, 'cache_creation_input_tokens');
  return {
    input: numberAt(raw, 'input_tokens') + cacheRead + cacheWrite,
    cacheRead,
    cacheWrite,
    output: numberAt(raw, 'output_tokens'),
  };
}

const errorTypes: Readonly<Record<GatewayProblem['status'], string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  408: 'timeout_error',
  413: 'request_too_large',
  500: 'api_error',
  502: 'api_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};

/** https://docs.anthropic.com/en/api/errors */
export function errorBody(problem: GatewayProblem): Uint8Array {
  return jsonBytes({ type: 'error', error: { type: errorTypes[problem.status], message: problem.message } });
}

const overflowWordings: readonly RegExp[] = [
  // "prompt is too long: 205123 tokens > 200000 maximum"
  /prompt is too long/i,
  // "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"
  /exceed context limit/i,
  // 413: "Request exceeds the maximum allowed number of bytes"
  /request exceeds the maximum (?:size|allowed number of bytes)/i,
];

export function isOverflow(status: number, body: string): boolean {
  return (status === 400 || status === 413) && overflowWordings.some((wording) => wording.test(body));
}

function visibleBlocks(reply: ModelReply): readonly Uint8Array[] {
  const recalls = new Set(reply.recalls.map((call) => call.id));
  return scanArray(reply.turn, 0)
    .elements.filter((span) => {
      const block = parseSpan(reply.turn, span);
      return !(stringIn(block, 'type') === 'tool_use' && recalls.has(stringIn(block, 'id') ?? ''));
    })
    .map((span) => reply.turn.subarray(span.start, span.end));
}

function callFrom(block: unknown): ToolCall {
  const input = isRecord(block) ? block['input'] : undefined;
  return {
    id: stringIn(block, 'id') ?? '',
    name: stringIn(block, 'name') ?? '',
    argumentsJson: JSON.stringify(input ?? {}),
  };
}

function parseBody(body: Uint8Array): unknown {
  try {
    return parseSpan(body, { start: 0, end: body.length });
  } catch (cause) {
    if (!(cause instanceof ScanError)) throw cause;
    throw new LeporelloError('bad-response', 'The upstream response is not JSON.', { cause });
  }
}
