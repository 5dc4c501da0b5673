/** Compares bodies of conversations that continue, written and read with everything that is remembered, with those of fresh copies. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { Paused, openRun, runPausably } from '../conversation/steps.ts';
import { commonLength, sha256 } from '../store/encrypted-store.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec, RecallTool } from './codec.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';
import { createSeenBodies } from './earlier-bodies.ts';

const recallTool: RecallTool = { name: 'read_memory', description: 'Reads.', parameters: { type: 'object' } };
const encoder = new TextEncoder();

const formats: readonly { readonly codec: Codec; readonly list: string; readonly tool: object }[] = [
  { codec: openaiChat, list: 'messages', tool: { type: 'function', function: { name: 'run' } } },
  { codec: anthropicMessages, list: 'messages', tool: { name: 'run', input_schema: {} } },
  { codec: openaiResponses, list: 'input', tool: { type: 'function', name: 'run' } },
];

/** A conversation and the edits that it is sent with. */
type State = { readonly texts: readonly string[]; readonly edits: readonly Edit[] };

const change = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('append'), stub: fc.string({ maxLength: 9 }), at: fc.nat(3) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('go back'), stub: fc.constant(''), at: fc.nat(30) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rewrite'), stub: fc.string(), at: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop'), stub: fc.constant(''), at: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('insert'), stub: fc.string(), at: fc.nat(30) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('restore'), stub: fc.constant(''), at: fc.nat(30) }),
  },
);

it('are the same bytes and the same messages, whatever was written before', () => {
  const walks = fc.record({
    format: fc.constantFrom(...formats),
    changes: fc.array(change, { maxLength: 25 }),
    hasToolFirst: fc.boolean(),
    pausesAfter: fc.nat(12),
  });
  fc.assert(
    fc.property(walks, ({ format, changes, hasToolFirst, pausesAfter }) => {
      const { codec, list, tool } = format;
      const bodyOf = (texts: readonly string[]) => {
        const messages = texts.map((content, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content }));
        const fields = [`"tools":${JSON.stringify([tool])}`, `"${list}":${JSON.stringify(messages)}`];
        return encoder.encode(`{${(hasToolFirst ? fields : fields.toReversed()).join(',')},"model":"m"}`);
      };
      const reading = {
        digest: sha256,
        blocks: new Map(),
        seen: createSeenBodies({ commonLength }),
      };
      const fresh = () => ({ digest: sha256, blocks: new Map() });
      const start: State = {
        texts: Array.from({ length: 6 }, (_, at) => `${at} `.repeat(4_000)),
        edits: [],
      };
      const states = [start];
      for (const one of changes) {
        const state = changed(states, one);
        states.push(state);
        const { texts, edits } = state;
        const conversation = codec.read(bodyOf(texts), reading);
        const body = pausing(pausesAfter, () => codec.write(conversation, edits, { recallTool }));
        const again = codec.read(bodyOf(texts), fresh());
        expect(body).toEqual(codec.write(again, edits, { recallTool }));
        const sent = pausing(pausesAfter, () => codec.read(body, reading));
        expect(sent).toEqual(codec.read(body.slice(), fresh()));
      }
    }),
    { numRuns: 300 },
  );
});

/** Plays requests of one client in turn, and compares each body and its messages with those of fresh copies. */
function openChat() {
  const reading = {
    digest: sha256,
    blocks: new Map(),
    seen: createSeenBodies({ commonLength }),
  };
  const bodyOf = (texts: readonly string[]) =>
    encoder.encode(JSON.stringify({ messages: texts.map((content) => ({ role: 'user', content })) }));
  const fresh = () => ({ digest: sha256, blocks: new Map() });
  /** Reads a request. `write` gives it some edits, and returns a function that reads the body. Both may pause after some steps. */
  function read(texts: readonly string[]) {
    const conversation = openaiChat.read(bodyOf(texts), reading);
    return function write(edits: readonly Edit[], writing = openRun(() => false)) {
      const body = runPausably(writing, () => openaiChat.write(conversation, edits));
      expect(body).toEqual(openaiChat.write(openaiChat.read(bodyOf(texts), fresh()), edits));
      const expected = openaiChat.read(body.slice(), fresh());
      return (run = openRun(() => false)) =>
        expect(runPausably(run, () => openaiChat.read(body, reading))).toEqual(expected);
    };
  }
  return { read, write: (texts: readonly string[], edits: readonly Edit[]) => read(texts)(edits) };
}

const first = Array.from({ length: 6 }, (_, at) => `${at} `.repeat(4_000));

