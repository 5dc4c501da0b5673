import { describe, expect, it } from 'vitest';
import {
  hiddenRecallOf,
  linesWithHiddenRecalls,
  type Step,
  withHiddenRecalls,
} from '../../../test/support/codec-suite/with-hidden-recalls.ts';
import { openaiResponses } from './index.ts';

const reasoning = (id: string, text: string) => ({
  id,
  type: 'reasoning',
  encrypted_content: `seal of ${id}`,
  summary: [{ type: 'summary_text', text }],
});
const message = (id: string, text: string) => ({
  id,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
});
const call = (id: string, callId: string, name: string, args: string) => ({
  id,
  type: 'function_call',
  status: 'completed',
  call_id: callId,
  name,
  arguments: args,
});
const recall = (callId: string) => call(`fc_${callId}`, callId, 'read_memory', '{"id":"mem_a"}');
const readFile = call('fc_1_2', 'c1', 'read_file', '{"path":"a.log"}');
const readFileSpelledOut = {
  type: 'function_call',
  call_id: 'c1',
  name: 'read_file',
  arguments: '{ "path": "a.log" }',
};
const result = { type: 'function_call_output', call_id: 'c1', output: 'ok' };
const reference = (id: string) => ({ type: 'item_reference', id });
const words = (content: string) => ({ role: 'assistant', content });
const user = (content: string) => ({ role: 'user', content });

/** Words around a recall and a call of the client's; words around a recall; a recall before the first word. */
const replies = [
  hiddenRecallOf(
    [[[reasoning('rs_0_0', 'hmm one'), message('msg_0_1', 'I look. '), recall('m1')], { m1: 'one' }]],
    [reasoning('rs_1_0', 'hmm two'), message('msg_1_1', 'Now the file. '), readFile],
  ),
  hiddenRecallOf(
    [[[reasoning('rs_2_0', 'hmm three'), message('msg_2_1', 'Again. '), recall('m2')], { m2: 'two' }]],
    [reasoning('rs_3_0', 'hmm four'), message('msg_3_1', 'It is 5.')],
  ),
  hiddenRecallOf(
    [[[reasoning('rs_4_0', 'hmm five'), recall('m3')], { m3: 'three' }]],
    [reasoning('rs_5_0', 'hmm six'), message('msg_5_1', 'Still 5.')],
  ),
] as const;

type Items = readonly object[];

/** Copies that clients keep of the three replies, and the rest of each after the recalls. */
type Copies = readonly [copies: readonly [Items, Items, Items], left: readonly [Lines, Lines, Lines]];
type Lines = readonly string[];

const everyItem: Copies = [
  [
    [
      reasoning('rs_0_0', 'hmm one'),
      message('msg_0_1', 'I look. '),
      reasoning('rs_1_0', 'hmm two'),
      message('msg_1_1', 'Now the file. '),
      readFile,
    ],
    [
      reasoning('rs_2_0', 'hmm three'),
      message('msg_2_1', 'Again. '),
      reasoning('rs_3_0', 'hmm four'),
      message('msg_3_1', 'It is 5.'),
    ],
    [reasoning('rs_5_0', 'hmm six'), message('msg_5_1', 'Still 5.')],
  ],
  [
    [
      'assistant: signed reasoning "hmm two"',
      'assistant: "Now the file. "',
      'assistant: call c1 read_file("{\\"path\\":\\"a.log\\"}")',
    ],
    ['assistant: signed reasoning "hmm four"', 'assistant: "It is 5."'],
    ['assistant: signed reasoning "hmm six"', 'assistant: "Still 5."'],
  ],
];

const spelledOut = 'assistant: call c1 read_file("{ \\"path\\": \\"a.log\\" }")';

/** Keys in the order that a client wrote them. */
const reordered = ({ id, ...item }: Readonly<Record<string, unknown>>) => ({ ...item, id });

