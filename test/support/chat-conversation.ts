/** Makes small conversations for tests from a few words, and reads them with a real codec. */
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { ReadContext } from '../../src/codecs/codec.ts';
import type { Conversation } from '../../src/conversation/conversation.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';

/** One step of a conversation. `calls` with results make an assistant message and the tool messages that answer it. */
export type Step =
  | { readonly system: string }
  | { readonly user: string }
  | { readonly assistant: string }
  | {
      readonly calls: readonly { readonly name: string; readonly input?: string; readonly result?: string }[];
      readonly text?: string;
    };

/** Returns the steps as Chat Completions messages. Call ids are numbered through the conversation. */
export function chatMessages(steps: readonly Step[]): readonly Readonly<Record<string, unknown>>[] {
  let id = 0;
  return steps.flatMap((step): Readonly<Record<string, unknown>>[] => {
    if ('system' in step) return [{ role: 'system', content: step.system }];
    if ('user' in step) return [{ role: 'user', content: step.user }];
    if ('assistant' in step) return [{ role: 'assistant', content: step.assistant }];
    const calls = step.calls.map((call) => ({ ...call, id: `call_${++id}` }));
    return [
      {
        role: 'assistant',
        content: step.text ?? null,
        tool_calls: calls.map((call) => ({
          id: call.id,
          type: 'function',
          function: { name: call.name, arguments: call.input ?? '{}' },
        })),
      },
      ...calls.flatMap((call) =>
        call.result === undefined ? [] : [{ role: 'tool', tool_call_id: call.id, content: call.result }],
      ),
    ];
  });
}

/** Returns a complete request body. `tools` are names. */
export function chatBody(
  steps: readonly Step[],
  options: { readonly tools?: readonly string[]; readonly model?: string; readonly stream?: boolean } = {},
): Uint8Array {
  const tools = options.tools?.map((name) => ({
    type: 'function',
    function: { name, parameters: { type: 'object' } },
  }));
  const body = {
    model: options.model ?? 'test-model',
    ...(options.stream ? { stream: true } : {}),
    messages: chatMessages(steps),
    ...(tools ? { tools } : {}),
  };
  return new TextEncoder().encode(JSON.stringify(body));
}

/** Returns a context that remembers nothing of other tests. */
export function freshReading(): ReadContext {
  return { digest: sha256, blocks: new Map() };
}

export function readChat(body: Uint8Array): Conversation {
  return openaiChat.read(body, freshReading());
}

/** Returns a user message and this many calls of `run`, each with a result of about 1,000 tokens. */
export function jobSteps(turns: number): readonly Step[] {
  const log = (at: number) =>
    Array.from({ length: 100 }, (_, line) => `job ${at}: step ${line} took ${line * 7} ms\n`).join('');
  return [
    { user: 'Run all jobs.' },
    ...Array.from({ length: turns }, (_, at) => ({
      calls: [{ name: 'run', input: `{"n":${at}}`, result: log(at) }],
    })),
  ];
}