function replacing(message: number, stub = 'less'): Edit {
  return { kind: 'replace-text', at: { message, part: 0, text: 0 }, stub, memory: undefined };
}

it('are not mixed up by branches in which one edit changes different places', () => {
  const { write } = openChat();
  const [early, late] = [replacing(2), replacing(9)];
  const long = ['one', 'two', 'three'].map((word) => `${word} `.repeat(100));
  write(first, [early])();
  write([...first, ...long], [early])();
  write([...first, '1', '2', '3', 'a result'], [early, late])();
  write([...first, ...long, 'a result'], [early, late])();
});

it('may lose all messages but the new ones', () => {
  const { write } = openChat();
  const edits = first.map((_, message): Edit => ({ kind: 'drop-message', message, memory: undefined }));
  write(first, edits)();
  write([...first, 'new'], edits)();
});

it('are not mixed up when a branch is written while the other one is being read', () => {
  const { write } = openChat();
  const edits = [replacing(2)];
  write(first, edits)();
  const readOne = write([...first, 'one', 'two', 'three'], edits);
  let left = 4;
  const run = openRun(() => left-- === 0);
  expect(() => readOne(run)).toThrow(Paused);
  const readOther = write([...first, 'another'], edits);
  readOne(run);
  readOther();
  write([...first, 'another', 'and more'], edits)();
});

it('are not mixed up when a branch is written while the other one is being written', () => {
  for (let steps = 0; steps < 8; steps++) {
    const { read, write } = openChat();
    const begun = [...first, 'one', 'two'];
    const early = replacing(2);
    write(begun, [early])();
    const writeOne = read([...begun, 'three', 'four']);
    let left = steps;
    const run = openRun(() => left-- === 0);
    const edits = [early, replacing(9)];
    const writeOn = () => writeOne(edits, run);
    expect(writeOn).toThrow(Paused);
    // The stub is as long as the text that it replaces.
    write([...begun, 'another'], [early, replacing(7, 'TWO')])();
    writeOn()();
    write([...begun, 'three', 'four', 'and more'], edits)();
  }
});

it.each([
  [0, 1],
  [1, 0],
])('are not mixed up when a request is written twice before form %d and then %d is read', (...order) => {
  const write = openChat().read([...first, 'one', 'two', 'three']);
  const early = replacing(2);
  const forms = [write([early]), write([early, replacing(7)])];
  for (const form of order) forms[form]!();
});

/** Runs a function that pauses once after some steps. */
function pausing<T>(after: number, run: () => T): T {
  let left = after;
  const slice = openRun(() => left-- === 0);
  for (;;) {
    try {
      return runPausably(slice, run);
    } catch (error) {
      if (!(error instanceof Paused)) throw error;
    }
  }
}

type Change = { readonly kind: string; readonly stub: string; readonly at: number };

/** Returns the next state of a conversation. Edits keep their identity, and their places even if the message there changes. */
function changed(states: readonly State[], { kind, stub, at }: Change): State {
  const { texts, edits } = states.at(-1)!;
  const place = at % texts.length;
  const replace = (message: number): readonly Edit[] => {
    if (stub === '' || isEdited(edits, message)) return edits;
    const text = { message, part: 0, text: 0 };
    return [...edits, { kind: 'replace-text', at: text, stub, memory: undefined }];
  };
  if (kind === 'append') {
    const longer = [...texts, ...Array.from({ length: at + 1 }, (_, more) => `new ${stub} ${more}`)];
    return { texts: longer, edits: replace(texts.length) };
  }
  if (kind === 'rewrite') return { texts: texts.with(place, `other ${stub}`), edits: replace(place) };
  if (kind === 'go back') return within({ texts: texts.slice(0, place + 1), edits });
  if (kind === 'restore') return states[at % states.length]!;
  if (kind === 'insert') {
    const isTaken = edits.some((edit) => edit.kind === 'insert-message' && edit.before === place);
    const edit: Edit = { kind: 'insert-message', before: place, role: 'user', text: stub };
    return isTaken ? { texts, edits } : { texts, edits: [edit, ...edits] };
  }
  if (isEdited(edits, place)) return { texts, edits };
  return { texts, edits: [{ kind: 'drop-message', message: place, memory: undefined }, ...edits] };
}

function isEdited(edits: readonly Edit[], message: number): boolean {
  return edits.some((edit) => edit.kind !== 'insert-message' && lastMessageOf(edit) === message);
}

/** Leaves out the edits of messages that are gone. */
function within({ texts, edits }: State): State {
  return { texts, edits: edits.filter((edit) => lastMessageOf(edit) < texts.length) };
}
