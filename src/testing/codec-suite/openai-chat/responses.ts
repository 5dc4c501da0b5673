/** Responses of Chat Completions for the codec suite: written in the provider's shape, and read as a strict client would. */
import type { ToolCall, Usage } from '../../../codecs/codec.ts';
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must, sseEvents, sseText } from '../sse.ts';
import { bytes } from './bodies.ts';

const finishes = { stop: 'stop', calls: 'tool_calls', length: 'length' } as const;

type Call = { id: string; type: string; function: { name: string; arguments: string } };

export function response(turn: ScriptedTurn): Uint8Array {
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
    usage: usageOf(turn.usage),
    service_tier: 'default',
    system_fingerprint: 'fp_1',
  });
}

function callOf(part: ScriptedPart & { type: 'call' }): Call {
  return { id: part.id, type: 'function', function: { name: part.name, arguments: part.pieces.join('') } };
}

function usageOf(usage: Usage) {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

export function stream(turn: ScriptedTurn, number: number): string {
  const chunk = (choices: readonly unknown[], usage: unknown = null) =>
    sseText({
      id: `chatcmpl-${number}`,
      object: 'chat.completion.chunk',
      created: 1_790_000_000 + number,
      model: 'chat-large-2026',
      system_fingerprint: 'fp_1',
      choices,
      usage,
    });
  const say = (delta: unknown, finish: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason: finish }]);
  let index = 0;
  const spoken = turn.parts.flatMap((part) => deltasOf(part, part.type === 'call' ? index++ : 0));
  // A message that begins with a call brings its role with that.
  const begin = { role: 'assistant', content: turn.parts[0]?.type === 'call' ? null : '', refusal: null };
  const [first, ...rest] = turn.parts[0]?.type === 'call' ? spoken : [{}, ...spoken];
  return [
    say({ ...begin, ...(first as object) }),
    ...rest.map((delta) => say(delta)),
    say({}, finishes[turn.finish]),
    chunk([], usageOf(turn.usage)),
    sseText('[DONE]'),
  ].join('');
}

function deltasOf(part: ScriptedPart, index: number): readonly unknown[] {
  switch (part.type) {
    case 'text':
      return part.pieces.map((content) => ({ content }));
    case 'reasoning':
      return part.pieces.map((reasoning_content) => ({ reasoning_content }));
    case 'call':
      return [
        {
          tool_calls: [
            { index, id: part.id, type: 'function', function: { name: part.name, arguments: '' } },
          ],
        },
        ...part.pieces.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ];
  }
}

export const streamError = sseText({
  error: { message: 'The server had an error.', type: 'server_error', param: null, code: null },
});

type Json = Readonly<Record<string, unknown>>;
type Message = {
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

export function client(sse: string): ClientView {
  let text = '';
  let reasoning = '';
  const calls: Call[] = [];
  let role: string | undefined;
  let finish: string | undefined;
  let usage: Usage | undefined;
  let id: unknown;
  let isDone = false;
  for (const { event, data } of sseEvents(sse)) {
    must(event === undefined, 'a chunk has an event name');
    must(!isDone, 'something follows [DONE]');
    if (data === '[DONE]') {
      isDone = true;
      continue;
    }
    const chunk = JSON.parse(data) as Json & {
      readonly choices: readonly (Json & { readonly delta: Message })[];
    };
    const error = chunk['error'] as { readonly message: string } | undefined;
    if (error)
      return { text, reasoning, calls: calls.map(toCall), finish: undefined, usage, error: error.message };
    id ??= chunk['id'];
    must(chunk['id'] === id, 'the id changes');
    if (chunk['usage']) {
      must(usage === undefined && finish !== undefined, 'usage comes twice or too early');
      usage = toUsage(chunk['usage'] as Json);
    }
    must(chunk.choices.length <= 1, 'a chunk has several choices');
    const [choice] = chunk.choices;
    if (!choice) continue;
    const { delta } = choice;
    must(finish === undefined, 'something is said behind the finish');
    must((delta.role === undefined) !== (role === undefined), 'the role does not come once, first');
    role ??= delta.role;
    text += delta.content ?? '';
    reasoning += delta.reasoning_content ?? '';
    for (const fragment of delta.tool_calls ?? []) addFragment(calls, fragment);
    finish = (choice['finish_reason'] as string | null) ?? undefined;
  }
  must(isDone && finish !== undefined, 'the stream does not end');
  return {
    text,
    reasoning,
    calls: calls.map(toCall),
    finish: finishOf(finish, calls.length),
    usage,
    error: undefined,
  };
}

function addFragment(calls: Call[], fragment: Call & { readonly index: number }): void {
  const { index, id, type } = fragment;
  must(index <= calls.length, 'a call index leaves a gap');
  if (index === calls.length) {
    must(id !== undefined && type === 'function', 'a call begins without id or type');
    calls.push({ id, type, function: { ...fragment.function } });
    return;
  }
  must(id === undefined && fragment.function.name === undefined, 'a call begins twice');
  calls[index]!.function.arguments += fragment.function.arguments;
}

export function heard(sse: string, except: string): readonly string[] {
  const hidden = new Set<number>();
  return sseEvents(sse).flatMap(({ data }) => {
    if (data === '[DONE]') return [];
    const { choices } = JSON.parse(data) as { readonly choices?: readonly { readonly delta: Message }[] };
    const delta = choices?.[0]?.delta;
    const calls = (delta?.tool_calls ?? []).filter(({ index, function: called }) => {
      if (called.name === except) hidden.add(index);
      return !hidden.has(index);
    });
    const said = [
      delta?.content,
      delta?.reasoning_content,
      ...calls.flatMap((call) => [call.id, call.function.name, call.function.arguments]),
    ];
    return said.filter((piece) => typeof piece === 'string' && piece !== '') as string[];
  });
}

function finishOf(finish: string, calls: number): ScriptedTurn['finish'] {
  must(finish !== 'tool_calls' || calls > 0, 'the client is told to run calls that are not there');
  if (finish === 'tool_calls') return 'calls';
  must(finish === 'stop' || finish === 'length', `unknown finish ${finish}`);
  return finish;
}

function toCall(call: Call): ToolCall {
  return { id: call.id, name: call.function.name, argumentsJson: call.function.arguments };
}

function toUsage(raw: Json): Usage {
  const { prompt_tokens, completion_tokens, total_tokens } = raw as Readonly<Record<string, number>>;
  must(total_tokens === prompt_tokens! + completion_tokens!, 'the total is not the sum');
  const { cached_tokens } = raw['prompt_tokens_details'] as { readonly cached_tokens: number };
  return { input: prompt_tokens!, cacheRead: cached_tokens, cacheWrite: 0, output: completion_tokens! };
}
