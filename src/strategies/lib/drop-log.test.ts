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
      'YOU: Nothing calls it. It is dead code in all of the packages.',
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

  it('answer a question that the user asked when refusing a call, however short', () => {
    expect(
      linesOf(
        { user: 'Export the orders.' },
        run(
          'export --all',
          "The user doesn't want to proceed. The user said: why not only those of May?",
          'Let me export them all.',
        ),
        run('export --month 5', '31 orders', 'Because `report.py` wants the whole year. I take May now.'),
        long,
      ),
    ).toEqual([
      'USER: Export the orders.',
      'Bash export --all → REFUSED by the user: why not only those of May?',
      'YOU: Because `report.py` wants the whole year.',
      'Bash export --month 5: "31 orders"',
      'Bash npm test: "12 passed"',
    ]);
  });

  it('say what a failure means that comes right before them', () => {
    expect(
      linesOf(
        { user: 'Write the test first.' },
        run('npm test', '1 failed', 'Now I run it.'),
        run('npm run build', '0 warnings', 'The test fails as expected. Now I mend `cart.ts`.'),
        long,
      ),
    ).toEqual([
      'USER: Write the test first.',
      'Bash npm test: failed, "1 failed"',
      'YOU: The test fails as expected.',
      'Bash npm run build: "0 warnings"',
      'Bash npm test: "12 passed"',
    ]);
  });

  it('are told like a reply if they are long, with what the user asked', () => {
    const plan =
      '1. Read the shop first and then all of its carts, one by one, in the order in which they were made.\n'.repeat(
        12,
      );
    expect(
      linesOf(
        { user: 'Write the plan. And do we have to fetch the carts if the shop was closed?' },
        run(
          'mkdir plans',
          'made',
          `Now I know all of it. Here is the answer.\n\n**When the shop was closed:**\n\nNobody has to fetch the carts, as \`open()\` does. The plan:\n${plan}\nI write that down.`,
        ),
        long,
      ),
    ).toEqual([
      'USER: Write the plan. And do we have to fetch the carts if the shop was closed?',
      `YOU: Now I know all of it. Here is the answer. … Nobody has to fetch the carts, as \`open()\` does. The plan:${' 1. Read the shop first and then all of its carts, one by one, in the order in which they were made.'.repeat(2)} …`,
      'Bash mkdir plans: "made"',
      'Bash npm test: "12 passed"',
    ]);
  });

  it('say why an edit is taken back', () => {
    const edit = (from: string, to: string, text: string): Step => ({
      text,
      calls: [
        {
          name: 'Edit',
          input: JSON.stringify({ file_path: '/app/root.go', old_string: from, new_string: to }),
          result: 'Updated.'.padEnd(3_000),
        },
      ],
    });
    expect(
      linesOf(
        { user: 'Send an event behind each command.' },
        edit('start := 1', 'first := 1', 'I add it to the root.'),
        edit(
          'first := 1',
          'start := 1',
          'Wait, `PostRun` only runs if the command succeeds. I take that back.',
        ),
        long,
      ),
    ).toEqual([
      'USER: Send an event behind each command.',
      'Edit /app/root.go (start → first)',
      'YOU: Wait, `PostRun` only runs if the command succeeds.',
      'Edit root.go (first → start)',
      'Bash npm test: "12 passed"',
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

  it('that agrees stands behind the option and the reason that the question refers to', () => {
    const reply = [
      'Orders are closed in two places, and neither of them knows of the other one.',
      'The lock is taken by both of them. '.repeat(9),
      'Options:',
      '1. **Close them in `pay.ts`** - next to the lock',
      '2. **Close them in `mail.ts`** - where nobody waits',
      '',
      'Option 1 is cleaner, as both places would do the same. Want me to make that change?',
    ].join('\n');
    const log = (answer: string) =>
      linesOf({ user: 'Are they the same?' }, long, { assistant: reply }, { user: answer }, long)[2];
    expect([
      log('yes'),
      log('Not yet. First tell me who waits for the lock, and how long that takes.'),
    ]).toEqual([
      `YOU: Orders are closed in two places, and neither of them knows of the other one.${' The lock is taken by both of them.'.repeat(4)} … 1. Close them in \`pay.ts\` - next to the lock / Option 1 is cleaner, as both places would do the same. Want me to make that change?`,
      `YOU: Orders are closed in two places, and neither of them knows of the other one.${' The lock is taken by both of them.'.repeat(4)} … Want me to make that change?`,
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

describe('without space for all lines', () => {
  /** A call whose result is so short that a log of it may have few characters. */
  const brief = (name: string, input: unknown, result: string): Step => ({
    calls: [{ name, input: JSON.stringify(input), result }],
  });
  const search = (pattern: string): Step =>
    brief('Grep', { pattern, path: '/app/src' }, '/app/src/cart.ts:3:export');
  const answer =
    'Good question. Here are the callers:\n' +
    '- `cart.ts` reads the price twice, before and after the discount is known\n' +
    '- `order.ts` reads it once, when the order is sent to the warehouse\n\n' +
    'So the price of an order can differ from that of its cart. Do you want me to fix it?';

  it('each demand keeps the verdict of its answer, ahead of calls and of the items of lists', () => {
    const lines = linesOf(
      {
        user: 'Where is the price read? I think that it is read in more than one place, and at other times.',
      },
      search('readPrice'),
      search('priceOf'),
      search('price\\('),
      { assistant: answer },
      { user: 'Is the discount part of it, or is that taken off later, when the customer pays for all?' },
      search('discount'),
      {
        assistant: 'No. It is taken off in `checkout.ts`, after the price was read, so carts show too much.',
      },
      { user: 'Leave it as it is, and only write down in the readme what we found out about it today.' },
      brief('Edit', { file_path: '/app/README.md', old_string: 'a', new_string: 'b' }, 'Updated.'),
      { assistant: 'Done. `README.md` says it now.' },
    );
    expect(lines).toEqual([
      'USER: Where is the price read? I think that it is read in more than one place, and at other times.',
      '(3 calls left out: Grep ×3)',
      'YOU: Good question. … So the price of an order can differ from that of its cart.',
      'USER: Is the discount part of it, or is that taken off later, when the customer pays for all?',
      '(1 call left out: Grep)',
      'YOU: No. It is taken off in `checkout.ts`, after the price was read, so carts show …',
      'USER: Leave it as it is, and only write down in the readme what we found out about it today.',
      '(1 call left out: Edit README.md)',
      'YOU: Done. `README.md` says it now.',
    ]);
  });

  it('each message has a few words, also if all of them are short', () => {
    const jobs = Array.from({ length: 30 }, (_, at) =>
      brief('Bash', { command: `job ${at}` }, `job ${at} is done`.padEnd(300)),
    );
    const lines = linesOf(
      { user: 'Do all of the thirty jobs, one by one, and tell me at the end which of them failed.' },
      ...jobs,
    );
    expect(lines.slice(1)).toEqual(jobs.map((_, at) => `Bash job ${at}: "job ${at} is done"`));
  });

  it('calls with effects outside stay with what they made, at their place', () => {
    const lines = linesOf(
      {
        user: 'Make an issue for the price that is read twice, then commit what we have and push it, please.',
      },
      search('readPrice'),
      brief(
        'mcp__tracker__create_issue',
        { title: 'The price is read twice' },
        '{"id":"9f1c","identifier":"SHOP-12","status":"Backlog"}',
      ),
      search('priceOf'),
      brief(
        'Bash',
        { command: 'git commit -qm "Read the price once"' },
        '[main 1a2b3c4] Read the price once',
      ),
      brief('Bash', { command: 'git mv src/price.ts src/prices.ts' }, ''),
      { assistant: 'SHOP-12 is there, and the commit is made.' },
      { user: 'Thanks. Tell me when the build is green, I have to go and will look at it in the evening.' },
    );
    expect(lines).toEqual([
      'USER: Make an issue for the price that is read twice, then commit what we have and push it, please.',
      'mcp__tracker__create_issue "The price is read twice": status "Backlog", SHOP-12',
      'Bash git commit -qm "Read the price once": commit 1a2b3c4',
      'Bash git mv src/price.ts src/prices.ts: no output',
      '(2 calls left out: Grep ×2)',
      'YOU: SHOP-12 is there, and the commit is made.',
      'USER: Thanks. Tell me when the build is green, I have to go and will look at it in the evening.',
    ]);
  });
});

describe('answers with numbers', () => {
  it('stand behind each question that they answer, and not behind another list with the same numbers', () => {
    const reply = [
      'Before I begin:',
      '1. Should prices have two digits or three behind the point?',
      '2. Which currency is the default?',
      '3. Do refunds need the consent of a manager?',
      '',
      'I would then do this:',
      '1. Change the schema',
      '2. Change the reports',
      '3. Change the tests',
    ].join('\n');
    expect(
      linesOf(
        { user: 'Plan the prices.' },
        long,
        { assistant: reply },
        { user: '1. two 2. the dollar, but read it from the settings 3. yes, above 100 dollars' },
        long,
      ).slice(2, 4),
    ).toEqual([
      'YOU: 1. Should prices have two digits or three behind the point? / 2. Which currency is the default? / 3. Do refunds need the consent of a manager?',
      'USER: 1. two 2. the dollar, but read it from the settings 3. yes, above 100 dollars',
    ]);
  });

  it('that say yes stand behind the first of two questions, of which the second offers something else', () => {
    const reply =
      'The report counts refunds twice. Do you want me to change the query? Or would you rather keep the figures and explain them in a note below the table, as the old report did?';
    expect(
      linesOf({ user: 'Check the report.' }, long, { assistant: reply }, { user: 'yes' }, long).slice(2, 4),
    ).toEqual([
      'YOU: The report counts refunds twice. Do you want me to change the query? Or would you rather keep the figures and explain them in a …',
      'USER: yes',
    ]);
  });
});

describe('a heading with a question', () => {
  it('is none that the user answered', () => {
    const reply = 'The totals differ by 30 dollars.\n\n## Why do they differ?\nRefunds are counted twice.';
    expect(
      linesOf({ user: 'Check the report.' }, long, { assistant: reply }, { user: 'ok, fix it' }, long)[2],
    ).toBe('YOU: The totals differ by 30 dollars. … Refunds are counted twice.');
  });
});

describe('what a hook of the client says', () => {
  it('is no word of the user, and stands in no answer', () => {
    expect(
      linesOf(
        { user: 'Check the report.' },
        long,
        { assistant: 'It counts refunds twice. Do you want me to change the query?' },
        { user: 'Operation stopped by hook: Another session is open.\n\nTo go on with it, run: agent -r 1' },
        { user: 'yes' },
        long,
      ),
    ).toEqual([
      'USER: Check the report.',
      'Bash npm test: "12 passed"',
      'YOU: It counts refunds twice. Do you want me to change the query?',
      '(Operation stopped by hook: Another session is open.)',
      'USER: yes',
      'Bash npm test: "12 passed"',
    ]);
  });
});
