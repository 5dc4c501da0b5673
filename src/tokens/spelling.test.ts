import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { gemini } from '../codecs/gemini/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { loadTokenCounter } from './load-counter.ts';
import { renderTool } from './spelling.ts';
import { counted, instructions, question, weather } from '../../test/support/counted-request.ts';

const asked = {
  messages: [
    { role: 'system', content: instructions },
    { role: 'user', content: question },
  ],
};

/** Definitions, and the prompt tokens that the API reported for them with two short messages: hmarr/openai-chat-tokens, gpt-3.5-turbo. */
const hello = { role: 'system', content: 'Hello' };
const measured: readonly (readonly [reported: number, functions: readonly object[]])[] = [
  [35, [{ name: 'do_stuff', parameters: { type: 'object', properties: {} } }]],
  [
    52,
    [
      {
        name: 'do_stuff',
        parameters: {
          type: 'object',
          properties: {
            foo: {
              anyOf: [
                {
                  type: 'object',
                  properties: { kind: { type: 'string', const: 'a' }, baz: { type: 'boolean' } },
                },
              ],
            },
          },
        },
      },
    ],
  ],
  [
    44,
    [
      {
        name: 'do_stuff',
        parameters: {
          type: 'object',
          properties: { foo: { anyOf: [{ type: 'string', const: 'a' }, { type: 'number' }] } },
        },
      },
    ],
  ],
];

describe('a prompt with tools', () => {
  it.each([
    ['gpt-4o', 101],
    ['gpt-4o-mini', 101],
    ['gpt-4', 105],
    ['gpt-3.5-turbo', 105],
  ])('of %s is counted as its provider reported it (openai-cookbook)', async (model, reported) => {
    const tools = [{ type: 'function', function: weather }];
    expect(Math.abs((await counted(openaiChat, model, { ...asked, tools })) - reported)).toBeLessThanOrEqual(
      4,
    );
  });

  it('is counted alike in both formats of one provider', async () => {
    const chat = await counted(openaiChat, 'gpt-4o', {
      messages: [{ role: 'user', content: question }],
      tools: [{ type: 'function', function: weather }],
    });
    const responses = await counted(openaiResponses, 'gpt-4o', {
      input: question,
      tools: [{ type: 'function', strict: true, ...weather }],
    });
    expect(responses).toBe(chat);
  });

  it.each(measured)('was reported as %d tokens', async (reported, functions) => {
    const tools = functions.map((one) => ({ type: 'function', function: one }));
    const messages = [hello, { role: 'user', content: 'Hi there' }];
    // The line end after the system message, which tools bring, is not counted.
    expect(await counted(openaiChat, 'gpt-3.5-turbo', { messages, tools })).toBe(reported - 1);
  });

  it('of a model with a system prompt for tools counts it once, however many tools there are', async () => {
    const { name, description, parameters } = weather;
    const tool = { name, description, input_schema: parameters };
    const messages = [{ role: 'user', content: question }];
    const tokensWith = (tools: readonly object[]) =>
      counted(anthropicMessages, 'claude-opus-4-1', { messages, tools });
    const [one, two, three] = [
      await tokensWith([tool]),
      await tokensWith([tool, tool]),
      await tokensWith([tool, tool, tool]),
    ];
    expect(three - two).toBe(two - one);
    const { location } = parameters.properties;
    const asDocumented = {
      ...tool,
      name: 'get_weather',
      input_schema: { type: 'object', properties: { location }, required: ['location'] },
    };
    const error = (await tokensWith([asDocumented])) / 403 - 1;
    expect(Math.abs(error)).toBeLessThan(0.12);
  });

  it('of functions that add and multiply is counted as documented', async () => {
    const number = { type: 'NUMBER' };
    const functionDeclarations = Object.entries({ add: '+', subtract: '-', multiply: '*', divide: '/' }).map(
      ([name, sign]) => ({
        name,
        description: `returns a ${sign} b.`,
        parameters: { type: 'OBJECT', properties: { a: number, b: number }, required: ['a', 'b'] },
      }),
    );
    const contents = [
      {
        role: 'user',
        parts: [{ text: 'I have 57 cats, each owns 44 mittens, how many mittens is that in total?' }],
      },
    ];
    const alone = await counted(gemini, 'gemini-1.5-flash', { contents });
    const withTools = await counted(gemini, 'gemini-1.5-flash', {
      contents,
      tools: [{ functionDeclarations }],
    });
    expect(withTools - alone).toBe(206 - 22);
  });

  it('of a model with an unknown tokenizer counts the JSON of the request', async () => {
    const tools = [{ type: 'function', function: weather }];
    const counter = await loadTokenCounter('llama-4');
    const more =
      (await counted(openaiChat, 'llama-4', { ...asked, tools })) -
      (await counted(openaiChat, 'llama-4', asked));
    expect(more).toBe(counter.count(JSON.stringify(tools[0])));
  });
});

describe('a definition as a model reads it', () => {
  it('is a type in a namespace, with descriptions in comments', () => {
    expect(
      renderTool({
        type: 'function',
        function: {
          name: 'edit',
          description: 'Edits a file.\nReturns a diff.',
          parameters: {
            type: 'object',
            properties: {
              path: { type: 'string', title: 'Path', description: 'Where.', examples: ['a.ts'] },
              mode: { enum: ['fast', 'safe'], type: 'string', default: 'safe' },
              edits: {
                type: 'array',
                items: {
                  type: 'object',
                  properties: { line: { type: 'integer' }, text: { type: ['string', 'null'] } },
                  required: ['line'],
                },
              },
              at: { $ref: '#/$defs/Place' },
              any: {},
              bag: { type: 'object', nullable: true },
              one: { oneOf: [{ type: 'number' }, { type: 'boolean' }] },
            },
            required: ['path', 'edits'],
            $defs: { Place: { type: 'object', properties: { x: { type: 'number' } } } },
          },
        },
      }),
    ).toBe(`// Edits a file.
// Returns a diff.
type edit = (_: {
// Path
//
// Where.
// Examples:
// - "a.ts"
path: string,
mode?: "fast" | "safe", // default: "safe"
edits: {
  line: number,
  text?: string | null,
}[],
at?: {
  x?: number,
},
any?: any,
bag?: object | null,
one?: number | boolean,
}) => any;

`);
  });

  it('that refers to itself ends', () => {
    const parameters = {
      type: 'object',
      properties: { next: { $ref: '#' } },
    };
    expect(renderTool({ name: 'walk', parameters })?.length).toBeLessThan(5_000);
  });

  it.each([
    ['a tool of the provider', { type: 'web_search' }],
    ['a free-form tool', { type: 'custom', custom: { name: 'sql' } }],
    ['nothing like a tool', [1]],
    ['one without a name', { type: 'function', function: {} }],
  ])('stays JSON when it is %s', (_, definition) => {
    expect(renderTool(definition)).toBeUndefined();
  });

  it('counts functions of a named group one by one', () => {
    const group = {
      type: 'namespace',
      name: 'files',
      tools: [
        { type: 'function', name: 'a' },
        { type: 'function', name: 'b' },
      ],
    };
    expect(renderTool(group)).toBe('type a = () => any;\n\ntype b = () => any;\n\n');
  });
});
