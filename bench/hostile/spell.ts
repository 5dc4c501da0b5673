/** Builds the hostile bodies in the four wire formats. */
import type { Codec } from '../../src/codecs/codec.ts';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { gemini } from '../../src/codecs/gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';

export type FormatName = 'messages' | 'chat' | 'responses' | 'gemini';

export const codecs: Readonly<Record<FormatName, Codec>> = {
  messages: anthropicMessages,
  chat: openaiChat,
  responses: openaiResponses,
  gemini,
};

/** A step of a conversation, independent of the format. */
export type Step =
  | { readonly by: 'user' | 'assistant'; readonly text: string }
  | { readonly calls: readonly Call[]; readonly results: readonly string[] };
type Call = { readonly id: string; readonly input: object };

/** Builders of request bodies by format. Each body has one tool. */
export const spell: Readonly<Record<FormatName, (steps: readonly Step[]) => object>> = {
  messages: (steps) => ({
    model: 'claude-sonnet-4-5',
    max_tokens: 1_000,
    tools: [{ name: 'read', input_schema: schema }],
    messages: steps.flatMap((step): readonly object[] =>
      'by' in step
        ? [{ role: step.by, content: step.text }]
        : [
            {
              role: 'assistant',
              content: step.calls.map(({ id, input }) => ({ type: 'tool_use', id, name: 'read', input })),
            },
            {
              role: 'user',
              content: step.results.map((content, at) => ({
                type: 'tool_result',
                tool_use_id: step.calls[at]!.id,
                content,
              })),
            },
          ],
    ),
  }),
  chat: (steps) => ({
    model: 'gpt-4o',
    tools: [{ type: 'function', function: { name: 'read', parameters: schema } }],
    messages: steps.flatMap((step): readonly object[] =>
      'by' in step
        ? [{ role: step.by, content: step.text }]
        : [
            {
              role: 'assistant',
              content: null,
              tool_calls: step.calls.map(({ id, input }) => ({
                id,
                type: 'function',
                function: { name: 'read', arguments: JSON.stringify(input) },
              })),
            },
            ...step.results.map((content, at) => ({
              role: 'tool',
              tool_call_id: step.calls[at]!.id,
              content,
            })),
          ],
    ),
  }),
  responses: (steps) => ({
    model: 'gpt-5',
    store: false,
    tools: [{ type: 'function', name: 'read', parameters: schema }],
    input: steps.flatMap((step): readonly object[] =>
      'by' in step
        ? [{ type: 'message', role: step.by, content: step.text }]
        : [
            ...step.calls.map(({ id, input }) => ({
              type: 'function_call',
              call_id: id,
              name: 'read',
              arguments: JSON.stringify(input),
            })),
            ...step.results.map((output, at) => ({
              type: 'function_call_output',
              call_id: step.calls[at]!.id,
              output,
            })),
          ],
    ),
  }),
  gemini: (steps) => ({
    tools: [{ functionDeclarations: [{ name: 'read', parameters: schema }] }],
    contents: steps.flatMap((step): readonly object[] =>
      'by' in step
        ? [{ role: step.by === 'user' ? 'user' : 'model', parts: [{ text: step.text }] }]
        : [
            {
              role: 'model',
              parts: step.calls.map(({ id, input }) => ({ functionCall: { id, name: 'read', args: input } })),
            },
            {
              role: 'user',
              parts: step.results.map((output, at) => ({
                functionResponse: { id: step.calls[at]!.id, name: 'read', response: { output } },
              })),
            },
          ],
    ),
  }),
};

export const schema = { type: 'object', properties: { path: { type: 'string' } } };
