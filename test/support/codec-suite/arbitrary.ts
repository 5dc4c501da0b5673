/** Arbitrary conversations, replies and edits, in the suite's format-neutral terms. */
import * as fc from 'fast-check';
import type { ToolCall } from '../../../src/codecs/codec.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import { textsOf } from '../../../src/conversation/messages.ts';
import type { Edit } from '../../../src/conversation/edit.ts';
import { type PartPlace, privateToolsOf } from '../../../src/conversation/turns.ts';
import type { NeutralRequest, NeutralTurn, RequestFixture, ScriptedPart, ScriptedTurn } from './fixture.ts';

/** The name under which the suite offers the recall tool. */
export const recallName = 'read_memory';

const notesName = 'save_context';

/** The recall tool alone, as most requests offer it. */
export const onlyRecall = privateToolsOf([recallName]);

/** The recall tool with the tool for notes, and the orders in which a model may call both. */
export const bothPrivate = privateToolsOf([recallName, notesName]);
export const privateOrders = [
  [recallName, notesName],
  [notesName, recallName],
] as const;

/** Any text, including half of a surrogate pair and characters that JSON must escape. */
export const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('"quoted"', '\\', 'a\nb\tc\u0000', '\ud83d', '\u{1f600}', '\u2028', '[{"a":1}]', ' '),
);

const someText = anyText.filter((text) => text !== '');

const argumentsJson = fc.oneof(
  fc.constantFrom(
    '{}',
    '{"path":"src/a.ts"}',
    '{"id":12345678901234567890,"f":1.0}',
    '{"text":"\\u00e9 \\"x\\""}',
  ),
  fc
    .dictionary(fc.string({ maxLength: 5 }), fc.oneof(someText, fc.integer()), { maxKeys: 3 })
    .map((value) => JSON.stringify(value)),
);

/** Ids repeat between steps, as they do in recorded runs, and differ within one step. */
const calls = fc.uniqueArray(
  fc.record<ToolCall>({
    id: fc.constantFrom('call_1', 'call_2', 'call_3', 'toolu_é'),
    name: fc.constantFrom('read', 'run', 'read_memory_of_mine'),
    argumentsJson,
  }),
  { selector: (call) => call.id, minLength: 1, maxLength: 3 },
);

const user = someText.map((text): NeutralTurn => ({ say: 'user', text }));

const said = fc
  .record({ text: someText, reasoning: fc.option(someText, { nil: undefined }) })
  .map(({ text, reasoning }) => assistant([], text, reasoning));

const asked = fc
  .record({
    calls,
    text: fc.option(someText, { nil: undefined }),
    reasoning: fc.option(someText, { nil: undefined }),
  })
  // Reasoning with only calls would leave a message of reasoning alone when the calls are removed.
  .map(({ calls: made, text, reasoning }) =>
    assistant(made, text, text === undefined ? undefined : reasoning),
  );

const step = asked.chain((turn): fc.Arbitrary<readonly NeutralTurn[]> => {
  const ids = turn.calls.map((call) => call.id);
  return fc
    .tuple(
      fc.shuffledSubarray(ids, { minLength: ids.length }),
      fc.array(anyText, { minLength: 3, maxLength: 3 }),
    )
    .map(([order, texts]) => [
      turn,
      { say: 'results', results: order.map((id, at) => ({ id, text: texts[at]! })) },
    ]);
});

/** A valid conversation: every call is answered right away. With `open`, the last message may hold unanswered calls. */
export function requests(options: { readonly open?: boolean } = {}): fc.Arbitrary<NeutralRequest> {
  const middle = fc.array(
    fc.oneof(
      user.map((turn) => [turn]),
      said.map((turn) => [turn]),
      step,
    ),
    { maxLength: 6 },
  );
  const end = options.open
    ? fc.oneof(
        fc.constant([]),
        asked.map((turn) => [turn]),
      )
    : fc.constant([]);
  return fc
    .record({
      system: fc.option(someText, { nil: undefined }),
      first: user,
      middle,
      end,
      tools: fc.constantFrom(['read', 'run'], ['read', 'run', 'read_memory_of_mine']),
      stream: fc.boolean(),
    })
    .map(({ system, first, middle: turns, end: last, tools, stream }) => ({
      turns: [
        ...(system === undefined ? [] : [{ say: 'system', text: system } as const]),
        first,
        ...turns.flat(),
        ...last,
      ],
      tools,
      stream,
    }));
}

/** The same for a format in which the user may not speak twice in a row: the assistant says something between. */
export function requestsFor(
  { userTwiceInARow }: Pick<RequestFixture, 'userTwiceInARow'>,
  options: { readonly open?: boolean } = {},
): fc.Arbitrary<NeutralRequest> {
  const any = requests(options);
  if (userTwiceInARow === 'allowed') return any;
  return any.map((request) => ({
    ...request,
    turns: request.turns.flatMap((turn, at) =>
      turn.say === 'user' && request.turns[at - 1]?.say === 'user'
        ? [assistant([], 'Go on.', undefined), turn]
        : [turn],
    ),
  }));
}

