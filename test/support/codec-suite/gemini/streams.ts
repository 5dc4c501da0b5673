/** Streams of Gemini generateContent (`alt=sse`) for the codec suite: written in the provider's shape, read as a strict client would. */
import type { ToolCall } from '../../../../src/codecs/codec.ts';
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must, sseEvents, sseText } from '../sse.ts';
import {
  callsIn,
  endOf,
  finishes,
  type GeminiPart,
  type Json,
  partText,
  type Reply,
  replyText,
  saidIn,
  toUsage,
  usageOf,
} from './responses.ts';

export function stream(turn: ScriptedTurn, number: number): string {
  // Running totals: only the last chunk counts everything.
  return streamSaying(turn, number, (at, isLast) => {
    const output = isLast ? turn.usage.output : Math.min(at, turn.usage.output);
    return usageOf({ ...turn.usage, output });
  });
}

/** Returns the chunks with usage by their number. */
export function streamSaying(
  turn: ScriptedTurn,
  number: number,
  usage: (chunk: number, isLast: boolean) => unknown,
): string {
  const pieces = turn.parts.flatMap(piecesOf);
  // A call often comes with the end; after text the provider sends one more chunk.
  if (turn.parts.at(-1)?.type !== 'call') pieces.push('{"text":""}');
  return pieces
    .map((piece, at) => {
      const isLast = at === pieces.length - 1;
      const finish = isLast ? finishes[turn.finish] : undefined;
      return sseText(replyText([piece], usage(at, isLast), number, finish));
    })
    .join('');
}

/** Calls come whole. */
function piecesOf(part: ScriptedPart): readonly string[] {
  return part.type === 'call'
    ? [partText(part, part.pieces.join(''))]
    : part.pieces.map((piece) => partText(part, piece));
}

export const streamError = sseText({
  error: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' },
});

type Chunk = Partial<Reply> & { readonly error?: { readonly code: number; readonly message: string } };

export function client(sse: string): ClientView {
  const parts: GeminiPart[] = [];
  const calls: ToolCall[] = [];
  let [id, finish]: (string | undefined)[] = [];
  let usage: Json | undefined;
  for (const { event, data } of sseEvents(sse)) {
    must(event === undefined, 'no event of this format has a name');
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error)
      return { ...saidIn(parts), calls: [], finish: undefined, usage: undefined, error: chunk.error.message };
    must(finish === undefined, 'something follows the end');
    const [candidate] = chunk.candidates ?? [];
    must(candidate?.content.role === 'model' && candidate.index === 0, 'a chunk has no content of the model');
    must(candidate.content.parts.length > 0, 'a chunk says nothing');
    must(id === undefined || id === chunk.responseId, 'the id changes');
    id = chunk.responseId;
    usage = chunk.usageMetadata;
    parts.push(...candidate.content.parts);
    calls.push(...callsIn(data, candidate.content.parts));
    finish = candidate.finishReason;
  }
  must(usage !== undefined, 'there is no usage');
  return { ...saidIn(parts), ...endOf(calls, finish), usage: toUsage(usage), error: undefined };
}

export function heard(sse: string, except: string): readonly string[] {
  return sseEvents(sse).flatMap(({ data }) => {
    const chunk = parseChunk(data);
    const parts = chunk?.candidates?.[0]?.content.parts ?? [];
    return parts
      .flatMap(({ text, functionCall }) => {
        if (!functionCall) return [text ?? ''];
        const { id, name, args } = functionCall;
        return name === except ? [] : [id, name, JSON.stringify(args)];
      })
      .filter((piece) => piece !== '');
  });
}

function parseChunk(data: string): Chunk | undefined {
  try {
    return JSON.parse(data) as Chunk;
  } catch {
    return undefined;
  }
}
