import { describe, expect, it } from 'vitest';
import {
  hiddenRecallOf,
  linesWithHiddenRecalls,
  withHiddenRecalls,
} from '../../../test/support/codec-suite/with-hidden-recalls.ts';
import { anthropicMessages } from './index.ts';

const thinking = (text: string) => ({ type: 'thinking', thinking: text, signature: `seal of ${text}` });
const text = (words: string) => ({ type: 'text', text: words });
const recall = (id: string) => ({ type: 'tool_use', id, name: 'read_memory', input: { id: 'mem_a' } });
const readFile = { type: 'tool_use', id: 'c1', name: 'read_file', input: { path: 'a.log' } };
const user = (...content: readonly object[]) => ({ role: 'user', content });
const copyOf = (content: unknown) => ({ role: 'assistant', content });
const result = { type: 'tool_result', tool_use_id: 'c1', content: 'ok' };

/** Words around a recall and a call of the client's; words around a recall; a recall before the first word. */
const replies = [
  hiddenRecallOf(
    [[[thinking('hmm one'), text('I look. '), recall('m1')], { m1: 'one' }]],
    [thinking('hmm two'), text('Now the file. '), readFile],
  ),
  hiddenRecallOf(
    [[[thinking('hmm three'), text('Again. '), recall('m2')], { m2: 'two' }]],
    [thinking('hmm four'), text('It is 5.')],
  ),
  hiddenRecallOf(
    [[[thinking('hmm five'), recall('m3')], { m3: 'three' }]],
    [thinking('hmm six'), text('Still 5.')],
  ),
] as const;

/** Copies that clients keep of the three replies, and the rest of each after the recalls. */
type Copies = readonly [
  copies: readonly [unknown, unknown, unknown],
  left: readonly [string, string, string],
];

const everyBlock: Copies = [
  [
    [thinking('hmm one'), text('I look. '), thinking('hmm two'), text('Now the file. '), readFile],
    [thinking('hmm three'), text('Again. '), thinking('hmm four'), text('It is 5.')],
    [thinking('hmm five'), thinking('hmm six'), text('Still 5.')],
  ],
  [
    'assistant: signed reasoning "hmm two", "Now the file. ", call c1 read_file({"path":"a.log"})',
    'assistant: signed reasoning "hmm four", "It is 5."',
    'assistant: signed reasoning "hmm six", "Still 5."',
  ],
];

const withoutThinking: Copies[1] = [
  'assistant: "Now the file. ", call c1 read_file({"path":"a.log"})',
  'assistant: "It is 5."',
  'assistant: "Still 5."',
];

const clients: Readonly<Record<string, Copies>> = {
  '@anthropic-ai/sdk, ai and langchain: every block': everyBlock,
  'a client that marks what the provider should cache': [
    [
      (everyBlock[0][0] as object[]).map((block, at) =>
        at === 4 ? { ...block, cache_control: { type: 'ephemeral' } } : block,
      ),
      everyBlock[0][1],
      [
        thinking('hmm five'),
        thinking('hmm six'),
        { ...text('Still 5.'), cache_control: { type: 'ephemeral', ttl: '1h' } },
      ],
    ],
    everyBlock[1],
  ],
  'a client that drops what the model thought, and writes texts as one': [
    [[text('I look. Now the file. '), readFile], 'Again. It is 5.', 'Still 5.'],
    withoutThinking,
  ],
  'a client that keeps what the model thought last': [
    [
      [thinking('hmm two'), text('I look.'), text('Now the file.'), readFile],
      [thinking('hmm four'), text('Again.\n\nIt is 5.')],
      [thinking('hmm six'), text('Still 5.')],
    ],
    [
      'assistant: signed reasoning "hmm two", "Now the file.", call c1 read_file({"path":"a.log"})',
      'assistant: signed reasoning "hmm four", "\\n\\nIt is 5."',
      'assistant: signed reasoning "hmm six", "Still 5."',
    ],
  ],
};

describe('the copy of', () => {
  it.each(Object.entries(clients))('%s', (_, [copies, left]) => {
    const [one, two, three] = copies.map(copyOf);
    const lines = linesWithHiddenRecalls(anthropicMessages, 'messages', [
      [{ role: 'user', content: 'What?' }],
      { copy: [one], hiddenRecall: replies[0] },
      [user(result)],
      { copy: [two], hiddenRecall: replies[1] },
      [user(text('Sure?'))],
      { copy: [three], hiddenRecall: replies[2] },
      [user(text('Thanks.'))],
    ]);
    expect(lines).toEqual([
      'user: "What?"',
      'assistant: signed reasoning "hmm one", "I look. ", call m1 read_memory({"id":"mem_a"})',
      'tool: result m1 fine ["one"]',
      left[0],
      'tool: result c1 fine ["ok"]',
      'assistant: signed reasoning "hmm three", "Again. ", call m2 read_memory({"id":"mem_a"})',
      'tool: result m2 fine ["two"]',
      left[1],
      'user: "Sure?"',
      'assistant: signed reasoning "hmm five", call m3 read_memory({"id":"mem_a"})',
      'tool: result m3 fine ["three"]',
      left[2],
      'user: "Thanks."',
    ]);
  });

  it('langchain, plain, when a reply is one text: a string', () => {
    const hiddenRecall = hiddenRecallOf([[[recall('m1')], { m1: 'one' }]], [text('Still 5.')]);
    for (const copy of ['Still 5.', [text('Still 5.')]])
      expect(
        linesWithHiddenRecalls(anthropicMessages, 'messages', [
          [user(text('What?'))],
          { copy: [copyOf(copy)], hiddenRecall },
          [user(text('Thanks.'))],
        ]),
      ).toEqual([
        'user: "What?"',
        'assistant: call m1 read_memory({"id":"mem_a"})',
        'tool: result m1 fine ["one"]',
        'assistant: "Still 5."',
        'user: "Thanks."',
      ]);
  });
});

