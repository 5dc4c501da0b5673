/**
 * Tests that results that load tools are never folded. With tool search a model gets the definition of a deferred tool only from the result
 * that names it, so neither the result nor its call may be folded, in any format, by any trigger.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../src/codecs/codec.ts';
import { geminiFor } from '../src/codecs/gemini/index.ts';
import { openaiChat } from '../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../src/codecs/openai-responses/index.ts';
import type { Refusal } from '../src/engine/types.ts';
import { defaultStrategies } from '../src/strategies/default-strategies.ts';
import { testEngine } from './support/test-engine.ts';

type Json = Readonly<Record<string, unknown>>;

type Shape = {
  readonly codec: Codec;
  readonly body: (messages: readonly Json[]) => Json;
  readonly user: (text: string) => Json;
  /** Returns a step in which the model reads a file of about 250 tokens. */
  readonly step: (id: string, result: string) => readonly Json[];
  /** The ways to load tools in this format. */
  readonly loads: Readonly<Record<string, (id: string) => readonly Json[]>>;
};

const parameters = { type: 'object' };
const text = (length: number) => 'The deferred tool sends mail. '.repeat(length);
const definition = { name: 'send_mail', description: text(30), input_schema: parameters };

const claude = (messages: readonly Json[]): Json => ({
  model: 'claude-sonnet-4-5',
  max_tokens: 100,
  tools: [
    { name: 'read', input_schema: parameters },
    { ...definition, defer_loading: true },
  ],
  messages,
});

function chatPair(id: string, name: string, content: unknown): readonly Json[] {
  const call = { id, type: 'function', function: { name, arguments: '{"query":"mail"}' } };
  return [
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: id, content },
  ];
}

