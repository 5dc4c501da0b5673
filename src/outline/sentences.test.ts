import { describe, expect, it } from 'vitest';
import { firstSentences, isApart, linesOf, sentencesOf } from './sentences.ts';
import { summaryLines } from './lib/client-summary.ts';
import { interruptionNote, questionBefore, typedText } from './lib/typed-text.ts';

it('reads a heading with a long address, and the end of a long member, in linear time', () => {
  // With a pattern that backtracks, these take longer than anybody waits.
  const address = `https://example.com/${'a'.repeat(20_000)}`;
  expect(isApart(`**${address} tells why this was left out**`)).toBe(false);
  expect(isApart(`## ${address} tells why this was left out`)).toBe(false);
  expect(isApart(`**${address} tells why**`)).toBe(true);
  expect(isApart('## One two three four five')).toBe(true);
  expect(isApart('## One two three four five six')).toBe(false);
  expect(sentencesOf(`"result": "It was left out."${' }'.repeat(50_000)}`)).toEqual(['It was left out.']);
  expect(sentencesOf(`"result": "It was left out."${' }'.repeat(50_000)} x`)).toHaveLength(2);
});

describe('the question before a short answer', () => {
  const options = [
    'There are two ways:',
    '1. **Keep the flag** and document it',
    '2. Remove the flag',
    '```',
    '3. this is code',
    '```',
    'Which one do you prefer?',
  ].join('\n');

  it('has the chosen option with its number, and the question', () => {
    expect(questionBefore(options, '2')).toBe('2. Remove the flag / Which one do you prefer?');
    expect(questionBefore(options, 'option 1 please')).toBe(
      '1. Keep the flag and document it / Which one do you prefer?',
    );
    expect(questionBefore('### Option B: Rename it\nText.', 'B')).toBe('Option B: Rename it');
    const table =
      '| Option | Sense |\n|---|---|\n| **A. All** | Each one |\n| **B. Own** | Only of the branch |\n\nWhich?';
    expect(questionBefore(table, "I'd like it to do B")).toBe('B. Own: Only of the branch / Which?');
    expect(questionBefore('1. Now\n2. Later\nIt can wait.', "let's do 2 for now")).toBe('2. Later');
  });

  it('is not an option whose number only counts, or names a task', () => {
    const list = '1. Fix `a()`\n2. Fix `b()`\n3. Task 3: test both\nIssue #1 needs a look. Shall I begin?';
    expect([
      questionBefore(list, 'Can you fix all 3'),
      questionBefore(list, 'add it to Task 1, please'),
      questionBefore(list, 'PR 2 first'),
      questionBefore(list, 'do task 3'),
      questionBefore(list, '1+2'),
    ]).toEqual([
      'Shall I begin?',
      'Shall I begin?',
      'Shall I begin?',
      '3. Task 3: test both / Shall I begin?',
      '1. Fix `a()` / 2. Fix `b()` / Shall I begin?',
    ]);
  });

  it('is the last question where the answer names no option, in any language', () => {
    expect(questionBefore(options, 'yes')).toBe('Which one do you prefer?');
    expect(questionBefore('Erledigt. Soll ich den alten Code löschen?', 'ja')).toBe(
      'Soll ich den alten Code löschen?',
    );
    expect(questionBefore('修正しました。古いコードも消しますか？', 'はい')).toBe('古いコードも消しますか？');
    expect(questionBefore('已修复。要删除旧代码吗？', '好')).toBe('要删除旧代码吗？');
  });

  it('is there for an answer of a few clauses if the reply ends with the question', () => {
    const answer = 'yes, we only need to do it once (if you are sure that the filter works for all of them!)';
    const asked = 'The inner check is redundant. Want me to remove it?';
    expect(questionBefore(asked, answer)).toBe('Want me to remove it?');
    expect(questionBefore(`${asked} It costs nothing.`, answer)).toBe('');
    expect(questionBefore(asked, `${answer} ${answer} ${answer}`)).toBe('');
  });

  it('is empty for an answer that says enough, and where nothing was asked', () => {
    expect(questionBefore(options, `Rename it, and ${'then test it '.repeat(20)}`)).toBe('');
    expect(questionBefore('Done.', 'ok')).toBe('');
    expect(questionBefore('', '2')).toBe('');
  });

  it('is short, and no cut word, however much was asked', () => {
    const many = Array.from({ length: 20 }, (_, at) => `${at + 1}. ${'word '.repeat(200)}`).join('\n');
    const question = questionBefore(many, '1 2 3 4 5 6 7');
    expect(question.length).toBeLessThanOrEqual(480);
    expect(question.replaceAll(/word|[\d./ …]/g, '')).toBe('');
  });
});