describe('what is left of a copy', () => {
  it('keeps the bytes of its blocks', () => {
    const { body, messages } = withHiddenRecalls(anthropicMessages, 'messages', [
      [user(text('What?'))],
      {
        copy: [copyOf([{ ...text('Again. It is 5.'), x: [1], cache_control: { type: 'ephemeral' } }])],
        hiddenRecall: replies[1],
      },
      [user(text('Thanks.'))],
    ]);
    const { start, end } = messages[3]!.span;
    expect(new TextDecoder().decode(body.subarray(start, end))).toBe(
      '{"role":"assistant","content":[{"type":"text","text":"It is 5.","x":[1],"cache_control":{"type":"ephemeral"}}]}',
    );
  });

  it('is nothing when the client disconnected within the recall', () => {
    const left = hiddenRecallOf([[[text('Again. '), recall('m2')], { m2: 'two' }]]);
    const lines = linesWithHiddenRecalls(anthropicMessages, 'messages', [
      [user(text('What?'))],
      { copy: [copyOf('Again.')], hiddenRecall: left },
      [user(text('Go on.'))],
    ]);
    expect(lines).toEqual([
      'user: "What?"',
      'assistant: "Again. ", call m2 read_memory({"id":"mem_a"})',
      'tool: result m2 fine ["two"]',
      'user: "Go on."',
    ]);
  });
});

describe('with calls of the client', () => {
  const hiddenRecall = hiddenRecallOf([
    [[thinking('hmm one'), text('Both. '), readFile, recall('m1')], { m1: 'one' }],
  ]);
  const copy = [copyOf([thinking('hmm one'), text('Both. '), readFile])];

  it('the answer comes with the results, ahead of other content of the client', () => {
    for (const words of [[], [text('Be quick.')]])
      expect(
        linesWithHiddenRecalls(anthropicMessages, 'messages', [
          [user(text('What?'))],
          { copy, hiddenRecall },
          [user(result, ...words)],
        ]),
      ).toEqual([
        'user: "What?"',
        'assistant: signed reasoning "hmm one", "Both. ", call c1 read_file({"path":"a.log"}), call m1 read_memory({"id":"mem_a"})',
        `${words.length === 0 ? 'tool' : 'user'}: result m1 fine ["one"], result c1 fine ["ok"]${words.length === 0 ? '' : ', "Be quick."'}`,
      ]);
  });

  it.each<[string, readonly object[]]>([
    ['the client has no result yet', []],
    ['the client gave no result', [user(text('Never mind.'))]],
    ['what the client says is no list', [{ role: 'user', content: 'Never mind.' }]],
  ])('nothing is put back where %s', (_, next) => {
    const steps = [[user(text('What?'))], { copy, hiddenRecall }, next] as const;
    const without = [[user(text('What?'))], copy, next] as const;
    expect(linesWithHiddenRecalls(anthropicMessages, 'messages', steps)).toEqual(
      linesWithHiddenRecalls(anthropicMessages, 'messages', without),
    );
  });
});

describe('with tools that the provider ran itself', () => {
  const search = { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'x' } };
  const found = { type: 'web_search_tool_result', tool_use_id: 'srv_1', content: [] };
  const hiddenRecall = hiddenRecallOf(
    [[[search, found, text('Hm. '), recall('m1')], { m1: 'one' }]],
    [text('It is 5.')],
  );

  it.each([
    ['kept', [search, found, text('Hm. '), text('It is 5.')]],
    ['dropped', [text('Hm. It is 5.')]],
  ])('a recall is put back when the client %s that', (_, content) => {
    const lines = linesWithHiddenRecalls(anthropicMessages, 'messages', [
      [user(text('What?'))],
      { copy: [copyOf(content)], hiddenRecall },
      [user(text('Thanks.'))],
    ]);
    expect(lines).toEqual([
      'user: "What?"',
      'assistant: opaque server_tool_use, opaque web_search_tool_result, "Hm. ", call m1 read_memory({"id":"mem_a"})',
      'tool: result m1 fine ["one"]',
      'assistant: "It is 5."',
      'user: "Thanks."',
    ]);
  });
});
