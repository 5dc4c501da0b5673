/** Streams of Chat Completions for the codec suite: written in the provider's shape, and read as a strict client would. */
import type { Usage } from '../../../../src/conversation/conversation.ts';
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must, sseEvents, sseText } from '../sse.ts';
import {
  type Call,
  finishes,
  finishOf,
  type Json,
  type Message,
  toCall,
  toUsage,
  usageOf,
} from './responses.ts';

export function stream(turn: ScriptedTurn, number: number): string {
  return streamSaying(turn, number, () => null, usageOf(turn.usage));
}

/**
 * Returns the chunks with running usage by their number, and all of the usage after the last one; without usage where it is
 * undefined.
 */
export function streamSaying(
  turn: ScriptedTurn,
  number: number,
  running: (chunk: number) => unknown,
  whole: unknown,
): string {
  let chunks = 0;
  const chunk = (choices: readonly unknown[], usage: unknown = running(chunks++)) =>
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
  // A message that begins with a call sends its role with it.
  const begin = { role: 'assistant', content: turn.parts[0]?.type === 'call' ? null : '', refusal: null };
  const [first, ...rest] = turn.parts[0]?.type === 'call' ? spoken : [{}, ...spoken];
  return [
    say({ ...begin, ...(first as object) }),
    ...rest.map((delta) => say(delta)),
    say({}, finishes[turn.finish]),
    ...(whole === undefined ? [] : [chunk([], whole)]),
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
    must(finish === undefined, 'something is said after the finish');
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
