import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { chatBody } from '../../test/support/chat-conversation.ts';
import { createLeporello, type Leporello } from './leporello.ts';

const body = chatBody([{ user: 'Hi' }]);
const request = { codec: openaiChat, body };
const leporello = createLeporello();
const prepared = await leporello.prepare(request);

/** Calls as a program without types may make them. */
type WrongCall = (library: Record<keyof Leporello, (...values: readonly unknown[]) => unknown>) => unknown;

const tenantWords = "1 to 64 of a-z, 0-9 and -, such as a digest of a user's name in hex";
const argumentWords =
  'the JSON text of the arguments that the model sent, such as call.arguments or JSON.stringify(call.input)';
const notPrepared =
  'but must be what prepare() of the same instance resolved with: const prepared = await leporello.prepare({ codec, body }).';

const noFormat =
  'so its wire format cannot be found. Pass codec, one of those that leporello/codecs/ exports: openaiChat, openaiResponses, anthropicMessages, gemini.';

const wrong: readonly (readonly [name: string, call: WrongCall, message: string])[] = [
  [
    'prepare without a request',
    (library) => library.prepare(),
    'request is missing, but must be an object with codec, body, tenant and refusal.',
  ],
  [
    'prepare with the name of a codec',
    (library) => library.prepare({ ...request, codec: 'openai' }),
    'request.codec is a text of 6 characters, but must be a codec, imported from leporello/codecs/.',
  ],
  [
    'prepare with a number as the body',
    (library) => library.prepare({ ...request, body: 5 }),
    'request.body is a value of the type number, but must be the request body: an object, its JSON text, or the bytes of that text.',
  ],
  [
    'prepare with messages instead of a body',
    (library) => library.prepare({ body: [{ role: 'user', content: 'Hi' }] }),
    'request.body is a list, but must be the request body: an object, its JSON text, or the bytes of that text.',
  ],
  [
    'prepare with a body of no known format',
    (library) => library.prepare({ body: { model: 'm', prompt: 'a secret' } }),
    `request.body is an object with the members model, prompt, ${noFormat}`,
  ],
  [
    'prepare with a text that is no JSON',
    (library) => library.prepare({ body: 'a secret' }),
    'request.body is not one JSON object. Pass the whole body of a request to a model.',
  ],
  [
    'prepare with a misspelled option',
    (library) => library.prepare({ ...request, tennant: 'me' }),
    'request.tennant is not an option. Did you mean request.tenant? Known options: codec, body, tenant, refusal.',
  ],
  [
    'prepare with a tenant that is not allowed',
    (library) => library.prepare({ ...request, tenant: 'User 5' }),
    `request.tenant is "User 5", but must be ${tenantWords}.`,
  ],
  [
    'prepare with a response as the refusal',
    (library) => library.prepare({ ...request, refusal: { status: 400, body: {} } }),
    'request.refusal.body is a value of the type object, but must be the text of the response: await response.text().',
  ],
  [
    'compact with a refusal',
    (library) => library.compact({ ...request, refusal: { status: 400, body: '' } }),
    'request.refusal is not an option. Known options: codec, body, tenant.',
  ],
  [
    'recall of a body',
    (library) => library.recall(body, '{}'),
    `prepared is ${body.length} bytes, ${notPrepared}`,
  ],
  [
    'recall without await of prepare',
    (library) => library.recall(leporello.prepare(request), '{}'),
    `prepared is a value of the type object, ${notPrepared}`,
  ],
  [
    'recall with parsed arguments',
    (library) => library.recall(prepared, { id: 'mem_0123456789abcdef' }),
    `argumentsJson is a value of the type object, but must be ${argumentWords}.`,
  ],
  [
    'recall with no tokens',
    (library) => library.recall(prepared, '{}', 0),
    'maxTokens is 0, but must be a whole number of at least 1.',
  ],
  [
    'readMemory with parsed arguments',
    (library) => library.readMemory({}),
    `argumentsJson is a value of the type object, but must be ${argumentWords}.`,
  ],
  [
    'readMemory for a tenant that is not allowed',
    (library) => library.readMemory('{}', { tenant: 'User 5' }),
    `tenant is "User 5", but must be ${tenantWords}.`,
  ],
  [
    'original without an id',
    (library) => library.original(''),
    'id is "", but must be a text of at least one character.',
  ],
  [
    'compressResult without a budget',
    (library) => library.compressResult({ text: 'a' }),
    'request.budget is missing, but must be an object with tokens and results.',
  ],
  [
    'compressResult for no results',
    (library) => library.compressResult({ text: 'a', budget: { tokens: Number.NaN, results: 0 } }),
    'request.budget.tokens is NaN, but must be a finite number.\nrequest.budget.results is 0, but must be a number of at least 1.',
  ],
  [
    'compressResult of a value',
    (library) => library.compressResult({ text: ['a'], budget: { tokens: 1, results: 1 } }),
    'request.text is a list, but must be the text of the result.',
  ],
  [
    'learn with a number',
    () => prepared.learn(5 as never),
    'usage is 5, but must be an object with promptTokens.',
  ],
  [
    'learn with a negative number',
    () => prepared.learn({ promptTokens: -1 }),
    'usage.promptTokens is -1, but must be a number of at least 0.',
  ],
];