describe('what the user typed', () => {
  it('does not include a command of the client without arguments', () => {
    expect(typedText('/release-notes')).toEqual({ words: '', note: 'command /release-notes' });
    expect(typedText('<command-name>/exit</command-name>\n<command-message>exit</command-message>')).toEqual({
      words: '',
      note: 'command /exit',
    });
    expect(typedText('/compact keep the plan').words).toBe('/compact keep the plan');
    expect(typedText('/srv/a.txt is the file').words).toBe('/srv/a.txt is the file');
  });

  it('includes a command without arguments whose text the client sends', () => {
    expect(typedText('<command-message>pr</command-message>\n<command-name>/pr</command-name>')).toEqual({
      words: '/pr',
      note: '',
    });
    expect(typedText(' /workflows:review\n')).toEqual({ words: '/workflows:review', note: '' });
  });

  it('keeps the numbers of its items', () => {
    expect(linesOf('Do this:\n1. start it\n- then stop\n  2) again\n12→line of a file')).toEqual([
      'Do this:',
      '1. start it',
      'then stop',
      '2) again',
      'line of a file',
    ]);
  });
});

describe('a summary that a client wrote', () => {
  const written = [
    'This session is being continued from a previous conversation that ran out of context. It is summarized below:',
    'Analysis:',
    '1. **Start**: the user wanted a faster parser.',
    '',
    'Summary:',
    '1. Primary Request and Intent:',
    '   - Make the parser faster',
    '2. Files and Code Sections:',
    '   - src/parse.ts',
    '   ```ts',
    '   const a = 1;',
    '   ```',
    '3. Problem Solving:',
    '   - **Solved**: `scan()` no longer copies its text',
    '4. All user messages:',
    '   - "Make it faster"',
    '   - "no, I did not say commit anything" (rejected tool use)',
    '5. Pending Tasks:',
    '   - Fix `scan()`',
    '6. Current Work:',
    '   The scan returns 3 tokens too few.',
    '7. Optional Next Step:',
    '   Run the tests of the scan.',
    '',
    'If you need specific details from before compaction, read the full transcript at: /home/u/x.jsonl',
    'Please continue the conversation from where we left it off.',
  ].join('\n');

  it('tells the goal, what was solved, the words of the user and what was open, each with its heading', () => {
    expect(summaryLines(written)).toEqual([
      { text: 'Primary Request and Intent: Make the parser faster', isState: false, isQuoting: false },
      {
        text: 'Problem Solving: Solved: `scan()` no longer copies its text',
        isState: false,
        isQuoting: false,
      },
      {
        text: 'All user messages: "Make it faster"; "no, I did not say commit anything" (rejected tool use)',
        isState: false,
        isQuoting: true,
      },
      { text: 'Pending Tasks: Fix `scan()`', isState: true, isQuoting: false },
      { text: 'Current Work: The scan returns 3 tokens too few.', isState: true, isQuoting: false },
    ]);
  });

  it('has each message of the user as a whole, up to 400 characters', () => {
    const messages = Array.from(
      { length: 12 },
      (_, at) => `"message ${at} ${'of some words '.repeat(8)}ends"`,
    );
    const long = `"${'a long one '.repeat(40)}"`;
    const list = [...messages, long].map((message) => `   - ${message}`).join('\n');
    const text = written.replace('   - "Make it faster"', list);
    const { text: told } = summaryLines(text).find(({ isQuoting }) => isQuoting)!;
    const begun = `"${'a long one '.repeat(36)}a`;
    expect(told).toBe(
      `All user messages: ${messages.join('; ')}; ${begun} … "no, I did not say commit anything" (rejected tool use)`,
    );
  });

  it('is told in bounded time and space, whatever it contains', () => {
    for (const text of ['\n', '1. a:\n', '"', 'Summary:\n', '\nContinue '].map((one) => one.repeat(100_000)))
      expect(
        summaryLines(text)
          .map((line) => line.text)
          .join('\n').length,
      ).toBeLessThan(6_000);
  });
});

it('the first sentences of a text go on behind a word or two, even if not all of the next one fits', () => {
  const said = 'Done. The folder is only created when a session starts, not when the command is installed.';
  expect(firstSentences(said, 60)).toBe('Done. The folder is only created when a session starts, …');
});

