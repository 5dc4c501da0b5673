/** Reads and rewrites complete generateContent responses, and spells our own errors in Google's shape. */
import type { GatewayProblem, ModelReply, ToolCall, Overflow } from '../codec.ts';
import type { Usage } from '../../conversation/conversation.ts';
import {
  type JsonElement,
  addUsage,
  elementsOf,
  jsonList,
  memberBytes,
  tokensAt,
  parseResponse,
  withMembers,
} from '../shared-json.ts';
import { stringOf, valueOf } from './read-part.ts';
import { type OverflowWording, readOverflow } from '../provider-errors.ts';
import type { Span } from '../../conversation/conversation.ts';
import { applySplices, isRecord, jsonBytes, scanArray } from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import { type PrivateTools, privateToolsOf } from '../../conversation/turns.ts';

const decoder = new TextDecoder();

export function readResponse(body: Uint8Array, privateTools: PrivateTools): ModelReply {
  const response = parseResponse(body);
  const candidate = firstCandidate(response);
  const rawUsage = valueOf(response, 'usageMetadata');
  const blocked = stringOf(valueOf(response, 'promptFeedback'), 'blockReason');
  // A prompt that was blocked, and a candidate that was cut off before its first word, have no content.
  const turn = (candidate && candidateContent(body)) ?? emptyTurn;
  if (!candidate && blocked === undefined)
    throw new LeporelloError(
      'bad-response',
      "The upstream response has no 'candidates' and no block reason.",
    );
  return replyFrom({ turn, finish: stringOf(candidate, 'finishReason') ?? blocked, rawUsage, privateTools });
}

const emptyTurn = jsonBytes({ role: 'model', parts: [] });

/** Makes a reply from a model's content; streams rebuild the same content. */
export function replyFrom(content: {
  readonly turn: Uint8Array;
  readonly finish: string | undefined;
  readonly rawUsage: unknown;
  readonly privateTools: PrivateTools;
}): ModelReply {
  const parts = partsOf(content.turn);
  const calls = parts.flatMap((part) => (callIn(part.value) ? [part] : [])).map(callFrom);
  const isRecall = (call: ToolCall) => content.privateTools.has(call.name);
  const said = parts.map(({ value }) => saidIn(value));
  return {
    text: said.map((piece) => (piece && !piece.isThought ? piece.text : '')).join(''),
    recalls: calls.filter(isRecall),
    calls: calls.filter((call) => !isRecall(call)),
    usage: usageFrom(content.rawUsage),
    rawUsage: content.rawUsage,
    finish: content.finish,
    turn: content.turn,
  };
}

/** This format says STOP for calls too; with any other reason the reply was cut off or refused. */
export function isComplete(reply: ModelReply): boolean {
  return reply.finish === 'STOP';
}

export function isTruncated(reply: ModelReply): boolean {
  return reply.finish === 'MAX_TOKENS';
}

export function writeResponse(
  body: Uint8Array,
  earlier: readonly ModelReply[],
  reply: ModelReply,
): Uint8Array {
  const rounds = [...earlier, reply];
  if (rounds.every((round) => round.recalls.length === 0)) return body;
  const content = candidateContent(body) ?? emptyTurn;
  const visible = rounds.flatMap(visibleParts).map(({ bytes }) => bytes);
  const parts = jsonList(visible.length > 0 ? visible : [emptyText]);
  const usage = rounds.map((round) => round.rawUsage).reduce(addUsage);
  const changed = changeCandidate(body, (candidate) =>
    withMembers(candidate, { content: withMembers(content, { parts }) }),
  );
  return usage === undefined ? changed : withMembers(changed, { usageMetadata: jsonBytes(usage) });
}

/** An empty part, as the provider itself ends its streams, for a reply with nothing left to say. */
export const emptyText = jsonBytes({ text: '' });

/** Changes the first candidate of a response; all other bytes stay. */
export function changeCandidate(body: Uint8Array, change: (candidate: Uint8Array) => Uint8Array): Uint8Array {
  const found = candidateIn(body);
  if (!found) return body;
  const { candidates, span } = found;
  const bytes = change(candidates.subarray(span.start, span.end));
  return withMembers(body, { candidates: applySplices(candidates, [{ span, bytes }]) });
}

/** Returns the list of candidates, and the span of the first one in it. */
function candidateIn(body: Uint8Array): { readonly candidates: Uint8Array; readonly span: Span } | undefined {
  const candidates = memberBytes(body, 'candidates');
  if (candidates?.[0] !== OPEN_BRACKET) return undefined;
  const [span] = scanArray(candidates, 0).elements;
  return span && candidates[span.start] === OPEN_BRACE ? { candidates, span } : undefined;
}

const OPEN_BRACKET = '['.charCodeAt(0);
const OPEN_BRACE = '{'.charCodeAt(0);

/** Returns the first candidate of a parsed response. */
export function firstCandidate(response: unknown): Readonly<Record<string, unknown>> | undefined {
  const candidates = valueOf(response, 'candidates');
  const first: unknown = Array.isArray(candidates) ? candidates[0] : undefined;
  return isRecord(first) ? first : undefined;
}