function claudePair(id: string, name: string, content: unknown): readonly Json[] {
  return [
    { role: 'assistant', content: [{ type: 'tool_use', id, name, input: { query: 'mail' } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] },
  ];
}

function geminiPair(id: string, name: string, output: string): readonly Json[] {
  return [
    { role: 'model', parts: [{ functionCall: { id, name, args: { query: 'mail' } } }] },
    { role: 'user', parts: [{ functionResponse: { id, name, response: { output } } }] },
  ];
}

function responsesPair(call_id: string, name: string, output: unknown): readonly Json[] {
  return [
    { type: 'function_call', call_id, name, arguments: '{"query":"mail"}' },
    { type: 'function_call_output', call_id, output },
  ];
}

const shapes: Readonly<Record<string, Shape>> = {
  messages: {
    codec: anthropicMessages,
    body: claude,
    user: (content) => ({ role: 'user', content }),
    step: (id, result) => claudePair(id, 'read', result),
    loads: {
      'by a client': (id) =>
        claudePair(id, 'ToolSearch', [{ type: 'tool_reference', tool_name: 'send_mail' }]),
      'by a client under any name': (id) =>
        claudePair(id, 'x', [
          { type: 'text', text: text(40) },
          { type: 'tool_reference', tool_name: 'send_mail' },
        ]),
      'by a client in words': (id) => claudePair(id, 'ToolSearch', JSON.stringify(definition)),
      'by the provider': (id) => [
        {
          role: 'assistant',
          content: [
            { type: 'server_tool_use', id, name: 'tool_search_tool_regex', input: { pattern: 'mail' } },
            {
              type: 'tool_search_tool_result',
              tool_use_id: id,
              content: {
                type: 'tool_search_tool_search_result',
                tool_references: [{ type: 'tool_reference', tool_name: 'send_mail' }],
              },
            },
            { type: 'text', text: 'I found it.' },
          ],
        },
      ],
    },
  },
  chat: {
    codec: openaiChat,
    body: (messages) => ({
      model: 'gpt-4o',
      tools: [{ type: 'function', function: { name: 'read', parameters } }],
      messages,
    }),
    user: (content) => ({ role: 'user', content }),
    step: (id, result) => chatPair(id, 'read', result),
    loads: {
      'by a client': (id) => chatPair(id, 'ToolSearch', JSON.stringify(definition)),
      'by a gateway of MCP servers': (id) => chatPair(id, 'mcp__hub__search_tools', text(60)),
      'by reference': (id) => chatPair(id, 'x', [{ type: 'tool_reference', tool_name: 'send_mail' }]),
    },
  },
  responses: {
    codec: openaiResponses,
    body: (input) => ({
      model: 'gpt-4o',
      store: false,
      tools: [{ type: 'function', name: 'read', parameters }, { type: 'tool_search' }],
      input,
    }),
    user: (content) => ({ role: 'user', content }),
    step: (id, result) => responsesPair(id, 'read', result),
    loads: {
      'by a client': (id) => [
        { type: 'tool_search_call', call_id: id, execution: 'client', arguments: { query: 'mail' } },
        {
          type: 'tool_search_output',
          call_id: id,
          execution: 'client',
          tools: [{ ...definition, type: 'function' }],
        },
      ],
      'in items': () => [
        { type: 'additional_tools', role: 'developer', tools: [{ ...definition, type: 'function' }] },
      ],
      'by an MCP server': (id) => [
        { type: 'mcp_list_tools', id: `mcpl_${id}`, server_label: 'hub', tools: [definition] },
      ],
      'by a function': (id) => responsesPair(id, 'tool_search', JSON.stringify(definition)),
    },
  },
  gemini: {
    codec: geminiFor({ model: 'gemini-2.5-pro', streaming: false }),
    body: (contents) => ({ tools: [{ functionDeclarations: [{ name: 'read' }] }], contents }),
    user: (said) => ({ role: 'user', parts: [{ text: said }] }),
    step: (id, result) => geminiPair(id, 'read', result),
    loads: { 'by a client': (id) => geminiPair(id, 'ToolSearch', JSON.stringify(definition)) },
  },
};

const cases = Object.entries(shapes).flatMap(([format, shape]) =>
  Object.entries(shape.loads).map(([way, load]) => ({ format, way, shape, load })),
);

const triggerOptions = { tokenBudget: { triggerTokens: 3_000, targetTokens: 1_500 } };
const strategies = defaultStrategies({ summaries: { kind: 'extractive' }, subgoals: { minActions: 0 } });
const result = (at: number) => `file ${at}\n${'a line of it\n'.repeat(60)}`;

async function sent({ codec, body }: Shape, messages: readonly Json[], engine: EngineOf, refusal?: Refusal) {
  const bytes = new TextEncoder().encode(JSON.stringify(body(messages)));
  const prepared = await engine.prepare({ codec, body: bytes, tenant: 't', ...(refusal && { refusal }) });
  return { prepared, text: new TextDecoder().decode(prepared.body) };
}

type EngineOf = ReturnType<typeof testEngine>['engine'];

/** Returns the pieces that the sent body must contain. A generateContent content may get a stub next to its parts. */
function spelled(messages: readonly Json[]): readonly string[] {
  const pieces = messages.flatMap((message) => (message['parts'] ?? [message]) as readonly unknown[]);
  return pieces.map((piece) => JSON.stringify(piece));
}

describe.each(cases)('tools loaded $way in $format', ({ shape, load }) => {
  const loaded = load('search_1');
  const messages = [
    shape.user('Do the task.'),
    ...shape.step('before', result(0)),
    ...loaded,
    ...Array.from({ length: 40 }, (_, at) => shape.step(`call_${at}`, result(at + 1))).flat(),
    shape.user('And now?'),
  ];

  it.each([
    ['the default strategies', {}],
    ['summaries and sub-goals', { strategies }],
  ])('stay after 40 steps with a budget of 3,000 tokens and %s', async (_, options) => {
    const { engine } = testEngine({ triggerOptions, ...options });
    const { prepared, text: body } = await sent(shape, messages, engine);
    expect(prepared.outcome.status).toBe('compacted');
    expect(prepared.report.tokensAfter!).toBeLessThan(prepared.report.tokensBefore! / 3);
    for (const one of spelled(loaded)) expect(body).toContain(one);
  });

  it('stay if the provider refuses the request as too long', async () => {
    const { engine } = testEngine();
    const refusal = {
      reason: 'too long',
      overflow: { unit: 'tokens', limit: 4_000, prompt: undefined },
    } as const;
    const { prepared, text: body } = await sent(shape, messages, engine, refusal);
    expect(prepared.outcome.status).toBe('compacted');
    for (const one of spelled(loaded)) expect(body).toContain(one);
  });
});

describe('a result that loads tools', () => {
  it('survives any fold byte for byte, at any position', async () => {
    const places = fc.array(fc.nat(20), { minLength: 1, maxLength: 4 });
    const scene = fc.record({
      case: fc.constantFrom(...cases),
      steps: fc.integer({ min: 1, max: 20 }),
      places,
      window: fc.constantFrom(1_000, 3_000, 8_000),
      extractive: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(scene, async ({ case: { shape, load }, steps, places: at, window, extractive }) => {
        const loaded = new Map(at.map((place, n) => [place % steps, load(`search_${n}`)]));
        const messages = [
          shape.user('Do the task.'),
          ...Array.from({ length: steps }, (_, n) => [
            ...(loaded.get(n) ?? []),
            ...shape.step(`call_${n}`, result(n)),
          ]).flat(),
        ];
        const { engine } = testEngine({ window, ...(extractive && { strategies }) });
        const { text: body } = await sent(shape, messages, engine);
        for (const one of spelled([...loaded.values()].flat())) expect(body).toContain(one);
      }),
      { numRuns: 150 },
    );
  });
});

describe('definitions of tools that are loaded on demand', () => {
  it('are counted once the model has them, not while they are deferred', async () => {
    const { engine } = testEngine();
    const tokensWith = async (tools: readonly object[]) => {
      const request = {
        model: 'claude-sonnet-5',
        max_tokens: 100,
        tools: [{ type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' }, ...tools],
        messages: [{ role: 'user', content: 'Hello' }],
      };
      const body = new TextEncoder().encode(JSON.stringify(request));
      const { report } = await engine.prepare({ codec: anthropicMessages, body, tenant: 't' });
      return report.tokensBefore!;
    };
    const many = Array.from({ length: 40 }, (_, at) => ({
      name: `tool_${at}`,
      description: 'Looks something up in a place that this sentence describes at some length. '.repeat(5),
      input_schema: { type: 'object', properties: { query: { type: 'string' } } },
    }));
    const none = await tokensWith([]);
    expect(await tokensWith(many.map((tool) => ({ ...tool, defer_loading: true })))).toBe(none);
    expect(await tokensWith(many)).toBeGreaterThan(none + 3_000);
  });
});
