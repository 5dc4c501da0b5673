/** Reads and rewrites complete Chat Completions responses, continues a reply after a recall, and spells our own errors in OpenAI's shape. */
import type { Codec, EventContent, GatewayProblem, ModelReply, ToolCall, Overflow } from '../codec.ts';
import type { RecallRound, Usage } from '../../conversation/conversation.ts';
import {
  addUsage,
  jsonList,
  memberBytes,
  tokensAt,
  objectBytes,
  parseResponse,
  recordAt,
  setMembers,
  stringIn,
  withMembers,
} from '../shared-json.ts';
import { type OverflowWording, contextLengthWordings, readOverflow } from '../provider-errors.ts';
import {
  type JsonRecord,
  applySplices,
  isRecord,
  jsonBytes,
  listSplices,
  objectsOf,
  parseSpan,
  scanArray,
} from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import { type PrivateTools, privateToolsOf, recalledMediaNote } from '../../conversation/turns.ts';
import { appendMessages } from '../write-body.ts';

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export function readResponse(body: Uint8Array, privateTools: PrivateTools): ModelReply {
  const completion = parseResponse(body);
  const choices = isRecord(completion) ? completion['choices'] : undefined;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (!isRecord(completion) || !isRecord(choice) || !isRecord(choice['message'])) {
    throw new LeporelloError('bad-response', "The upstream response has no 'choices' array.");
  }
  return replyFrom({
    turn: memberBytes(choiceBytes(body)!, 'message')!,
    finish: stringIn(choice, 'finish_reason'),
    rawUsage: completion['usage'],
    privateTools,
  });
}

/** Makes a reply from an assistant message; streams rebuild the same message. */
export function replyFrom(message: {
  readonly turn: Uint8Array;
  readonly finish: string | undefined;
  readonly rawUsage: unknown;
  readonly privateTools: PrivateTools;
}): ModelReply {
  const value: unknown = JSON.parse(decoder.decode(message.turn));
  const listed =
    isRecord(value) && Array.isArray(value['tool_calls']) ? (value['tool_calls'] as readonly unknown[]) : [];
  const calls = [...listed.map(callFrom), ...functionCallIn(value)];
  const isRecall = (call: ToolCall) => message.privateTools.has(call.name);
  return {
    text: stringIn(value, 'content') ?? '',
    recalls: calls.filter(isRecall),
    calls: calls.filter((call) => !isRecall(call)),
    usage: usageFrom(message.rawUsage),
    rawUsage: message.rawUsage,
    finish: message.finish,
    turn: message.turn,
  };
}

/** True for a reply that was not cut off. Other reasons do not count: not every server says `tool_calls` for calls. */
export function isComplete(reply: ModelReply): boolean {
  return reply.finish !== undefined && reply.finish !== 'length' && reply.finish !== 'content_filter';
}

export function isTruncated(reply: ModelReply): boolean {
  return reply.finish === 'length';
}

export function writeResponse(
  body: Uint8Array,
  earlier: readonly ModelReply[],
  reply: ModelReply,
): Uint8Array {
  const rounds = [...earlier, reply];
  const choices = memberBytes(body, 'choices');
  const first = choices && scanArray(choices, 0).elements[0];
  if (!first || rounds.every((round) => round.recalls.length === 0)) return body;
  const choice = choices.subarray(first.start, first.end);
  const content = joinedContent(rounds);
  const said = content === undefined ? {} : { content };
  const bytes = setMembers(choice, {
    message: withMembers(withoutRecalls(memberBytes(choice, 'message')!, reply), said),
    finish_reason: jsonBytes(clientFinish(reply)),
  });
  const usage = rounds.map((round) => round.rawUsage).reduce(addUsage);
  return withMembers(body, {
    choices: applySplices(choices, [{ span: first, bytes }]),
    ...(usage === undefined ? {} : { usage: jsonBytes(usage) }),
  });
}

/** Joins what the model said in all rounds: as one text, or as a list of parts if a server sends parts. Undefined if it said nothing. */
function joinedContent(rounds: readonly ModelReply[]): Uint8Array | undefined {
  const shown = rounds.filter((round) => !round.hidesText);
  const lists = shown.map(({ turn }) => memberBytes(turn, 'content')).filter((content) => isList(content));
  const text = shown.map((round) => round.text).join('');
  if (lists.length === 0) return text === '' ? undefined : jsonBytes(text);
  const parts = shown.flatMap((round) => {
    const content = memberBytes(round.turn, 'content');
    if (isList(content))
      return scanArray(content, 0).elements.map(({ start, end }) => content.subarray(start, end));
    return round.text === '' ? [] : [jsonBytes({ type: 'text', text: round.text })];
  });
  return jsonList(parts);
}

function isList(content: Uint8Array | undefined): content is Uint8Array {
  return content?.[0] === OPEN_BRACKET;
}

/** Returns the finish reason for the client. A message whose only calls were private gives the client nothing to run. */
export function clientFinish(reply: ModelReply): string | null {
  const isForCalls = reply.finish === 'tool_calls' || reply.finish === 'function_call';
  if (isForCalls && reply.calls.length === 0) return 'stop';
  return reply.finish ?? null;
}

