import { describe, expect, it } from 'vitest';
import type { ModelReply, RecallAnswer } from '../codecs/codec.ts';
import { recordHiddenRecalls } from './recall-loop.ts';

const call = (id: string) => ({ id, name: 'read_memory', argumentsJson: '{}' });
const answers = (id: string): readonly RecallAnswer[] => [{ call: call(id), text: `answer ${id}` }];

/** Returns a reply with one recall, or with only text. */
function replyOf(replyId: string | undefined, recall?: string): ModelReply {
  return {
    text: '',
    recalls: recall === undefined ? [] : [call(recall)],
    calls: [],
    usage: undefined,
    rawUsage: undefined,
    finish: 'completed',
    turn: new TextEncoder().encode(`turn ${replyId}`),
    replyId,
  };
}

function openRecorder(knows: 'first' | 'last', fails = false) {
  const kept: unknown[] = [];
  const problems: string[] = [];
  const keep = (record: unknown) => {
    kept.push(record);
    return fails ? Promise.reject(new Error('down')) : Promise.resolve();
  };
  const recorder = recordHiddenRecalls(
    {
      remember: ({ rounds, closing }) => keep([rounds.length, closing && new TextDecoder().decode(closing)]),
      keepReply: (knownAs, { name, pendingAnswers }) =>
        keep([knownAs, name, pendingAnswers.map(({ text }) => text)]),
    },
    { problem: (text) => problems.push(text) },
    knows,
  );
  return { recorder, kept, problems };
}

const unread = 'Memory was not read: the answer had ended. Go on with what is there.';

describe('a reply without recalls', () => {
  it.each(['first', 'last'] as const)('stores nothing (the client knows the %s)', async (knows) => {
    const { recorder, kept } = openRecorder(knows);
    await recorder.complete(replyOf('r1'));
    await recorder.disconnected();
    expect(kept).toEqual([]);
  });
});

describe('a reply with recalls', () => {
  it('can be continued from its end', async () => {
    const { recorder, kept } = openRecorder('first');
    recorder.answered(replyOf('r1', 'a'), answers('a'));
    recorder.answered(replyOf('r2', 'b'), answers('b'));
    await recorder.complete(replyOf('r3'));
    await recorder.disconnected();
    expect(kept).toEqual([
      [2, 'turn r3'],
      ['r1', 'r3', []],
    ]);
  });

  it('can be continued by a client that knows its last id', async () => {
    const { recorder, kept } = openRecorder('last');
    recorder.answered(replyOf('r1', 'a'), answers('a'));
    await recorder.complete(replyOf('r2'));
    expect(kept).toEqual([[1, 'turn r2']]);
  });

  it.each([
    ['first', 'r1'],
    ['last', 'r2'],
  ] as const)('may owe the answers of its last round (the client knows the %s)', async (knows, knownAs) => {
    const { recorder, kept } = openRecorder(knows);
    recorder.answered(replyOf('r1', 'a'), answers('a'));
    const last = { ...replyOf('r2', 'b'), calls: [{ ...call('c'), name: 'run' }] };
    recorder.answered(last, answers('b'));
    await recorder.complete(last);
    expect(kept).toEqual([
      [2, undefined],
      [knownAs, 'r2', ['answer b']],
    ]);
  });

  it('may end in an unanswered recall', async () => {
    const { recorder, kept } = openRecorder('last');
    await recorder.complete(replyOf('r1', 'a'));
    expect(kept).toEqual([['r1', 'r1', [unread]]]);
  });

  it.each([
    ['the client left', 'disconnected', [[1, undefined]]],
    ['the client got an error', 'forget', []],
  ] as const)('can be continued after its last answer when %s', async (_, end, recalls) => {
    const { recorder, kept } = openRecorder('first');
    recorder.answered(replyOf('r1', 'a'), answers('a'));
    await recorder[end]();
    await recorder.disconnected();
    expect(kept).toEqual([...recalls, ['r1', 'r1', ['answer a']]]);
  });

  it('cannot be continued when the provider keeps no replies', async () => {
    const { recorder, kept } = openRecorder('first');
    recorder.answered(replyOf(undefined, 'a'), answers('a'));
    await recorder.complete(replyOf(undefined));
    expect(kept).toEqual([[1, 'turn undefined']]);
  });

  it('loses no request when the store fails', async () => {
    const { recorder, kept, problems } = openRecorder('first', true);
    recorder.answered(replyOf('r1', 'a'), answers('a'));
    await recorder.complete(replyOf('r2'));
    expect([kept.length, problems]).toEqual([
      2,
      ['the hidden recalls could not be stored for later requests'],
    ]);
  });
});

describe('a store that hangs', () => {
  it.each(['complete', 'disconnected', 'forget'] as const)(
    'does not delay a reply that ends with "%s"',
    async (end) => {
      const stuck = () => new Promise<never>(() => {});
      const note = { problem: (text: string) => expect.unreachable(text) };
      const recorder = recordHiddenRecalls({ remember: stuck, keepReply: stuck }, note, 'first', 1);
      recorder.answered(replyOf('r1', 'a'), answers('a'));
      recorder.answered(replyOf('r2', 'b'), answers('b'));
      await recorder[end](replyOf('r3'));
    },
  );

  it('reports a failure after the reply', async () => {
    const work = Promise.withResolvers<never>();
    const problems: string[] = [];
    const note = { problem: (text: string) => void problems.push(text) };
    const recorder = recordHiddenRecalls(
      { remember: () => work.promise, keepReply: () => work.promise },
      note,
      'first',
      1,
    );
    recorder.answered(replyOf('r1', 'a'), answers('a'));
    await recorder.complete(replyOf('r2'));
    expect(problems).toEqual([]);
    work.reject(new Error('down'));
    await expect.poll(() => problems).toEqual(['the hidden recalls could not be stored for later requests']);
  });
});
