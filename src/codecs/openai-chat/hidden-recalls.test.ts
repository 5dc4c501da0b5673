import { describe, expect, it } from 'vitest';
import {
  hiddenRecallOf,
  linesWithHiddenRecalls,
  withHiddenRecalls,
} from '../../../test/support/codec-suite/with-hidden-recalls.ts';
import { openaiChat } from './index.ts';

const functionCall = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const recall = (id: string) => functionCall(id, 'read_memory', '{"id":"mem_a"}');
const tool_calls = [functionCall('c1', 'read_file', '{"path":"a.log"}')];
const user = (content: string) => ({ role: 'user', content });
const model = (fields: object) => ({ role: 'assistant', ...fields });

/** Words around a recall and a call of the client's; words around a recall; a recall before the first word. */
const replies = [
  hiddenRecallOf(
    [
      [
        model({ content: 'I look. ', reasoning_content: 'hmm one', tool_calls: [recall('m1')] }),
        { m1: 'one' },
      ],
    ],
    model({ content: 'Now the file. ', reasoning_content: 'hmm two', tool_calls }),
  ),
  hiddenRecallOf(
    [
      [
        model({ content: 'Again. ', reasoning_content: 'hmm three', tool_calls: [recall('m2')] }),
        { m2: 'two' },
      ],
    ],
    model({ content: 'It is 5.', reasoning_content: 'hmm four' }),
  ),
  hiddenRecallOf(
    [[model({ content: null, reasoning_content: 'hmm five', tool_calls: [recall('m3')] }), { m3: 'three' }]],
    model({ content: 'Still 5.', reasoning_content: 'hmm six' }),
  ),
] as const;

/** Copies that clients keep of the three replies, and the rest of each after the recalls. */
type Copies = readonly [copies: readonly [object, object, object], left: readonly [string, string, string]];

const plain: Copies[1] = [
  'assistant: "Now the file. ", call c1 read_file("{\\"path\\":\\"a.log\\"}")',
  'assistant: "It is 5."',
  'assistant: "Still 5."',
];

const clients: Readonly<Record<string, Copies>> = {
  'openai, plain: the reasoning of the last round': [
    [
      {
        content: 'I look. Now the file. ',
        refusal: null,
        annotations: [],
        reasoning_content: 'hmm two',
        tool_calls,
      },
      { content: 'Again. It is 5.', refusal: null, annotations: [], reasoning_content: 'hmm four' },
      { content: 'Still 5.', refusal: null, annotations: [], reasoning_content: 'hmm six' },
    ],
    [
      'assistant: reasoning "hmm two", "Now the file. ", call c1 read_file("{\\"path\\":\\"a.log\\"}")',
      'assistant: reasoning "hmm four", "It is 5."',
      'assistant: reasoning "hmm six", "Still 5."',
    ],
  ],
  'openai, streamed: the last fragment of the reasoning': [
    [
      {
        reasoning_content: 'o',
        content: 'I look. Now the file. ',
        refusal: null,
        tool_calls: tool_calls.map((call) => ({
          ...call,
          function: { ...call.function, parsed_arguments: null },
        })),
        parsed: null,
      },
      { reasoning_content: 'ur', content: 'Again. It is 5.', refusal: null, parsed: null },
      { reasoning_content: 'x', content: 'Still 5.', refusal: null, parsed: null },
    ],
    [
      'assistant: reasoning "o", "Now the file. ", call c1 read_file("{\\"path\\":\\"a.log\\"}")',
      'assistant: reasoning "ur", "It is 5."',
      'assistant: reasoning "x", "Still 5."',
    ],
  ],
  'a client that joins the reasoning of all rounds': [
    [
      { reasoning_content: 'hmm onehmm two', content: 'I look. Now the file. ', tool_calls },
      { reasoning_content: 'hmm threehmm four', content: 'Again. It is 5.' },
      { reasoning_content: 'hmm fivehmm six', content: 'Still 5.' },
    ],
    [
      'assistant: reasoning "hmm two", "Now the file. ", call c1 read_file("{\\"path\\":\\"a.log\\"}")',
      'assistant: reasoning "hmm four", "It is 5."',
      'assistant: reasoning "hmm six", "Still 5."',
    ],
  ],
  ai: [
    [
      { content: 'I look. Now the file. ', tool_calls },
      { content: 'Again. It is 5.' },
      { content: 'Still 5.' },
    ],
    plain,
  ],
  '@openai/agents, plain: the message spread into its part': [
    [
      {
        content: [
          {
            type: 'text',
            text: 'I look. Now the file. ',
            role: 'assistant',
            refusal: null,
            annotations: [],
            reasoning_content: 'hmm two',
            tool_calls,
          },
        ],
        tool_calls,
      },
      { content: [{ type: 'text', text: 'Again. It is 5.', role: 'assistant', refusal: null }] },
      { content: [{ type: 'text', text: 'Still 5.', role: 'assistant', refusal: null }] },
    ],
    plain,
  ],
  '@openai/agents, streamed': [
    [
      { content: [{ type: 'text', text: 'I look. Now the file. ', annotations: [] }], tool_calls },
      { content: [{ type: 'text', text: 'Again. It is 5.', annotations: [] }] },
      { content: [{ type: 'text', text: 'Still 5.', annotations: [] }] },
    ],
    plain,
  ],
  'langchain: with a name': [
    [
      { content: 'I look. Now the file. ', name: 'model', tool_calls },
      { content: 'Again. It is 5.', name: 'model' },
      { content: 'Still 5.', name: 'model' },
    ],
    plain,
  ],
};