/**
 * Reads the usage. OpenAI counts cached tokens as part of `prompt_tokens`, and does not charge for writing them. Other servers tell them elsewhere: DeepSeek as
 * `prompt_cache_hit_tokens`, Moonshot as `cached_tokens`, and OpenRouter also tells what was written.
 */
export function usageFrom(raw: unknown): Usage | undefined {
  if (!isRecord(raw)) return undefined;
  const details = recordAt(raw, 'prompt_tokens_details');
  return {
    input: tokensAt(raw, 'prompt_tokens'),
    cacheRead:
      tokensAt(details, 'cached_tokens') ||
      tokensAt(raw, 'prompt_cache_hit_tokens') ||
      tokensAt(raw, 'cached_tokens'),
    cacheWrite: tokensAt(details, 'cache_write_tokens'),
    output: tokensAt(raw, 'completion_tokens'),
  };
}

/** Spells an error in OpenAI's shape. https://platform.openai.com/docs/guides/error-codes */
export function errorBody(problem: GatewayProblem): Uint8Array {
  const { status, message } = problem;
  const limited = { message, type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded' };
  if (status === 429) return jsonBytes({ error: limited });
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  const code = status === 413 ? 'request_too_large' : null;
  return jsonBytes({ error: { message, type, param: null, code } });
}

const overflowWordings: readonly OverflowWording[] = [
  ...contextLengthWordings,
  // The wordings of servers that speak this format, the most used first: "The input token count (1196265) exceeds the maximum
  // number of tokens allowed (1048575)."
  /input token count (?:\((?<prompt>[\d,]+)\) )?.{0,40}exceeds the maximum(?: number of tokens allowed \(?(?<limit>[\d,]+))?/i,
  // "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
  /maximum prompt length is (?<limit>[\d,]+)(?: but the request contains (?<prompt>[\d,]+))?/i,
  // "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"
  /(?:prompt contains (?<prompt>[\d,]+) tokens.{0,40})?too large for model with (?<limit>[\d,]+) maximum context length/i,
  // "Please reduce the length of the messages or completion."
  /reduce the length of the messages/i,
  // "prompt token count of 120000 exceeds the limit of 64000"
  /prompt token count of (?<prompt>[\d,]+) exceeds the limit(?: of (?<limit>[\d,]+))?/i,
  // "Your request exceeded model token limit: 131072 (requested: 200000)"
  /exceeded model token limit(?:: (?<limit>[\d,]+)(?: \(requested: (?<prompt>[\d,]+)\))?)?/i,
  // "invalid params, context window exceeds limit"
  /context window exceeds limit/i,
  // "request (5123 tokens) exceeds the available context size (4096 tokens), try increasing it"
  /(?:request \((?<prompt>[\d,]+) tokens\) )?exceeds the available context size(?: \((?<limit>[\d,]+) tokens\))?/i,
  // "The number of tokens to keep from the initial prompt is greater than the context length"
  /greater than the context length/i,
  // Only the code, from servers with other wordings
  /"code"\s*:\s*"context_length_exceeded"/,
];

export function overflowIn(status: number, body: string): Overflow | undefined {
  return readOverflow(status, body, overflowWordings);
}

/** False always: this format signs no reasoning. */
export function refusesReasoning(): boolean {
  return false;
}

function withoutRecalls(message: Uint8Array, reply: ModelReply): Uint8Array {
  if (reply.recalls.length === 0) return message;
  if (reply.recalls.some(({ id }) => isFunctionId(id))) {
    const without = setMembers(message, { function_call: undefined });
    return withoutRecalls(without, {
      ...reply,
      recalls: reply.recalls.filter(({ id }) => !isFunctionId(id)),
    });
  }
  const list = memberBytes(message, 'tool_calls');
  if (!list) return message;
  if (reply.calls.length === 0) return setMembers(message, { tool_calls: undefined });
  const { elements, span } = scanArray(list, 0);
  const privateTools = privateToolsOf(reply.recalls.map(({ name }) => name));
  const isRecall = (index: number) => privateTools.has(callFrom(parseSpan(list, elements[index]!)).name);
  return setMembers(message, {
    tool_calls: applySplices(list, listSplices(elements, span.end - 1, isRecall)),
  });
}

function choiceBytes(body: Uint8Array): Uint8Array | undefined {
  const choices = memberBytes(body, 'choices');
  const first = choices && choices[0] === '['.charCodeAt(0) ? scanArray(choices, 0).elements[0] : undefined;
  return choices && first && choices.subarray(first.start, first.end);
}

/** Returns the one call of the legacy function form. */
function functionCallIn(message: unknown): readonly ToolCall[] {
  const called = recordAt(message, 'function_call');
  const name = stringIn(called, 'name');
  if (name === undefined) return [];
  return [{ id: functionId(name), name, argumentsJson: stringIn(called, 'arguments') ?? '' }];
}

/** Reads a call. The free text of a custom call counts as its arguments. */
function callFrom(call: unknown): ToolCall {
  const called = recordAt(call, 'function');
  const custom = recordAt(call, 'custom');
  return {
    id: stringIn(call, 'id') ?? '',
    name: stringIn(called, 'name') ?? stringIn(custom, 'name') ?? '',
    argumentsJson: stringIn(called, 'arguments') ?? stringIn(custom, 'input') ?? '',
  };
}

// Single chunks of a stream: their choice is changed so that every other byte stays

const OPEN_BRACKET = '['.charCodeAt(0);
const OPEN_BRACE = '{'.charCodeAt(0);

export function firstChoice(chunk: JsonRecord): JsonRecord | undefined {
  const choices = chunk['choices'];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isRecord(first) ? first : undefined;
}

/** The members of a delta that the client gets besides its calls. */
type KeptOfDelta = {
  readonly keepsRole: boolean;
  /** False to leave out a private call of the legacy function form. */
  readonly keepsFunction: boolean;
  readonly keepsText: boolean;
};

/** True when a delta holds anything for the client besides its role and its calls. */
export function hasText(
  delta: JsonRecord,
  { keepsFunction, keepsText }: Omit<KeptOfDelta, 'keepsRole'>,
): boolean {
  return Object.entries(delta).some(
    ([key, value]) =>
      key !== 'role' &&
      key !== 'tool_calls' &&
      (key !== 'function_call' || keepsFunction) &&
      (key !== 'content' || keepsText) &&
      value !== null &&
      value !== '',
  );
}

/** Reads the text and the names of calls in a chunk. */
export function contentOf(chunk: JsonRecord): EventContent {
  const delta = recordAt(firstChoice(chunk), 'delta');
  const { content } = delta;
  const isEmpty = content === undefined || content === null || content === '';
  const names = [
    ...objectsOf(delta['tool_calls']).map((call) => callFrom(call).name),
    ...functionCallIn(delta).map(({ name }) => name),
  ];
  return {
    text: isEmpty ? undefined : typeof content === 'string' ? content : '',
    calls: names.filter((name) => name !== ''),
  };
}

/** Replaces the calls of a choice, and keeps or removes its role. */
export function withCalls(
  choice: Uint8Array,
  calls: readonly JsonRecord[],
  { keepsRole, keepsFunction, keepsText }: KeptOfDelta,
): Uint8Array {
  const delta = setMembers(objectBytes(choice, 'delta'), {
    ...(keepsRole ? {} : { role: undefined }),
    ...(keepsFunction ? {} : { function_call: undefined }),
    ...(keepsText ? {} : { content: undefined }),
    tool_calls: undefined,
  });
  const list = calls.length > 0 ? { tool_calls: jsonList(calls.map(jsonBytes)) } : {};
  return withMembers(choice, { delta: withMembers(delta, list) });
}

/** Returns the choice as the end of a message without further content. */
export function closedChoice(choice: Uint8Array, finish: string | null): Uint8Array {
  return setMembers(choice, {
    delta: jsonBytes({}),
    logprobs: jsonBytes(null),
    finish_reason: jsonBytes(finish),
  });
}

/** Changes the first choice of a chunk. */
export function changeChoice(chunk: Uint8Array, change: (choice: Uint8Array) => Uint8Array): Uint8Array {
  const choices = memberBytes(chunk, 'choices');
  const first = choices?.[0] === OPEN_BRACKET ? scanArray(choices, 0).elements[0] : undefined;
  if (!choices || !first || choices[first.start] !== OPEN_BRACE) return chunk;
  const bytes = change(choices.subarray(first.start, first.end));
  return setMembers(chunk, { choices: applySplices(choices, [{ span: first, bytes }]) });
}

/** Appends the assistant message as it was, and one tool message for each answer, to the sent body. */
export const continueWith: Codec['continueWith'] = (sent, { turn }, answers) =>
  appendMessages(sent, 'messages', roundMessages({ turn, answers }));

/**
 * Returns the assistant message as it was, one tool message for each answer, and the media of all answers: no tool message may hold
 * an image, so they are a message of the user.
 */
export function roundMessages({ turn, answers }: RecallRound): readonly Uint8Array[] {
  const media = answers.flatMap((answer) => answer.media ?? []);
  const parts = media.map(({ json }) => setMembers(encoder.encode(json), { cache_control: undefined }));
  const content = jsonList([jsonBytes({ type: 'text', text: recalledMediaNote }), ...parts]);
  const shown = parts.length > 0 ? [withMembers(jsonBytes({ role: 'user' }), { content })] : [];
  const results = answers.map(({ call, text }) =>
    isFunctionId(call.id)
      ? { role: 'function', name: call.name, content: text }
      : { role: 'tool', tool_call_id: call.id, content: text },
  );
  return [turn, ...results.map(jsonBytes), ...shown];
}

/**
 * Begins our ids for calls of the legacy function form (`function_call`, answered by a message of role `function`). Such calls
 * have no ids: a message holds at most one, and the result after it names the function. These ids are never written into a body.
 */
const mark = '#function ';

export function functionId(name: string): string {
  return `${mark}${name}`;
}

/** True for an id that we made for a call without one. */
function isFunctionId(id: string): boolean {
  return id.startsWith(mark);
}