describe('a wrong call', () => {
  it.each(wrong)('is refused at once: %s', (_, call, message) => {
    expect(() => call(leporello as never)).toThrow(expect.objectContaining({ code: 'bad-config', message }));
  });
});

describe('a part of the program that is wrong', () => {
  const jobs = Array.from({ length: 30 }, (_, at) => ({
    calls: [{ id: `c${at}`, name: 'run', input: '{}', result: `line ${at}\n`.repeat(400) }],
  }));
  const long = { codec: openaiChat, body: chatBody([{ user: 'Go' }, ...jobs], { tools: ['run'] }) };
  const strategy = (propose: () => unknown) => ({ name: 'mine', reach: 'history', propose });
  const replacing = (message: number) => ({
    kind: 'replace-text',
    at: { message, part: 0, text: 0 },
    stub: '',
    memory: undefined,
  });
  const fold = () => ({
    trigger: 'mine',
    goal: { unit: 'tokens', target: 100 },
    atMost: undefined,
    force: false,
  });
  const wrongParts: readonly (readonly [name: string, settings: object, reason: string])[] = [
    [
      'a trigger that throws',
      { triggers: [{ name: 'mine', demand: () => [].at(0)!['secret'] }] },
      'The trigger mine threw TypeError, but must not throw.',
    ],
    [
      'a trigger that returns no demand',
      { triggers: [{ name: 'mine', demand: () => true }] },
      'The trigger mine returned true, but must return undefined or { trigger, goal: { unit, target }, atMost, force }.',
    ],
    [
      'a strategy that throws',
      {
        triggers: [{ name: 'mine', demand: fold }],
        strategies: [
          strategy(() => {
            throw new RangeError('a secret');
          }),
        ],
      },
      'The strategy mine threw RangeError, but must not throw.',
    ],
    [
      'a strategy that returns no list',
      { triggers: [{ name: 'mine', demand: fold }], strategies: [strategy(() => 'a secret')] },
      'The strategy mine returned a value of the type string, but must return a list of edits.',
    ],
    [
      'a strategy that returns an edit of no known kind',
      {
        triggers: [{ name: 'mine', demand: fold }],
        strategies: [strategy(() => [{ type: 'drop-message', message: 1 }])],
      },
      'The strategy mine returned an edit whose kind is missing, but must return only replace-text, replace-input, replace-media, drop-part, drop-message, insert-message.',
    ],
    ...(
      [
        ['a place that is not there', [replacing(999)], 'text 0 of part 0 of message 999'],
        ['no message that is there', [{ kind: 'drop-message', message: 999 }], 'message 999'],
      ] as const
    ).map(
      ([what, edits, place]) =>
        [
          `a strategy that edits ${what}`,
          { triggers: [{ name: 'mine', demand: fold }], strategies: [strategy(() => edits)] },
          `The strategy mine returned an edit of ${place}, but must return only edits of places that are there.`,
        ] as const,
    ),
    ...(
      [
        [replacing(2), 'text 0 of part 0 of message 2'],
        [
          { kind: 'replace-input', message: 1, part: 0, input: '{"a":1}', memory: 'mem_1' },
          'the arguments of part 0 of message 1',
        ],
      ] as const
    ).map(
      ([edit, place]) =>
        [
          `a strategy that replaces ${place} twice`,
          { triggers: [{ name: 'mine', demand: fold }], strategies: [strategy(() => [edit, { ...edit }])] },
          `The strategy mine returned two edits that replace ${place}, but must return at most one for each place.`,
        ] as const,
    ),
  ];

  it.each(wrongParts)('is named in the outcome: %s', async (_, settings, reason) => {
    const { outcome, body: sent } = await createLeporello(settings).prepare(long);
    expect(outcome).toEqual({ status: 'failed', reason: `bad-config: ${reason}` });
    expect(sent).toBe(long.body);
  });
});

describe('a right call', () => {
  it('is accepted with every argument', async () => {
    const { outcome } = await leporello.prepare({ ...request, tenant: 'user-5' });
    expect(outcome.status).toBe('untouched');
    prepared.learn({ promptTokens: 8 });
    prepared.learn({ promptTokens: undefined });
    expect(await leporello.recall(prepared, 'no JSON', 100)).toContain('No memory with id');
    const budget = { tokens: -5, results: 1 };
    expect((await leporello.compressResult({ text: 'a', budget, waitMs: 0 })).text).toBe('a');
  });
});