const clients: Readonly<Record<string, Copies>> = {
  'openai, @openai/agents and langchain: every item as given': everyItem,
  '@openai/agents: keys in another order': [
    [
      everyItem[0][0].map((item) => reordered({ ...item })),
      everyItem[0][1].map((item) => reordered({ ...item })),
      everyItem[0][2].map((item) => reordered({ ...item })),
    ],
    everyItem[1],
  ],
  'ai where the provider stores: references, calls spelled out': [
    [
      [...['rs_0_0', 'msg_0_1', 'rs_1_0', 'msg_1_1'].map(reference), readFileSpelledOut],
      ['rs_2_0', 'msg_2_1', 'rs_3_0', 'msg_3_1'].map(reference),
      ['rs_5_0', 'msg_5_1'].map(reference),
    ],
    [
      ['assistant: opaque item_reference', 'assistant: opaque item_reference', spelledOut],
      ['assistant: opaque item_reference', 'assistant: opaque item_reference'],
      ['assistant: opaque item_reference', 'assistant: opaque item_reference'],
    ],
  ],
  'ai where the provider stores, streamed: a reference to the reasoning before the recall': [
    [
      [...['rs_0_0', 'msg_0_1', 'rs_1_0', 'msg_1_1'].map(reference), readFileSpelledOut],
      ['rs_2_0', 'msg_2_1', 'rs_3_0', 'msg_3_1'].map(reference),
      ['rs_4_0', 'rs_5_0', 'msg_5_1'].map(reference),
    ],
    [
      ['assistant: opaque item_reference', 'assistant: opaque item_reference', spelledOut],
      ['assistant: opaque item_reference', 'assistant: opaque item_reference'],
      ['assistant: opaque item_reference', 'assistant: opaque item_reference'],
    ],
  ],
  'ai where nothing is stored: reasoning whole, messages without ids': [
    [
      [
        reasoning('rs_0_0', 'hmm one'),
        words('I look. '),
        reasoning('rs_1_0', 'hmm two'),
        words('Now the file. '),
        readFileSpelledOut,
      ],
      [
        reasoning('rs_2_0', 'hmm three'),
        words('Again. '),
        reasoning('rs_3_0', 'hmm four'),
        words('It is 5.'),
      ],
      [reasoning('rs_4_0', 'hmm five'), reasoning('rs_5_0', 'hmm six'), words('Still 5.')],
    ],
    [
      ['assistant: signed reasoning "hmm two"', 'assistant: "Now the file. "', spelledOut],
      ['assistant: signed reasoning "hmm four"', 'assistant: "It is 5."'],
      ['assistant: signed reasoning "hmm six"', 'assistant: "Still 5."'],
    ],
  ],
  'a client that keeps words and calls alone, and joins words': [
    [
      [words('I look. '), words('Now the file. '), readFileSpelledOut],
      [words('Again. It is 5.')],
      [words('Still 5.')],
    ],
    [['assistant: "Now the file. "', spelledOut], ['assistant: "It is 5."'], ['assistant: "Still 5."']],
  ],
  'a client that keeps no ids at all': [
    [
      everyItem[0][0].map((item) => ({ ...item, id: undefined })),
      everyItem[0][1].map((item) => ({ ...item, id: undefined })),
      everyItem[0][2].map((item) => ({ ...item, id: undefined })),
    ],
    everyItem[1],
  ],
};

describe('the copy of', () => {
  it.each(Object.entries(clients))('%s', (_, [[one, two, three], left]) => {
    const lines = linesWithHiddenRecalls(openaiResponses, 'input', [
      [user('What?')],
      { copy: one, hiddenRecall: replies[0] },
      [result],
      { copy: two, hiddenRecall: replies[1] },
      [{ type: 'message', role: 'user', content: 'Sure?' }],
      { copy: three, hiddenRecall: replies[2] },
      [user('Thanks.')],
    ]);
    expect(lines).toEqual([
      'user: "What?"',
      'assistant: signed reasoning "hmm one"',
      'assistant: "I look. "',
      'assistant: call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m1 ["one"]',
      ...left[0],
      'tool: result c1 ["ok"]',
      'assistant: signed reasoning "hmm three"',
      'assistant: "Again. "',
      'assistant: call m2 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m2 ["two"]',
      ...left[1],
      'user: "Sure?"',
      'assistant: signed reasoning "hmm five"',
      'assistant: call m3 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m3 ["three"]',
      ...left[2],
      'user: "Thanks."',
    ]);
  });

  it('ai, when the model did not think: words without ids', () => {
    const hiddenRecall = hiddenRecallOf(
      [[[message('msg_0_0', 'I look. '), recall('m1')], { m1: 'one' }]],
      [message('msg_1_0', 'Now the file. '), readFile],
    );
    const copy = [words('I look. '), words('Now the file. '), readFileSpelledOut];
    expect(
      linesWithHiddenRecalls(openaiResponses, 'input', [[user('What?')], { copy, hiddenRecall }, [result]]),
    ).toEqual([
      'user: "What?"',
      'assistant: "I look. "',
      'assistant: call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m1 ["one"]',
      'assistant: "Now the file. "',
      spelledOut,
      'tool: result c1 ["ok"]',
    ]);
  });

  it.each([
    ['as given', readFile],
    ['spelled out', readFileSpelledOut],
  ])('any client, when only a recall came before a call %s', (_, copied) => {
    const hiddenRecall = hiddenRecallOf([[[recall('m1')], { m1: 'one' }]], [readFile]);
    const steps = [[user('What?')], { copy: [copied], hiddenRecall }, [result]];
    expect(linesWithHiddenRecalls(openaiResponses, 'input', steps).slice(0, 3)).toEqual([
      'user: "What?"',
      'assistant: call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m1 ["one"]',
    ]);
  });
});

