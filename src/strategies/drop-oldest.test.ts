import { describe, expect, it } from 'vitest';
import { type Edit, originalsOf } from '../conversation/edit.ts';
import { chatBody, chatMessages, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite, written } from '../../test/support/strategy-suite.ts';
import { dropOldest } from './drop-messages.ts';

strategySuite(dropOldest());

const idOf = () => 'mem_0123456789abcdef';
const steps: readonly Step[] = [
  { system: 'Be brief.' },
  { user: 'First' },
  {
    calls: [
      { name: 'run', result: 'a' },
      { name: 'read_file', result: 'b' },
    ],
  },
  { calls: [{ name: 'run', result: 'c' }] },
  { user: 'Second' },
];
const stub = (messages: number, calls: string) => ({
  role: 'user',
  content:
    `[Folded ${messages} earlier messages of this conversation${calls}. ` +
    'To read it again call read_memory with {"id":"mem_0123456789abcdef"}.]',
});

function messagesAfter(amount: number) {
  const conversation = readChat(chatBody(steps));
  const view = foldView(conversation, {
    idOf,
    excess: { unit: 'messages', amount },
    protects: {
      message: (index) => conversation.messages.length - 1 === index,
      part: () => false,
      recalled: () => false,
    },
  });
  const after = written(conversation, dropOldest().propose(view));
  return (JSON.parse(new TextDecoder().decode(after.body)) as { messages: unknown }).messages;
}

describe('drop-oldest', () => {
  it('drops the oldest messages, calls with all their results, and leaves one stub', () => {
    const kept = chatMessages(steps);
    expect(messagesAfter(2)).toEqual([kept[0], stub(4, ' (calls: read_file ×1, run ×1)'), ...kept.slice(5)]);
  });

  it('drops no more than requested', () => {
    // Replacing one message by one stub saves nothing, so the next pair is dropped, too.
    expect((messagesAfter(1) as unknown[]).length).toBe(5);
  });

  it('never drops system messages or protected content', () => {
    const kept = chatMessages(steps);
    expect(messagesAfter(100)).toEqual([kept[0], stub(6, ' (calls: run ×2, read_file ×1)'), kept.at(-1)]);
  });

  it('treats adjacent assistant messages as one turn', () => {
    const turn: readonly Step[] = [
      { user: 'First' },
      { assistant: 'I think.' },
      { calls: [{ name: 'run', result: 'a' }] },
      { user: 'Second' },
      { user: 'Third' },
    ];
    const conversation = readChat(chatBody(turn));
    const dropped = (amount: number) =>
      dropOldest()
        .propose(foldView(conversation, { idOf, excess: { unit: 'messages', amount } }))
        .flatMap((edit) => (edit.kind === 'drop-message' ? [edit.message] : []));
    expect([dropped(1), dropped(3)]).toEqual([
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ]);
  });

  it('quotes the beginnings of dropped replies', () => {
    const conversation = readChat(
      chatBody([
        { user: 'Why?' },
        { assistant: `It is the cache. ${'More of it. '.repeat(300)}` },
        { user: 'Go' },
      ]),
    );
    const [first] = dropOldest().propose(
      foldView(conversation, { idOf, excess: { unit: 'tokens', amount: Number.POSITIVE_INFINITY } }),
    );
    expect(first?.kind === 'insert-message' && first.text).toMatch(
      /^\[Folded \d earlier messages of this conversation\. Replies in them began "It is the cache\. More of it\. /,
    );
  });

  it('names values of the dropped calls, but none that an earlier stub names', () => {
    const read = (path: string): Step => ({
      calls: [{ name: 'read', input: JSON.stringify({ path }), result: 'a'.repeat(400) }],
    });
    const conversation = readChat(chatBody([read('/a/one.ts'), read('/a/two.ts'), { user: 'Go' }]));
    const textIn = (earlier: string) => {
      const edits: readonly Edit[] = [{ kind: 'insert-message', before: 4, role: 'user', text: earlier }];
      const [first] = dropOldest().propose(
        foldView(conversation, { idOf, edits, excess: { unit: 'messages', amount: 3 } }),
      );
      return first?.kind === 'insert-message' ? first.text : undefined;
    };
    const says = (values: string) =>
      `[Folded 4 earlier messages of this conversation (calls: read ×2). Their calls named ${values}. ` +
      'To read it again call read_memory with {"id":"mem_0123456789abcdef"}.]';
    expect([textIn(''), textIn('… named /a/one.ts.')]).toEqual([
      says('/a/two.ts, /a/one.ts'),
      says('/a/two.ts'),
    ]);
  });

  it('keeps the exact messages under the id', () => {
    const conversation = readChat(chatBody(steps));
    const edits = dropOldest().propose(foldView(conversation, { idOf }));
    const original = originalsOf(conversation, edits).get('mem_0123456789abcdef')!;
    expect(new TextDecoder().decode(original)).toBe(JSON.stringify(chatMessages(steps).slice(1)));
  });
});
