import { describe, expect, it } from 'vitest';
import {
  hiddenRecallOf,
  linesWithHiddenRecalls,
  type Step,
  withHiddenRecalls,
} from '../../../test/support/codec-suite/with-hidden-recalls.ts';
import { geminiFor } from './index.ts';

/** A model that requires signed calls. */
const codec = geminiFor({ model: 'gemini-3-pro', streaming: true });

const thought = (text: string) => ({ text, thought: true });
const text = (words: string) => ({ text: words });
const signed = (part: object, seal: string) => ({ ...part, thoughtSignature: seal });
const call = (name: string, args: object, id?: string) => ({
  functionCall: { ...(id === undefined ? {} : { id }), name, args },
});
const recall = (id?: string) => call('read_memory', { id: 'mem_a' }, id);
const readFile = (id?: string) => call('read_file', { path: 'a.log' }, id);
const result = (id?: string) => ({
  functionResponse: { ...(id === undefined ? {} : { id }), name: 'read_file', response: { output: 'ok' } },
});
const model = (...parts: readonly object[]) => ({ role: 'model', parts });
const user = (...parts: readonly object[]) => ({ role: 'user', parts });

/** Words around a recall and a call of the client's; words around a recall; a recall before the first word. */
const replies = [
  hiddenRecallOf(
    [[model(thought('hmm one'), text('I look. '), signed(recall('m1'), 's0')), { m1: 'one' }]],
    model(thought('hmm two'), text('Now the file. '), signed(readFile('c1'), 's1')),
  ),
  hiddenRecallOf(
    [[model(thought('hmm three'), text('Again. '), signed(recall('m2'), 's2')), { m2: 'two' }]],
    model(thought('hmm four'), text('It is 5.'), signed(text(''), 's3')),
  ),
  hiddenRecallOf(
    [[model(thought('hmm five'), signed(recall('m3'), 's4')), { m3: 'three' }]],
    model(thought('hmm six'), text('Still 5.'), signed(text(''), 's5')),
  ),
] as const;

type Contents = readonly object[];
type Lines = readonly string[];

/** Copies that clients keep of the three replies, and the rest of each after the recalls. */
type Copies = readonly [
  copies: readonly [Contents, Contents, Contents],
  left: readonly [Lines, Lines, Lines],
];

const pieces: readonly (readonly object[])[] = [
  [
    thought('hmm '),
    thought('one'),
    text('I look'),
    text('. '),
    thought('hmm two'),
    text('Now th'),
    text('e file'),
    text('. '),
    signed(readFile('c1'), 's1'),
    text(''),
  ],
  [
    thought('hmm three'),
    text('Aga'),
    text('in. '),
    thought('hmm four'),
    text('It is'),
    text(' 5.'),
    signed(text(''), 's3'),
    text(''),
  ],
  [thought('hmm five'), thought('hmm six'), text('Still 5.'), signed(text(''), 's5'), text('')],
];

const read = 'call c1 read_file({"path":"a.log"})';