it('the first sentences of a text leave out a short exclamation', () => {
  expect(firstSentences('Perfect! The parser caches its tokens.', 100)).toBe('The parser caches its tokens.');
  expect(firstSentences('太好了！解析器缓存了结果。', 100)).toBe('解析器缓存了结果。');
  expect(firstSentences('`scan()` is gone!', 100)).toBe('`scan()` is gone!');
});

it.each([
  // A line with a colon stands with what it announces, if it is the first, a label, or has a name.
  [
    'There are a few ways to do it:\n\n1. Keep the cache\n2. Drop it\n\nWhich one?',
    'There are a few ways to do it: 1. Keep the cache; 2. Drop it; Which one?',
  ],
  [
    'All tests pass. Here is a summary of the changes:\n\n## Changes\n\n**The cause:**\n- `scan()` copied its text',
    'All tests pass. … The cause: `scan()` copied its text',
  ],
  [
    "I've rewritten the parser as you wanted:\n\n## Steps\n- It scans once",
    "I've rewritten the parser as you wanted: … It scans once",
  ],
  // Code, tables and headings leave a gap; what short words and code stand around is told.
  [
    'The scan is linear.\n```\nfor (;;) {}\n```\nThe store is next.',
    'The scan is linear. … The store is next.',
  ],
  [
    'Done. The event now has only the name of the command:\n\n```\n{}\n```',
    'Done. The event now has only the name of the command:',
  ],
  ['Good question:\n```\na()\n```\nIt exits.', 'It exits.'],
  [
    'Now the output will look like:\n\n```\nYou have an active session. Prompt:\n...\n```',
    'Now the output will look like: "You have an active session. Prompt:"',
  ],
  [
    'Now the code has a clean separation:\n\n| Strategy | Way of adding |\n|---|---|\n| auto | git |\n\nNo more dead code.',
    'Now the code has a clean separation: … No more dead code.',
  ],
  // Headings with numbers are a list.
  [
    'I checked all of the code.\n\n## Issues\n\n### 1. **BUG** - `a.ts:5` copies its text\n- Function: `scan`\n\n### 2. **BUG** - `b.ts:7` never closes the file\n\nMore:\n\n### 3. POTENTIAL - `c.ts:9` reads the folder twice\n\n## Correct\n- `d.ts`',
    'I checked all of the code. … Issues: 1. BUG - `a.ts:5` copies its text; 2. BUG - `b.ts:7` never closes the file; 3. POTENTIAL - `c.ts:9` reads the folder …',
  ],
  [
    "Here's what I found:\n\n## Calls\n\nThe agent made 3 calls:\n- two reads\n- one edit",
    'The agent made 3 calls: two reads; one edit',
  ],
  // The texts of JSON are told without its signs.
  [
    '{\n  "done": { "reason": "Two movies are left.", \n  "next": "Look at the third one."\n}',
    'Two movies are left. Look at the third one.',
  ],
  ['Yes, this is feasible! Both are ready.', 'Yes, this is feasible! Both are ready.'],
])('the first sentences of a text are no pieces of different places: %j', (said, told) => {
  expect(firstSentences(said, 160)).toBe(told);
});

it('the first sentences of a text tell no item without what announces it, and say where a list goes on', () => {
  const list = ['- Files that the parser finds in the log', '- New files since the last prompt'];
  const lead = 'But the decision of the hook is based on:';
  const long =
    'But the decision of the hook, which nobody has written down in any of the documents of the project so far, is based on this:';
  const said = ['The command shows what changed.', lead, ...list, 'So it tests another thing.'].join('\n');
  expect([
    firstSentences(said, 200),
    firstSentences(said, 120),
    firstSentences(said.replace(lead, long), 200),
    firstSentences(said.replace(lead, '## Sources'), 200),
  ]).toEqual([
    'The command shows what changed. … But the decision of the hook is based on: Files that the parser finds in the log; New files since the last prompt; So it tests another thing.',
    'The command shows what changed. … But the decision of the hook is based on: Files that the parser finds … (2 items)',
    'The command shows what changed. … So it tests another thing.',
    'The command shows what changed. … Sources: Files that the parser finds in the log; New files since the last prompt; So it tests another thing.',
  ]);
});

