/** Complete responses of Chat Completions for the codec suite: written in the provider's shape, and read as a strict client would. */
import type { ToolCall } from '../../../../src/codecs/codec.ts';
import type { Usage } from '../../../../src/conversation/conversation.ts';
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must } from '../sse.ts';
import { bytes } from './bodies.ts';

export const finishes = { stop: 'stop', calls: 'tool_calls', length: 'length' } as const;

export type Call = { id: string; type: string; function: { name: string; arguments: string } };

export function response(turn: ScriptedTurn): Uint8Array {
  return responseSaying(turn, usageOf(turn.usage));
}

export function responseSaying(turn: ScriptedTurn, usage: unknown): Uint8Array {
  const joined = (type: 'text' | 'reasoning') =>
    turn.parts.map((part) => (part.type === type ? part.pieces.join('') : '')).join('');
  const calls = turn.parts.flatMap((part) => (part.type === 'call' ? [callOf(part)] : []));
  const reasoning = joined('reasoning');
  return bytes({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_790_000_000,
    model: 'chat-large-2026',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: joined('text') || null,
          ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
          refusal: null,
          annotations: [],
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
        },
        logprobs: null,
        finish_reason: finishes[turn.finish],
      },
    ],
    usage,
    service_tier: 'default',
    system_fingerprint: 'fp_1',
  });
}

function callOf(part: ScriptedPart & { type: 'call' }): Call {
  return { id: part.id, type: 'function', function: { name: part.name, arguments: part.pieces.join('') } };
}

export function usageOf(usage: Usage) {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

export type Json = Readonly<Record<string, unknown>>;
export type Message = {
  readonly role?: string;
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly (Call & { readonly index: number })[];
};
type Choice = { readonly index: number; readonly message: Message; readonly finish_reason: string };

export function clientResponse(body: Uint8Array): ClientView {
  const completion = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as {
    readonly choices: readonly Choice[];
    readonly usage: Json;
  };
  must(completion.choices.length === 1, 'there is not one choice');
  const { message, finish_reason, index } = completion.choices[0]!;
  must(index === 0 && message.role === 'assistant', 'the choice is not the first reply of the assistant');
  must(message.tool_calls === undefined || message.tool_calls.length > 0, 'tool_calls is empty');
  return {
    text: message.content ?? '',
    reasoning: message.reasoning_content ?? '',
    calls: (message.tool_calls ?? []).map(toCall),
    finish: finishOf(finish_reason, message.tool_calls?.length ?? 0),
    usage: toUsage(completion.usage),
    error: undefined,
  };
}

export function finishOf(finish: string, calls: number): ScriptedTurn['finish'] {
  must(finish !== 'tool_calls' || calls > 0, 'the client is told to run calls that are not there');
  if (finish === 'tool_calls') return 'calls';
  must(finish === 'stop' || finish === 'length', `unknown finish ${finish}`);
  return finish;
}

export function toCall(call: Call): ToolCall {
  return { id: call.id, name: call.function.name, argumentsJson: call.function.arguments };
}

export function toUsage(raw: Json): Usage {
  const { prompt_tokens, completion_tokens, total_tokens } = raw as Readonly<Record<string, number>>;
  must(total_tokens === prompt_tokens! + completion_tokens!, 'the total is not the sum');
  const { cached_tokens } = raw['prompt_tokens_details'] as { readonly cached_tokens: number };
  return { input: prompt_tokens!, cacheRead: cached_tokens, cacheWrite: 0, output: completion_tokens! };
}
