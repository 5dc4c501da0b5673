/** A language model of the AI SDK that answers from a script, plain and streamed, and keeps what it was asked. */
import type { LanguageModelMiddleware } from 'ai';

type WrapGenerate = NonNullable<LanguageModelMiddleware['wrapGenerate']>;
export type Params = Parameters<WrapGenerate>[0]['params'];
export type SdkModel = Parameters<WrapGenerate>[0]['model'];
type Generated = Awaited<ReturnType<WrapGenerate>>;
type Content = Generated['content'];

const usage: Generated['usage'] = {
  inputTokens: { total: 100, noCache: 90, cacheRead: 10, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** A text of a prompt or a reply. */
export const text = (words: string) => ({ type: 'text', text: words }) as const;

/** A call in a reply: its input is JSON text. */
export const call = (toolName: string, input: object, id: string) =>
  ({ type: 'tool-call', toolCallId: id, toolName, input: JSON.stringify(input) }) as const;

/** Creates a model. `reply` gets the request and the number of requests before it. `deltasOf` divides a streamed text. */
export function scriptedModel(
  reply: (params: Params, index: number) => Content,
  deltasOf: (words: string) => readonly string[] = (words) => [words],
): SdkModel & { readonly asked: readonly Params[] } {
  const asked: Params[] = [];
  const generate = (params: Params): Generated => {
    asked.push(params);
    const content = reply(params, asked.length - 1);
    const isCalling = content.some(({ type }) => type === 'tool-call');
    return {
      content,
      usage,
      warnings: [],
      finishReason: { unified: isCalling ? 'tool-calls' : 'stop', raw: 'raw' },
    };
  };
  return {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'gpt-4o',
    supportedUrls: {},
    asked,
    doGenerate: async (params) => generate(params),
    async doStream(params) {
      const { content, finishReason } = generate(params);
      return {
        stream: new ReadableStream({
          start(controller) {
            controller.enqueue({ type: 'stream-start', warnings: [] });
            content.forEach((part, at) => {
              const id = String(at);
              if (part.type === 'text' || part.type === 'reasoning') {
                controller.enqueue({ type: `${part.type}-start`, id });
                for (const delta of deltasOf(part.text))
                  controller.enqueue({ type: `${part.type}-delta`, id, delta });
                controller.enqueue({ type: `${part.type}-end`, id });
              } else if (part.type === 'tool-call') {
                controller.enqueue({
                  type: 'tool-input-start',
                  id: part.toolCallId,
                  toolName: part.toolName,
                });
                controller.enqueue({ type: 'tool-input-delta', id: part.toolCallId, delta: part.input });
                controller.enqueue({ type: 'tool-input-end', id: part.toolCallId });
                controller.enqueue(part);
              } else if (part.type !== 'source' && part.type !== 'file') controller.enqueue(part);
            });
            controller.enqueue({ type: 'finish', usage, finishReason });
            controller.close();
          },
        }),
      };
    },
  };
}