it('the first sentences of a text tell a long list in short, and how many items it has', () => {
  const steps = [
    '**Parser** - reads each token once and keeps no copy',
    'The store is asked for all ids at once',
    '`cache.ts:40`: the entry never expires',
    'Docs (README, guide and the pages of the site)',
    'Tests for the parser, the store and the cache',
  ];
  const numbers = steps
    .map((step, at) => `${at + 1}. ${step}\n   - a detail of ${at}\n   More of it.`)
    .join('\n');
  expect([
    firstSentences(`Done. These parts changed:\n\n${numbers}\n\nAll tests pass.`, 200),
    firstSentences(`Done. These parts changed:\n\n${numbers}\n\nAll tests pass.`, 110),
    firstSentences(
      `These parts changed:\n${steps.map((step) => `- ${step}`).join('\n')}\nAll tests pass.`,
      180,
    ),
    firstSentences(`These parts changed:\n${steps.map((step) => `- ${step}`).join('\n')}`, 120, true),
    firstSentences(
      `変更点：\n- パーサー：トークンを一度だけ読みます。\n- ストア：すべてのIDを一度に取得します。`,
      40,
    ),
    firstSentences(
      'Changes:\n1. **`src/shop/cart.ts`**: closes the cart before it is paid, and keeps no copy\n2. **`mail.ts`**: waits for it',
      84,
    ),
  ]).toEqual([
    'Done. These parts changed: 1. Parser - reads each token …; 2. The store is asked for all …; 3. `cache.ts:40`: the entry …; 4. Docs (README, guide and the …; 5. Tests for the parser, the store …',
    'Done. These parts changed: 1. Parser - reads each token …; 2. The store is asked for all ids … (5 items)',
    'These parts changed: Parser - reads each token once …; The store is asked for all ids …; `cache.ts:40`: the entry never …; Docs (README, guide and the pages of … (5 items)',
    'These parts changed: Parser - reads each token once and keeps no copy; The store is asked for all ids at once …',
    '変更点： パーサー：トークンを一度だけ読み … (2 items)',
    'Changes: 1. `src/shop/cart.ts`: closes …; 2. `mail.ts`: waits for it',
  ]);
});

it('the summary of a client keeps its goal, files, errors, the words of the user, and how things stood', () => {
  const sections = [
    ['Primary Request', '   - Make the parser faster'],
    ['Key Concepts', '   - Tokens and scans'],
    [
      'Files',
      '   - **`src/scan.ts`**\n     - Removed `copy()`\n     ```ts\n     - const a = 1\n     ```\n   - `src/store.ts` (new)\n   - **src/a.test.ts**',
    ],
    [
      'Errors and fixes',
      '   - **Linter error**: `copy` is unused\n     - Removed it\n   - **Test failure:** it waited for the old message',
    ],
    ['Problem Solving', '   - The cache was never cleared'],
    ['All user messages', '   - "make it faster"\n   - "never change the API"'],
    ['Pending Tasks', '   - Update the docs'],
    ['Current Work', '   - I was editing scan.ts'],
    ['Next Step', '   - Go on'],
  ].map(([title, text], at) => `${at + 1}. ${title}:\n${text}`);
  const text = `This session is being continued from a previous conversation.\nSummary:\n${sections.join('\n\n')}`;
  expect(summaryLines(text).map(({ text: line, isState }) => `${isState ? '(then) ' : ''}${line}`)).toEqual([
    'Primary Request: Make the parser faster',
    'Files: scan.ts, store.ts, a.test.ts',
    'Errors and fixes: Linter error: `copy` is unused; Removed it; Test failure: it waited for the old message',
    'Problem Solving: The cache was never cleared',
    'All user messages: "make it faster"; "never change the API"',
    '(then) Pending Tasks: Update the docs',
    '(then) Current Work: I was editing scan.ts',
  ]);
});

describe('a text in a user message', () => {
  const skill = '**ACTION REQUIRED: Spawn a subagent.** Do NOT review code directly.';

  it('was not typed if it is that of a command or a skill, which the client names right ahead of it', () => {
    const command =
      '<command-message>reviewer is running</command-message>\n<command-name>/reviewer</command-name>';
    expect(typedText(skill)).toEqual({ words: skill, note: '' });
    expect(typedText(skill, command)).toEqual({
      words: '',
      note: 'its text begins: "ACTION REQUIRED: Spawn a subagent."',
    });
    const given = `${command}\n<command-args>the parser</command-args>`;
    expect(typedText(skill, given)).toEqual({ words: '', note: '' });
    expect(typedText(skill, 'Launching skill: reviewer')).toEqual({ words: '', note: '' });
    expect(typedText('[Request interrupted by user]', command)).toEqual({
      words: '',
      note: interruptionNote,
    });
  });

  it('was typed behind a command without a text, and behind any other text', () => {
    const ide = '<command-name>/ide</command-name>\n<command-message>ide</command-message>';
    for (const before of [ide, '<local-command-stdout>Connected</local-command-stdout>', 'Done.', ''])
      expect(typedText('fix the lint', before).words).toBe('fix the lint');
  });
});