/** Returns the content of the first candidate as bytes, when it is an object. */
export function candidateContent(body: Uint8Array): Uint8Array | undefined {
  const found = candidateIn(body);
  const content =
    found && memberBytes(found.candidates.subarray(found.span.start, found.span.end), 'content');
  return content?.[0] === OPEN_BRACE ? content : undefined;
}

/**
 * Reads the usage. `promptTokenCount` includes cached tokens. Tokens of the provider's own tools (`toolUsePromptTokenCount`) and of thinking are
 * reported separately: they are paid for, but were not in the prompt that was sent.
 */
export function usageFrom(raw: unknown): Usage | undefined {
  if (!isRecord(raw)) return undefined;
  const sentPrompt = tokensAt(raw, 'promptTokenCount');
  const ofTools = tokensAt(raw, 'toolUsePromptTokenCount');
  return {
    input: sentPrompt + ofTools,
    cacheRead: tokensAt(raw, 'cachedContentTokenCount'),
    cacheWrite: 0,
    output: tokensAt(raw, 'candidatesTokenCount') + tokensAt(raw, 'thoughtsTokenCount'),
    ...(ofTools > 0 ? { sentPrompt } : {}),
  };
}

const statuses: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  504: 'DEADLINE_EXCEEDED',
};

/** Spells an error in Google's shape. https://cloud.google.com/apis/design/errors */
export function errorBody({ status: code, message }: GatewayProblem): Uint8Array {
  const status = statuses[code] ?? (code < 500 ? 'INVALID_ARGUMENT' : 'UNAVAILABLE');
  return jsonBytes({ error: { code, message, status } });
}

const overflowWordings: readonly OverflowWording[] = [
  // "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
  /input token count (?:\((?<prompt>[\d,]+)\) )?.{0,40}exceeds the maximum number of tokens(?: allowed \(?(?<limit>[\d,]+))?/i,
  // Vertex: "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576."
  /input token count is (?<prompt>[\d,]+) but (?:the )?model only supports(?: up to (?<limit>[\d,]+))?/i,
  // "Request payload size exceeds the limit: 20971520 bytes."
  { unit: 'bytes', says: /request payload size exceeds the limit/i },
];

export function overflowIn(status: number, body: string): Overflow | undefined {
  return readOverflow(status, body, overflowWordings);
}

/** False always: calls are signed here, and a call without its signature is refused. */
export function refusesReasoning(): boolean {
  return false;
}

function visibleParts(reply: ModelReply): readonly JsonElement[] {
  const hide = hideRecalls(privateToolsOf(reply.recalls.map(({ name }) => name)));
  return partsOf(reply.turn).flatMap((part) => (reply.hidesText && isText(part) ? [] : (hide(part) ?? [])));
}

/** True for a part with words for the client. */
export function isText({ value }: JsonElement): boolean {
  return saidIn(value)?.isThought === false;
}

/** Calls without an id get one from their position, which is never written. */
function callFrom({ bytes, value }: JsonElement, index: number): ToolCall {
  const { id, name } = callIn(value)!;
  const call = memberBytes(bytes, 'functionCall') ?? memberBytes(bytes, 'function_call');
  // The arguments as the model spelled them: JavaScript cannot hold all of its numbers.
  const args = call && memberBytes(call, 'args');
  return { id: id ?? `#${index}`, name, argumentsJson: args ? decoder.decode(args) : '{}' };
}

// The parts of a model's content, as bytes and values

/** Returns the parts of a content object; none when it has no list of them. */
export function partsOf(content: Uint8Array): readonly JsonElement[] {
  const list = memberBytes(content, 'parts');
  return list ? elementsOf(list) : [];
}

/** Returns the call in a part; undefined without one. Its id is optional. */
export function callIn(
  part: unknown,
): { readonly name: string; readonly id: string | undefined } | undefined {
  const call = valueOf(part, 'functionCall');
  if (!isRecord(call)) return undefined;
  const id = stringOf(call, 'id');
  return { name: stringOf(call, 'name') ?? '', id: id === '' ? undefined : id };
}

/** Returns the text or thought of a part; undefined for other parts. */
export function saidIn(part: unknown): { readonly text: string; readonly isThought: boolean } | undefined {
  const text = stringOf(part, 'text');
  return text === undefined ? undefined : { text, isThought: valueOf(part, 'thought') === true };
}

/**
 * Creates a filter that leaves out private calls, part by part as they arrive. Only the first of parallel calls has a signature,
 * and without one the provider refuses the turn when the client sends it back: if the first is private, the client's first call
 * takes over its signature.
 */
export function hideRecalls(privateTools: PrivateTools): (part: JsonElement) => JsonElement | undefined {
  let signature: string | undefined;
  let isFirst = true;
  return (part) => {
    const call = callIn(part.value);
    if (!call) return part;
    const own = stringOf(part.value, 'thoughtSignature');
    if (privateTools.has(call.name)) {
      if (isFirst) signature ??= own;
      return undefined;
    }
    const inherits = isFirst && own === undefined && signature !== undefined;
    isFirst = false;
    return inherits
      ? { ...part, bytes: withMembers(part.bytes, { thoughtSignature: jsonBytes(signature) }) }
      : part;
  };
}
