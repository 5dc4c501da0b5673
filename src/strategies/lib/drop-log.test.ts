import { describe, expect, it } from 'vitest';
import { chatBody, readChat, type Step } from '../../../test/support/chat-conversation.ts';
import { foldView } from '../../../test/support/strategy-suite.ts';
import { dropOldest } from '../drop-messages.ts';

/** Folds all messages but a last one of the user, and returns the lines of the log. */
function linesOf(...steps: readonly Step[]): readonly string[] {
  const conversation = readChat(
    chatBody([...steps, { user: 'Go on with the next part of the work, then.' }]),
  );
  const last = conversation.messages.length - 1;
  const view = foldView(conversation, {
    excess: { unit: 'tokens', amount: Number.POSITIVE_INFINITY },
    protects: { message: (index) => index === last, part: () => false, recalled: () => false },
  });
  const texts = dropOldest()
    .propose(view)
    .flatMap((edit) => (edit.kind === 'insert-message' ? [edit.text] : []));
  expect(texts).toHaveLength(1);
  return texts[0]!
    .replaceAll(/mem_[\w-]+: /g, '')
    .slice(0, -1)
    .split('\n')
    .slice(1);
}

const run = (command: string, result: string, text?: string): Step => ({
  ...(text !== undefined && { text }),
  calls: [{ name: 'Bash', input: JSON.stringify({ command }), result: result.padEnd(6_000) }],
});
const long = run('npm test', '12 passed');

describe('words beside a call', () => {
  it('stand in the log where they answer the user, without the announcement of the call', () => {
    expect(
      linesOf(
        { user: 'Is getPoints specific to one strategy?' },
        run(
          'grep -rn getPoints src',
          'Exit code 1',
          'Yes, `getPoints()` is specific to a strategy, because only one of them keeps steps. Let me look for its callers:',
        ),
        run(
          'npm run lint',
          '0 issues.',
          'Nothing calls it. It is dead code in all of the packages. I run the linter.',
        ),
        long,
      ),
    ).toEqual([
      'USER: Is getPoints specific to one strategy?',
      'YOU: Yes, `getPoints()` is specific to a strategy, because only one of them keeps steps.',
      'Bash grep -rn getPoints src: nothing found',
      'Bash npm run lint: "0 issues."',
      'Bash npm test: "12 passed"',
    ]);
  });

  it('stand ahead of a call that the user refused or answered', () => {
    expect(
      linesOf(
        { user: 'Fix the cache.' },
        long,
        run(
          'git commit -am fix',
          "The user doesn't want to proceed. The user said: test it first",
          'The cache kept entries of closed sessions; now `close()` drops all of them at once. I commit that.',
        ),
      ),
    ).toEqual([
      'USER: Fix the cache.',
      'Bash npm test: "12 passed"',
      'YOU: The cache kept entries of closed sessions; now `close()` drops all of them at once.',
      'Bash git commit -am fix → REFUSED by the user: test it first',
    ]);
  });

  it('are left out if they only announce the call', () => {
    expect(
      linesOf({ user: 'Run the tests.' }, run('npm test', '12 passed', 'Let me run the tests.'), long),
    ).toEqual(['USER: Run the tests.', 'Bash npm test ×2: "12 passed"']);
  });
});

describe('a short answer', () => {
  it('stands behind the options that it picks, and no list that the reply had before', () => {
    const reply = [
      'Good question, the command shows less than it should. It has:',
      '1. **Strategy** - which one is set',
      '2. **Git status** - files that changed',
      '',
      'A few options:',
      '1. Only check the strategy',
      '2. **Simulate the hook** - parse a transcript',
      '3. Show the state of the session',
      '',
      'Which of them do you need?',
    ].join('\n');
    expect(
      linesOf({ user: 'What is it testing?' }, long, { assistant: reply }, { user: 'yeah 2 and 3' }, long),
    ).toEqual([
      'USER: What is it testing?',
      'Bash npm test: "12 passed"',
      'YOU: Good question, the command shows less than it should. … 2. Simulate the hook - parse a transcript / 3. Show the state of the session / Which of them do you need?',
      'USER: yeah 2 and 3',
      'Bash npm test: "12 passed"',
    ]);
  });

  it('that agrees stands behind the list that it agrees with', () => {
    const reply = [
      "You're right, I had it backwards. The order is:",
      '1. The user commits at a time X',
      '2. The metadata is written, also at X',
      '3. The user amends, at a later time Y',
      'So X minus five minutes is the lower bound.',
    ].join('\n');
    expect(
      linesOf({ user: 'Is that so?' }, long, { assistant: reply }, { user: 'yes, exactly, please do' }, long),
    ).toEqual([
      'USER: Is that so?',
      'Bash npm test: "12 passed"',
      "YOU: You're right, I had it backwards. The order is: 1. The user commits at a time X; 2. The metadata is written, also at X; 3. The user amends, at a later time Y; So X minus five minutes is the lower bound.",
      'USER: yes, exactly, please do',
      'Bash npm test: "12 passed"',
    ]);
  });
});