const clients: Readonly<Record<string, Copies>> = {
  '@google/genai, plain: one content': [
    [
      [
        model(
          thought('hmm one'),
          text('I look. '),
          thought('hmm two'),
          text('Now the file. '),
          signed(readFile('c1'), 's1'),
        ),
      ],
      [model(thought('hmm three'), text('Again. '), thought('hmm four'), signed(text('It is 5.'), 's3'))],
      [model(thought('hmm five'), thought('hmm six'), signed(text('Still 5.'), 's5'))],
    ],
    [
      [`assistant: reasoning "hmm two", "Now the file. ", ${read}`],
      ['assistant: reasoning "hmm four", "It is 5."'],
      ['assistant: reasoning "hmm six", "Still 5."'],
    ],
  ],
  '@google/genai chats, streamed: one content for each chunk': [
    [
      pieces[0]!.map((part) => ({ parts: [part], role: 'model' })),
      pieces[1]!.map((part) => ({ parts: [part], role: 'model' })),
      pieces[2]!.map((part) => ({ parts: [part], role: 'model' })),
    ],
    [
      [
        'assistant: reasoning "hmm two"',
        'assistant: "Now th"',
        'assistant: "e file"',
        'assistant: ". "',
        `assistant: ${read}`,
        'assistant: ""',
      ],
      [
        'assistant: reasoning "hmm four"',
        'assistant: "It is"',
        'assistant: " 5."',
        'assistant: ""',
        'assistant: ""',
      ],
      ['assistant: reasoning "hmm six"', 'assistant: "Still 5."', 'assistant: ""', 'assistant: ""'],
    ],
  ],
  '@google/genai with a history kept by hand: one part for each chunk': [
    [[model(...pieces[0]!)], [model(...pieces[1]!)], [model(...pieces[2]!)]],
    [
      [`assistant: reasoning "hmm two", "Now th", "e file", ". ", ${read}, ""`],
      ['assistant: reasoning "hmm four", "It is", " 5.", "", ""'],
      ['assistant: reasoning "hmm six", "Still 5.", "", ""'],
    ],
  ],
  'ai, streamed: chunks joined, thoughts of two rounds in one': [
    [
      [
        model(
          thought('hmm one'),
          text('I look. '),
          thought('hmm two'),
          text('Now the file. '),
          signed(readFile('c1'), 's1'),
        ),
      ],
      [model(thought('hmm three'), text('Again. '), thought('hmm four'), signed(text('It is 5.'), 's3'))],
      [model(thought('hmm fivehmm six'), signed(text('Still 5.'), 's5'))],
    ],
    [
      [`assistant: reasoning "hmm two", "Now the file. ", ${read}`],
      ['assistant: reasoning "hmm four", "It is 5."'],
      ['assistant: reasoning "hmm six", "Still 5."'],
    ],
  ],
  'a client that keeps no thoughts: texts of two rounds in one': [
    [
      [model(text('I look. Now the file. '), signed(readFile('c1'), 's1'))],
      [model(signed(text('Again. It is 5.'), 's3'))],
      [model(text('Still 5.'), { thoughtSignature: 's5' })],
    ],
    [
      [`assistant: "Now the file. ", ${read}`],
      ['assistant: "It is 5."'],
      ['assistant: "Still 5.", signed reasoning '],
    ],
  ],
};

describe('the copy of', () => {
  it.each(Object.entries(clients))('%s', (_, [[one, two, three], left]) => {
    const lines = linesWithHiddenRecalls(codec, 'contents', [
      [user(text('What?'))],
      { copy: one, hiddenRecall: replies[0] },
      [user(result('c1'))],
      { copy: two, hiddenRecall: replies[1] },
      [user(text('Sure?'))],
      { copy: three, hiddenRecall: replies[2] },
      [user(text('Thanks.'))],
    ]);
    expect(lines).toEqual([
      'user: "What?"',
      'assistant: reasoning "hmm one", "I look. ", call m1 read_memory({"id":"mem_a"})',
      'tool: result m1 ["one"]',
      ...left[0],
      'tool: result c1 ["ok"]',
      'assistant: reasoning "hmm three", "Again. ", call m2 read_memory({"id":"mem_a"})',
      'tool: result m2 ["two"]',
      ...left[1],
      'user: "Sure?"',
      'assistant: reasoning "hmm five", call m3 read_memory({"id":"mem_a"})',
      'tool: result m3 ["three"]',
      ...left[2],
      'user: "Thanks."',
    ]);
  });
});

