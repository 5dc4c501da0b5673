import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { addToResults } from '../../test/support/add-to-results.ts';
import { chatBody, freshReading, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { keptMessages, protectionOf } from './protect.ts';

describe('a pinned text', () => {
  it('protects the call whose arguments contain it, however they escape it', () => {
    const inputs = [
      '{"path":"caf\\u00e9","content":"one\\n\\"two\\""}',
      '{"path":"caf\u00e9"}',
      'run caf\u00e9',
      '{"path":"cafe"}',
    ];
    const conversation = readChat(
      chatBody(inputs.map((input) => ({ calls: [{ name: 'run', input, result: 'r' }] }))),
    );
    const heldBy = (...texts: readonly string[]) => {
      const protects = protectionOf(conversation, { pins: { tools: [], texts }, recallTool: undefined });
      return inputs.map((_, at) => protects.part(2 * at, 0));
    };
    expect(heldBy('caf\u00e9')).toEqual([true, true, true, false]);
    expect(heldBy('nothing', 'one\n"two"')).toEqual([true, false, false, false]);
  });
});

describe('the user message that no fold removes', () => {
  const reminder = '<system-reminder>Mind the list.</system-reminder>';
  const keptIn = (steps: readonly Step[], words: string) => {
    const conversation = anthropicMessages.read(
      addToResults(asAnthropic(chatBody(steps)), words),
      freshReading(),
    );
    return [...keptMessages(conversation)].toSorted((one, other) => one - other);
  };
  const done: Step = { calls: [{ name: 'run', result: 'Done.' }] };
  const asked: readonly Step[] = [
    { user: 'An old question.' },
    { assistant: 'An answer.' },
    { user: 'What is asked now.' },
    done,
    done,
  ];

  it('is the last question of the user, also when a client adds text to each result', () => {
    expect(keptIn(asked, reminder)).toEqual([2, 5, 6]);
    expect(keptIn(asked, 'Mind the list.')).toEqual([2, 5, 6]);
  });

  it("is the last message of the user, not one that a client wrote in the user's place", () => {
    const steps = [...asked.slice(0, 4), { assistant: 'Done.' }, { user: reminder }, done, done];
    expect(keptIn(steps, reminder)).toEqual([2, 9, 10]);
  });
});

describe('the newest tool batch', () => {
  const run = (bytes: number): Step => ({ calls: [{ name: 'run', result: 'x'.repeat(bytes) }] });
  const talk = (turns: number): readonly Step[] =>
    Array.from({ length: turns }, (_, at): readonly Step[] => [
      { user: `Question ${at}?` },
      { assistant: `Answer ${at}.` },
    ]).flat();
  const keptIn = (steps: readonly Step[]) =>
    [...keptMessages(readChat(chatBody(steps)))].toSorted((one, other) => one - other);

  it('stays with its call while its turn is running, however large it is', () => {
    expect(keptIn([{ user: 'Run it.' }, run(100), run(36_000)])).toEqual([0, 3, 4]);
  });

  it('stays after a message of the user only while it is small', () => {
    const last = { user: 'And now?' };
    expect(keptIn([{ user: 'Run it.' }, run(1_000), { assistant: 'Done.' }, last])).toEqual([1, 2, 4]);
    expect(keptIn([{ user: 'Run it.' }, run(36_000), { assistant: 'Done.' }, last])).toEqual([4]);
    expect(keptIn([{ user: 'Run it.' }, run(36_000), ...talk(8), last])).toEqual([19]);
  });
});
