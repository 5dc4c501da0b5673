/** Complete responses of Gemini generateContent for the codec suite: written in the provider's shape, read as a strict client would. */
import type { ToolCall } from '../../../../src/codecs/codec.ts';
import type { Usage } from '../../../../src/conversation/conversation.ts';
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must } from '../sse.ts';

/** Calls have no finish reason of their own. */
export const finishes = { stop: 'STOP', calls: 'STOP', length: 'MAX_TOKENS' } as const;

export type Json = Readonly<Record<string, unknown>>;
export type GeminiPart = {
  readonly text?: string;
  readonly thought?: boolean;
  readonly functionCall?: { readonly id: string; readonly name: string; readonly args: Json };
};
export type Reply = {
  readonly candidates: readonly {
    readonly content: { readonly role: string; readonly parts: readonly GeminiPart[] };
    readonly finishReason?: string;
    readonly index: number;
  }[];
  readonly usageMetadata: Json;
  readonly responseId: string;
};

export function response(turn: ScriptedTurn): Uint8Array {
  return responseSaying(turn, usageOf(turn.usage));
}

export function responseSaying(turn: ScriptedTurn, usage: unknown): Uint8Array {
  const parts = turn.parts.map((part) => partText(part, part.pieces.join('')));
  return new TextEncoder().encode(replyText(parts, usage, 1, finishes[turn.finish]));
}

/** One response or chunk as JSON text. */
export function replyText(
  parts: readonly string[],
  usageMetadata: unknown,
  number: number,
  finish: string | undefined,
): string {
  const end = finish === undefined ? '' : `,"finishReason":"${finish}"`;
  const content = `{"parts":[${parts.join(',')}],"role":"model"}`;
  const usage = usageMetadata === undefined ? '' : `"usageMetadata":${JSON.stringify(usageMetadata)},`;
  return `{"candidates":[{"content":${content}${end},"index":0}],${usage}"modelVersion":"gemini-2.5-pro","responseId":"r${number}"}`;
}

export function usageOf(usage: Usage) {
  const thoughts = Math.floor(usage.output / 3);
  return {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output - thoughts,
    totalTokenCount: usage.input + usage.output,
    cachedContentTokenCount: usage.cacheRead,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
    thoughtsTokenCount: thoughts,
  };
}

/** Returns the part as JSON text. This format never gives half a call; a call that was cut off is whole under a key of ours. */
export function partText(part: ScriptedPart, said: string): string {
  switch (part.type) {
    case 'text':
      return JSON.stringify({ text: said });
    case 'reasoning':
      return JSON.stringify({ text: said, thought: true });
    case 'call': {
      const head = JSON.stringify({ id: part.id, name: part.name });
      return `{"functionCall":${head.slice(0, -1)},"args":${isJson(said) ? said : JSON.stringify({ [cutOff]: said })}}}`;
    }
  }
}

const cutOff = 'what was cut off';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export function clientResponse(body: Uint8Array): ClientView {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  const reply = JSON.parse(text) as Reply;
  const [candidate] = reply.candidates;
  must(candidate !== undefined && candidate.content.role === 'model', 'it is no content of the model');
  must(candidate.content.parts.length > 0 || text.includes('"parts":[]'), 'it has no parts');
  return {
    ...saidIn(candidate.content.parts),
    ...endOf(callsIn(text, candidate.content.parts), candidate.finishReason),
    usage: toUsage(reply.usageMetadata),
    error: undefined,
  };
}

/** Returns arguments as spelled in the text, because parsing would not keep their spelling. */
export function callsIn(text: string, parts: readonly GeminiPart[]): readonly ToolCall[] {
  const args = [...text.matchAll(/"args":(\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})/gs)].map((match) => match[1]!);
  let next = 0;
  return parts.flatMap(({ functionCall }) => {
    if (!functionCall) return [];
    const cut = functionCall.args[cutOff];
    const spelled = args[next++]!;
    return [
      {
        id: functionCall.id,
        name: functionCall.name,
        argumentsJson: typeof cut === 'string' ? cut : spelled,
      },
    ];
  });
}

export function endOf(calls: readonly ToolCall[], reason: string | undefined) {
  must(reason === 'STOP' || reason === 'MAX_TOKENS', `unknown finish ${String(reason)}`);
  const stopped = calls.length > 0 ? 'calls' : 'stop';
  return { calls, finish: reason === 'STOP' ? stopped : 'length' } as const;
}

export function saidIn(parts: readonly GeminiPart[]): { readonly text: string; readonly reasoning: string } {
  const said = (isThought: boolean) =>
    parts.map(({ text, thought }) => ((thought === true) === isThought ? (text ?? '') : '')).join('');
  return { text: said(false), reasoning: said(true) };
}

export function toUsage(raw: Json): Usage {
  const numbers = raw as Readonly<Record<string, number>>;
  const count = (key: string) => numbers[`${key}TokenCount`] ?? 0;
  const input = count('prompt') + count('toolUsePrompt');
  const output = count('candidates') + count('thoughts');
  must(numbers['totalTokenCount'] === input + output, 'the total is not the sum');
  return { input, cacheRead: count('cachedContent'), cacheWrite: 0, output };
}