describe('the copy of', () => {
  it.each(Object.entries(clients))('%s', (_, [copies, left]) => {
    const [one, two, three] = copies.map(model);
    const lines = linesWithHiddenRecalls(openaiChat, 'messages', [
      [user('What?')],
      { copy: [one], hiddenRecall: replies[0] },
      [{ role: 'tool', tool_call_id: 'c1', content: 'ok' }],
      { copy: [two], hiddenRecall: replies[1] },
      [user('Sure?')],
      { copy: [three], hiddenRecall: replies[2] },
      [user('Thanks.')],
    ]);
    expect(lines).toEqual([
      'user: "What?"',
      'assistant: reasoning "hmm one", "I look. ", call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m1 ["one"]',
      left[0],
      'tool: result c1 ["ok"]',
      'assistant: reasoning "hmm three", "Again. ", call m2 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m2 ["two"]',
      left[1],
      'user: "Sure?"',
      'assistant: reasoning "hmm five", call m3 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m3 ["three"]',
      left[2],
      'user: "Thanks."',
    ]);
  });
});

describe('what is left of a copy', () => {
  it.each<[string, object, string]>([
    [
      'keeps the fields of the client',
      { content: 'Again. It is 5.', name: 'model', refusal: null, x: 1.0 },
      '{"role":"assistant","content":"It is 5.","name":"model","refusal":null,"x":1}',
    ],
    [
      'keeps what the client spread into a part',
      { content: [{ type: 'text', text: 'Again. It is 5.', role: 'assistant', annotations: [] }] },
      '{"role":"assistant","content":[{"type":"text","text":"It is 5.","role":"assistant","annotations":[]}]}',
    ],
    [
      'keeps a cache mark',
      { content: [{ type: 'text', text: 'Again. It is 5.', cache_control: { type: 'ephemeral' } }] },
      '{"role":"assistant","content":[{"type":"text","text":"It is 5.","cache_control":{"type":"ephemeral"}}]}',
    ],
  ])('%s', (_, copy, left) => {
    const { body, messages } = withHiddenRecalls(openaiChat, 'messages', [
      [user('What?')],
      { copy: [model(copy)], hiddenRecall: replies[1] },
      [user('Thanks.')],
    ]);
    const { start, end } = messages[3]!.span;
    expect(new TextDecoder().decode(body.subarray(start, end))).toBe(left);
  });

  it.each([
    ['null', null],
    ['an empty text', ''],
    ['an empty list', []],
  ])('has its call when nothing was said before the recall, and the content is %s', (_, content) => {
    const bare = hiddenRecallOf(
      [[model({ content: null, tool_calls: [recall('m1')] }), { m1: 'one' }]],
      model({ content: null, tool_calls }),
    );
    const lines = linesWithHiddenRecalls(openaiChat, 'messages', [
      [user('What?')],
      { copy: [model({ content, tool_calls })], hiddenRecall: bare },
      [{ role: 'tool', tool_call_id: 'c1', name: 'read_file', content: 'ok' }],
    ]);
    expect(lines).toEqual([
      'user: "What?"',
      'assistant: call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m1 ["one"]',
      'assistant: call c1 read_file("{\\"path\\":\\"a.log\\"}")',
      'tool: result c1 ["ok"]',
    ]);
  });

  it('is nothing with a call of the client, whatever it respelled', () => {
    const beside = hiddenRecallOf([
      [model({ content: 'Both. ', tool_calls: [recall('m1'), ...tool_calls] }), { m1: 'one' }],
    ]);
    for (const copy of [
      { content: 'Both. ', refusal: null, tool_calls, parsed: null },
      { content: [{ type: 'text', text: 'Both.', role: 'assistant', tool_calls }], tool_calls },
      {
        content: 'Both.',
        name: 'model',
        tool_calls: [functionCall('c1', 'read_file', '{ "path": "a.log" }')],
      },
    ]) {
      const lines = linesWithHiddenRecalls(openaiChat, 'messages', [
        [user('What?')],
        { copy: [model(copy)], hiddenRecall: beside },
        [{ role: 'tool', tool_call_id: 'c1', content: 'ok' }],
      ]);
      expect(lines).toEqual([
        'user: "What?"',
        'assistant: "Both. ", call m1 read_memory("{\\"id\\":\\"mem_a\\"}"), call c1 read_file("{\\"path\\":\\"a.log\\"}")',
        'tool: result m1 ["one"]',
        'tool: result c1 ["ok"]',
      ]);
    }
  });

  it('has the call that the model made without arguments, however the client spells that', () => {
    const noArguments = hiddenRecallOf(
      [[model({ content: null, tool_calls: [recall('m1')] }), { m1: 'one' }]],
      model({ content: null, tool_calls: [functionCall('c1', 'now', '')] }),
    );
    const lines = linesWithHiddenRecalls(openaiChat, 'messages', [
      [user('What?')],
      {
        copy: [model({ content: null, tool_calls: [functionCall('c1', 'now', '{}')] })],
        hiddenRecall: noArguments,
      },
      [{ role: 'tool', tool_call_id: 'c1', content: 'ok' }],
    ]);
    expect(lines.slice(1, 4)).toEqual([
      'assistant: call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m1 ["one"]',
      'assistant: call c1 now("{}")',
    ]);
  });
});