/** Ids of the sent items, in order; undefined for an item without one. */
function idsWithHiddenRecalls(steps: readonly Step[], fields = {}): readonly (string | undefined)[] {
  const { body } = withHiddenRecalls(openaiResponses, 'input', steps, fields);
  const { input } = JSON.parse(new TextDecoder().decode(body)) as { input: readonly { id?: string }[] };
  return input.map(({ id }) => id);
}

describe('an item', () => {
  it('that is in a round is not referred to again', () => {
    const copy = ['rs_2_0', 'msg_2_1', 'rs_3_0', 'msg_3_1'].map(reference);
    expect(idsWithHiddenRecalls([[user('What?')], { copy, hiddenRecall: replies[1] }])).toEqual([
      undefined,
      'rs_2_0',
      'msg_2_1',
      'fc_m2',
      undefined,
      'rs_3_0',
      'msg_3_1',
    ]);
  });

  it('is another one when its id only begins like that of the round', () => {
    const hiddenRecall = hiddenRecallOf(
      [[[reasoning('rs_1', 'hmm one'), recall('m1')], { m1: 'one' }]],
      [reasoning('rs_10', 'hmm two'), message('msg_1', 'It is 5.')],
    );
    const copy = [reasoning('rs_10', 'hmm two'), message('msg_1', 'It is 5.')];
    expect(idsWithHiddenRecalls([[user('What?')], { copy, hiddenRecall }])).toEqual([
      undefined,
      'rs_1',
      'fc_m1',
      undefined,
      'rs_10',
      'msg_1',
    ]);
  });

  it('that a reference replaces is not cut: then nothing is put back', () => {
    const hiddenRecall = hiddenRecallOf(
      [[[message('msg_0', 'It is'), recall('m1')], { m1: 'one' }]],
      [message('msg_1', 'It is 5.')],
    );
    const copy = [reference('msg_1')];
    expect(idsWithHiddenRecalls([[user('What?')], { copy, hiddenRecall }])).toEqual([undefined, 'msg_1']);
  });

  it('that the provider kept is sent unchanged, reasoning that it did not keep is left out', () => {
    const { encrypted_content: _, ...unsealed } = reasoning('rs_0', 'hmm one');
    const hiddenRecall = hiddenRecallOf(
      [[[unsealed, recall('m1')], { m1: 'one' }]],
      [message('msg_1', 'It is 5.')],
    );
    const steps: readonly Step[] = [[user('What?')], { copy: [message('msg_1', 'It is 5.')], hiddenRecall }];
    expect(idsWithHiddenRecalls(steps)).toEqual([undefined, 'rs_0', 'fc_m1', undefined, 'msg_1']);
    expect(idsWithHiddenRecalls(steps, { store: false })).toEqual([undefined, 'fc_m1', undefined, 'msg_1']);
  });
});

describe('a recall is put back with', () => {
  it.each([
    ['as given', [reasoning('rs_0', 'hmm one'), message('msg_0', 'Both.'), readFile]],
    ['referred to', [reference('rs_0'), reference('msg_0'), readFileSpelledOut]],
    ['in words', [words('Both.'), readFileSpelledOut]],
  ])('a call of the client, whose copy is %s', (_, copy) => {
    const turn = [reasoning('rs_0', 'hmm one'), message('msg_0', 'Both.'), readFile, recall('m1')];
    const hiddenRecall = hiddenRecallOf([[turn, { m1: 'one' }]]);
    expect(
      linesWithHiddenRecalls(openaiResponses, 'input', [[user('What?')], { copy, hiddenRecall }, [result]]),
    ).toEqual([
      'user: "What?"',
      'assistant: signed reasoning "hmm one"',
      'assistant: "Both."',
      'assistant: call c1 read_file("{\\"path\\":\\"a.log\\"}")',
      'assistant: call m1 read_memory("{\\"id\\":\\"mem_a\\"}")',
      'tool: result m1 ["one"]',
      'tool: result c1 ["ok"]',
    ]);
  });

  const search = { id: 'ws_0', type: 'web_search_call', status: 'completed', action: { type: 'search' } };
  const cited = {
    ...message('msg_0', 'Hm. '),
    content: [{ type: 'output_text', text: 'Hm. ', annotations: [{ type: 'url_citation', start_index: 0 }] }],
  };

  it.each<[string, Items]>([
    ['as given', [search, cited, message('msg_1', 'It is 5.')]],
    ['referred to', ['ws_0', 'msg_0', 'msg_1'].map(reference)],
  ])('what the provider ran itself, which the client has %s', (_, copy) => {
    const hiddenRecall = hiddenRecallOf(
      [[[search, cited, recall('m1')], { m1: 'one' }]],
      [message('msg_1', 'It is 5.')],
    );
    expect(idsWithHiddenRecalls([[user('What?')], { copy, hiddenRecall }])).toEqual([
      undefined,
      'ws_0',
      'msg_0',
      'fc_m1',
      undefined,
      'msg_1',
    ]);
  });
});