describe('what is left of a copy', () => {
  const hiddenRecall = replies[1];
  const sent = (copy: Contents) => {
    const { body } = withHiddenRecalls(codec, 'contents', [[user(text('What?'))], { copy, hiddenRecall }]);
    const { contents } = JSON.parse(new TextDecoder().decode(body)) as { contents: Contents };
    return contents.slice(3);
  };

  it('keeps the signature of a text that is cut', () => {
    expect(sent([model(signed(text('Again. It is 5.'), 's3'))])).toEqual([
      model(signed(text('It is 5.'), 's3')),
    ]);
  });

  it('keeps an empty text that is signed', () => {
    expect(sent([model(text('Again. ')), model(text('It is 5.')), model(signed(text(''), 's3'))])).toEqual([
      model(text('It is 5.')),
      model(signed(text(''), 's3')),
    ]);
  });

  it('keeps a signed end without text before the recall', () => {
    const bare = hiddenRecallOf(
      [[model(signed(recall('m1'), 's0')), { m1: 'one' }]],
      model(signed(text(''), 's1')),
    );
    const copy = [model(signed(text(''), 's1')), model(text(''))];
    const { body } = withHiddenRecalls(codec, 'contents', [
      [user(text('What?'))],
      { copy, hiddenRecall: bare },
    ]);
    expect(JSON.parse(new TextDecoder().decode(body))).toEqual({
      contents: [
        user(text('What?')),
        model(signed(recall('m1'), 's0')),
        user({ functionResponse: { id: 'm1', name: 'read_memory', response: { output: 'one' } } }),
        ...copy,
      ],
    });
  });
});

describe('with calls of the client', () => {
  const withoutIds = hiddenRecallOf([
    [model(text('Both. '), signed(readFile(), 's0'), recall(), readFile()), { '#2': 'one' }],
  ]);

  it.each<[string, string | undefined, string | undefined]>([
    ['no ids', undefined, undefined],
    ['ids that the client made up', 'x7', 'x8'],
  ])('a recall comes back with %s, in the order of the calls', (_, first, second) => {
    const steps: readonly Step[] = [
      [user(text('What?'))],
      {
        copy: [model(text('Both. '), signed(readFile(first), 's0'), readFile(second))],
        hiddenRecall: withoutIds,
      },
      [user(result(first), result(second))],
    ];
    const id = first ?? '#read_file';
    expect(linesWithHiddenRecalls(codec, 'contents', steps)).toEqual([
      'user: "What?"',
      `assistant: "Both. ", call ${id} read_file({"path":"a.log"}), call #read_memory read_memory({"id":"mem_a"}), call ${second ?? '#read_file'} read_file({"path":"a.log"})`,
      `tool: result ${id} ["ok"], result #read_memory ["one"], result ${second ?? '#read_file'} ["ok"]`,
    ]);
  });

  it('the turn is unchanged, byte for byte, when the provider sent ids', () => {
    const turn = model(signed(recall('m1'), 's0'), readFile('c1'));
    const steps: readonly Step[] = [
      [user(text('What?'))],
      // Without the private call, the client's call carries the signature.
      {
        copy: [model(signed(readFile('c1'), 's0')), model(text(''))],
        hiddenRecall: hiddenRecallOf([[turn, { m1: 'one' }]]),
      },
      [user(result('c1'))],
    ];
    const { body } = withHiddenRecalls(codec, 'contents', steps);
    expect(JSON.parse(new TextDecoder().decode(body))).toEqual({
      contents: [
        user(text('What?')),
        turn,
        user(
          { functionResponse: { id: 'm1', name: 'read_memory', response: { output: 'one' } } },
          result('c1'),
        ),
      ],
    });
    expect(new TextDecoder().decode(body)).toContain(JSON.stringify(turn));
  });

  it('random ids in calls and results of the client stay when there was no recall with them', () => {
    const hiddenRecall = hiddenRecallOf(
      [[model(text('I look. '), signed(recall(), 's0')), { '#1': 'one' }]],
      model(signed(readFile(), 's1')),
    );
    const copy = [model(text('I look. '), signed(readFile('x7'), 's1'))];
    const steps: readonly Step[] = [[user(text('What?'))], { copy, hiddenRecall }, [user(result('x7'))]];
    expect(linesWithHiddenRecalls(codec, 'contents', steps)).toEqual([
      'user: "What?"',
      'assistant: "I look. ", call #read_memory read_memory({"id":"mem_a"})',
      'tool: result #read_memory ["one"]',
      'assistant: call x7 read_file({"path":"a.log"})',
      'tool: result x7 ["ok"]',
    ]);
  });
});