function assistant(
  made: readonly ToolCall[],
  text: string | undefined,
  reasoning: string | undefined,
): NeutralTurn & { say: 'assistant' } {
  return {
    say: 'assistant',
    calls: made,
    ...(text === undefined ? {} : { text }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
}

/** A text cut into pieces anywhere, even between the halves of a surrogate pair; no piece is empty. */
function cut(text: fc.Arbitrary<string>): fc.Arbitrary<readonly string[]> {
  return fc.tuple(text, fc.array(fc.nat(40), { maxLength: 4 })).map(([whole, cuts]) => {
    const places = [...new Set([0, ...cuts.map((place) => place % (whole.length + 1)), whole.length])];
    places.sort((a, b) => a - b);
    return places.slice(1).map((place, at) => whole.slice(places[at], place));
  });
}

/** Arguments as a model writes them: an object, so never an empty text. */
function callPart(name: fc.Arbitrary<string>): fc.Arbitrary<ScriptedPart> {
  return fc
    .record({ name, pieces: cut(argumentsJson) })
    .map(({ name: called, pieces }) => ({ type: 'call', id: '', name: called, pieces }));
}

const textPart = cut(someText).map((pieces): ScriptedPart => ({ type: 'text', pieces }));
const reasoningPart = cut(someText).map((pieces): ScriptedPart => ({ type: 'reasoning', pieces }));
const recallPart = callPart(fc.constant(recallName));
// `read` is a prefix of the recall tool's name.
const clientPart = callPart(fc.constantFrom('read', 'run', 'read_memory_of_mine'));

const usage = fc.record({
  input: fc.integer({ min: 100, max: 5000 }),
  cacheRead: fc.integer({ min: 0, max: 90 }),
  cacheWrite: fc.constant(0),
  output: fc.integer({ min: 1, max: 500 }),
});

/** A reply with the given kinds of parts, in any order. */
function replies(parts: fc.Arbitrary<readonly ScriptedPart[]>): fc.Arbitrary<ScriptedTurn> {
  return fc.tuple(parts, usage).map(([list, used]) => {
    const numbered = list.map((part, at) => (part.type === 'call' ? { ...part, id: `call_${at}` } : part));
    const waits = numbered.some((part) => part.type === 'call');
    return { parts: numbered, finish: waits ? 'calls' : 'stop', usage: used };
  });
}

/** Any reply, recalls and calls mixed. */
export function anyReply(): fc.Arbitrary<ScriptedTurn> {
  return replies(fc.array(fc.oneof(textPart, reasoningPart, recallPart, clientPart), { maxLength: 5 }));
}

export function replyWithoutRecall(): fc.Arbitrary<ScriptedTurn> {
  return replies(fc.array(fc.oneof(textPart, reasoningPart, clientPart), { maxLength: 5 }));
}

/** A reply with text and one recall or more, and no call of the client's. */
export function replyWithRecallsOnly(): fc.Arbitrary<ScriptedTurn> {
  const other = fc.array(fc.oneof(textPart, reasoningPart, recallPart), { maxLength: 3 });
  return replies(
    fc.tuple(other, recallPart, other).map(([before, recall, after]) => [...before, recall, ...after]),
  );
}

/** Every kind of edit except stubs of media, which have cases of their own (src/codecs/replace-media.test.ts). */
export const editKinds = [
  'replace-text',
  'replace-input',
  'drop-part',
  'drop-message',
  'insert-message',
] as const satisfies readonly Edit['kind'][];

/** One random edit: its numbers are reduced to what the conversation has. */
export type EditSeed = {
  readonly kind: Edit['kind'];
  readonly message: number;
  readonly part: number;
  readonly text: number;
  readonly words: string;
};

export function editSeeds(kinds: readonly Edit['kind'][]): fc.Arbitrary<readonly EditSeed[]> {
  const seed = fc.record({
    kind: fc.constantFrom(...kinds),
    message: fc.nat(1000),
    part: fc.nat(1000),
    text: fc.nat(1000),
    words: someText,
  });
  return fc.array(seed, { maxLength: 8 });
}

/** Returns the edits that the seeds name in this conversation. No text and no arguments are replaced twice. */
export function editsFrom(conversation: Conversation, seeds: readonly EditSeed[]): readonly Edit[] {
  const { messages } = conversation;
  const places = new Set<string>();
  const called = callsIn(conversation);
  return seeds.flatMap((seed): readonly Edit[] => {
    const message = messages[seed.message % messages.length];
    if (!message) return [];
    const part = seed.part % Math.max(1, message.parts.length);
    const texts = message.parts[part] ? textsOf(message.parts[part]) : [];
    switch (seed.kind) {
      case 'insert-message':
        return [{ kind: seed.kind, before: message.index, role: 'user', text: seed.words }];
      case 'drop-message':
        return [{ kind: seed.kind, message: message.index, memory: undefined }];
      case 'drop-part':
        return message.parts[part]
          ? [{ kind: seed.kind, message: message.index, part, memory: undefined }]
          : [];
      case 'replace-text': {
        if (texts.length === 0) return [];
        const at = { message: message.index, part, text: seed.text % texts.length };
        const key = JSON.stringify(at);
        if (places.has(key)) return [];
        places.add(key);
        return [{ kind: seed.kind, at, stub: seed.words, memory: 'mem_1' }];
      }
      case 'replace-media':
        return [];
      case 'replace-input': {
        const at = called[seed.message % Math.max(1, called.length)];
        const key = JSON.stringify(at);
        if (!at || places.has(key)) return [];
        places.add(key);
        const input = `{"words": ${JSON.stringify(seed.words)},"n":1.0}`;
        return [{ kind: seed.kind, ...at, input, memory: 'mem_1' }];
      }
    }
  });
}

/** Returns the calls that have arguments. */
function callsIn({ messages }: Conversation): readonly PartPlace[] {
  return messages.flatMap((message) =>
    message.parts.flatMap((part, index) =>
      part.type === 'tool-call' && part.input.end > part.input.start
        ? [{ message: message.index, part: index }]
        : [],
    ),
  );
}
