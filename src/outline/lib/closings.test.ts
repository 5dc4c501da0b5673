import { describe, expect, it } from 'vitest';
import { closingLines, replyVerdict, wordsOnResult } from './closings.ts';

const told = (...lines: readonly string[]): string => replyVerdict(lines.join('\n'), 150);

describe('what a reply that ended a turn says', () => {
  it('is its first sentences, if they say enough', () => {
    expect(
      told(
        'Done. The parser keeps empty lines now, as you asked.',
        '',
        'Changes:',
        '1. `parse.ts`: no filter',
        '2. `parse.test.ts`: a case for it',
        '',
        'Nothing else uses the filter.',
      ),
    ).toBe(
      'Done. The parser keeps empty lines now, as you asked. Changes: 1. `parse.ts`: no filter; 2. `parse.test.ts`: a case for it',
    );
  });

  it('is its conclusion rather than the items of a list', () => {
    expect(
      told(
        'Good question. Let me trace what happens:',
        '1. **First call**: the cache is empty',
        '2. **Second call**: the entry is there, but stale',
        '3. **Third call**: the entry is written again',
        '',
        'So every second call reads a stale price. Should I fix that?',
      ),
    ).toBe('Good question. … So every second call reads a stale price.');
  });

  it('is its conclusion behind code and tables, with the word that answers', () => {
    expect(
      told(
        'Yes, looking at the schema:',
        '```sql',
        'create table orders (id int);',
        '```',
        '| column | index |',
        '|---|---|',
        '| id | none |',
        '',
        'The table lacks an index on `customer_id`, so the query scans all rows.',
      ),
    ).toBe(
      'Yes, looking at the schema: … The table lacks an index on `customer_id`, so the query scans all rows.',
    );
  });

  it('is a sentence in bold letters, a line with such a label in any language, or the conclusion', () => {
    const list = [
      '1. `queue.ts` waits for the lock of the pool before it writes',
      '2. `pool.ts` waits for the queue before it gives the lock back',
      '3. `server.ts` opens both of them in an order that nobody chose',
    ];
    expect([
      told(
        'I looked at both.',
        ...list,
        '**Only the second one can lose an order.**',
        'The rest is fine as it is.',
      ),
      told('All tests pass.', ...list, '**Root Cause:** the lock was taken twice.', 'I have removed one.'),
      told('All tests pass.', ...list, '## Recommendation', 'Keep the old endpoint for a year.', '- or two'),
      told('Hier ist der Vergleich:', ...list, '**Fazit:** Die zweite Lösung ist einfacher.'),
      told('Esto es lo que vi:', ...list, '**Causa**: la cerradura se tomó dos veces.', 'Ya no está.'),
      told(
        'I see two ways.',
        ...list,
        '**Option 1: one lock for both**',
        '**Option 2: no lock at all**',
        'A lock is safer here.',
      ),
      told('比較しました。', ...list, '**結論：**二番目の方法のほうが簡単で速いです。', '次に進みます。'),
    ]).toEqual([
      'I looked at both. … Only the second one can lose an order.',
      'All tests pass. … Root Cause: the lock was taken twice.',
      'All tests pass. … Keep the old endpoint for a year.',
      'Fazit: Die zweite Lösung ist einfacher.',
      'Esto es lo que vi … Causa: la cerradura se tomó dos veces.',
      'I see two ways. … A lock is safer here.',
      '比較しました。 … 結論：二番目の方法のほうが簡単で速いです。',
    ]);
  });

  it('is a line that announces a list, if it says something itself', () => {
    expect(
      told(
        'Both invoices add up correctly:',
        '- 4711 has two lines of 20 and 30 dollars, which are 50 dollars, as it says at its end',
        '- 4712 has two lines of 10 and 15 dollars, which are 25 dollars, as it says at its end',
        '',
        'The totals agree with the ledger, too.',
      ),
    ).toBe('Both invoices add up correctly … The totals agree with the ledger, too.');
  });

  it('is its list, if it says nothing else, and no offer of more work', () => {
    expect(
      told(
        "Here's what I found:",
        '- a leak in `pool.ts`, where no connection is ever given back',
        '- a race in `queue.ts`, where two writers take one slot',
        '',
        'Let me know which one comes first.',
      ),
    ).toBe(
      "Here's what I found: a leak in `pool.ts`, where no connection is ever given back; a race in `queue.ts`, where two writers take one slot",
    );
  });

  it('keeps a Yes that is an exclamation', () => {
    expect(told('Yes!', 'The logs are stored for thirty days.')).toBe(
      'Yes! The logs are stored for thirty days.',
    );
  });

  it('is the first line of code that it begins with', () => {
    expect(
      told('```bash', 'git show --stat HEAD~1', '```', 'Or, with the files alone:', '```', 'x', '```'),
    ).toBe('"git show --stat HEAD~1"');
  });

  it('joins no item with a paragraph of another one, nor with the list of another section', () => {
    const reply = [
      'I found the bug. Here is the whole analysis:',
      '',
      '**Saved tasks are not counted at all**, but a task does save its states in a commit of its own.',
      '',
      'Looking at the code:',
      '',
      '1. **`saveStates`** (of the main session), in `src/save-states.ts:93`:',
      '   ```ts',
      '   state.count += 1;',
      '   ```',
      '',
      '2. **`saveTask`** (of a task of the session), in `src/save-task.ts:222`:',
      '   ```ts',
      '   state.files = merge(state.files);',
      '   ```',
      '',
      '   It merges `state.files`, but **never adds to `state.count`**.',
      '',
      '## The scenario',
      '',
      '1. **Session A starts**',
      '   - it creates a state with `count: 0`',
      '',
      '2. **The user runs a task in it**',
      '',
      'The fix is to count tasks, too.',
    ];
    expect(replyVerdict(reply.join('\n'), 320)).toBe(
      'I found the bug. Saved tasks are not counted at all, but a task does save its states in a commit of its own. … The fix is to count tasks, too. … Looking at the code: 1. `saveStates` (of the main session), in `src/save-states.ts:93`; 2. `saveTask` (of a task of the session), in `src/save-task.ts:222`: It merges …',
    );
  });

  it('has no words about another sentence', () => {
    expect(
      told(
        'Now I have the whole picture.',
        '1. Orders are locked by `order.ts`, and the lock is only given back if the payment succeeds',
        '2. Payments are locked by `payment.ts`, which waits for the lock of the order',
        '**This is a real problem.**',
        '',
        'Two customers who pay at once wait for each other. Shall I fix it? It takes an hour.',
      ),
    ).toBe('Two customers who pay at once wait for each other.');
  });

  it('is no heading, however long', () => {
    expect(
      told(
        '# The prices of the shop and those of the warehouse, compared',
        '| item | shop | warehouse |',
        '|---|---|---|',
        '| cup | 3 | 4 |',
        '',
        'The shop sells cups below their cost.',
      ),
    ).toBe('The shop sells cups below their cost.');
  });

  it('is the section about what was asked, whatever else comes first', () => {
    const reply = [
      'Now I see the whole picture:',
      '',
      '**Both shops had this fault:**',
      '1. `readCart()` opens the cart of the session that came before',
      '2. `writeCart()` writes it back, as if it were the new one',
      '',
      '**Why old carts grew:**',
      '```ts',
      'carts.push(cart);',
      '```',
      'Old carts were never closed.',
      '',
      '**Why the web_shop sent two mails:**',
      '',
      'It had a copy of the loop, which ran once more at the end:',
      '```ts',
      'for (const mail of mails) send(mail);',
      '```',
      'The other one sends mails in a queue.',
    ];
    expect([
      replyVerdict(reply.join('\n'), 160, 'Was this in both? And why did the web-shop do that with mails?'),
      replyVerdict(reply.join('\n'), 160, 'Look at the carts.'),
      replyVerdict(
        'You have a point.\n\n**Counter sales**: are booked when the drawer is closed, and that is when the report shows them to everybody.\n\n**Invoice sales**: are not booked then. The bank sends a file.',
        130,
        'When does this happen with invoice sales?',
      ),
      replyVerdict(
        '## 概要\n- 一つ目の項目\n## 在庫の更新はいつ\n在庫の更新は毎晩零時に行われます。\n## その他\n以上で終わりです、と書いてあります。',
        80,
        '在庫の更新はいつですか？',
      ),
    ]).toEqual([
      'Both shops had this fault … Why the web_shop sent two mails: It had a copy of the loop, which ran once more at the end',
      'Both shops had this fault … The other one sends mails in a queue.',
      'You have a point. … Invoice sales: are not booked then. The bank sends a file.',
      '在庫の更新はいつ: 在庫の更新は毎晩零時に行われます。',
    ]);
  });

  it('is what it reports ahead of code, but no line that only says that a report comes', () => {
    const code = ['```yaml', 'rule: no-cwd', '```', 'This finds such calls before they are merged.'];
    expect([
      told("Done. I've added a rule that finds calls of `cwd()` in the program:", ...code),
      told("Done. I've made these changes:", ...code),
      told(
        'I see the whole of it. Let me sum up the effort in a few words.',
        '## Effort',
        'Two days: the lock is taken in nine places, and each of them has to be read, changed and tested alone.',
      ),
    ]).toEqual([
      "Done. I've added a rule that finds calls of `cwd()` in the program: … This finds such calls before they are merged.",
      'Done. … This finds such calls before they are merged.',
      'I see the whole of it. … Two days: the lock is taken in nine places, and each of them has to be read, changed and tested alone.',
    ]);
  });

  it('is a state in capitals with what it is about, and no bare heading', () => {
    const table = ['## Results of the shop', '| step | result |', '|---|---|', '| build | PASS |', ''];
    const list = ['- Carts are kept for a day', '- Orders are kept for good', '- Mails go out at once'];
    expect([
      told(...table, '**Overall: ✅ PASS**', '', '**Differences from the old shop:**', ...list),
      told(
        'Das hängt vom Laden ab. Der Stand der Kasse ist',
        '```',
        'open: 3',
        '```',
        '**`open` ist 3**, obwohl alle Kassen zu sind. Soll ich sie schließen?',
      ),
      replyVerdict(
        'The session shows:\n```\nopen: 3\n```\n**`open` is 3**, though all drawers are shut. Did you shut them?',
        80,
      ),
    ]).toEqual([
      'Overall: ✅ PASS … Differences from the old shop: Carts are kept for a day; Orders are kept for good; Mails go out at once',
      'Das hängt vom Laden ab. Der Stand der Kasse ist … `open` ist 3, obwohl alle Kassen zu sind. Soll ich sie schließen?',
      '`open` is 3, though all drawers are shut. Did you shut them?',
    ]);
  });

  it('is a heading with an emphasized value', () => {
    expect(
      told(
        '## Review of the shop',
        '',
        '### Verdict: **Approved with two small remarks**',
        '',
        '#### Important',
        '**The manual is old** - it still tells of carts.',
        '```',
        'cart',
        '```',
        'Take that out.',
      ),
    ).toBe(
      'Verdict: Approved with two small remarks … The manual is old - it still tells of carts. … Take that out.',
    );
  });

  it('are the options of a reply that asks, also if the answer picks none', () => {
    const reply = [
      '**I found the cause.** These are the fixes:',
      '',
      '1. **Option A: Take the cache out (simplest)** - every call reads the price then',
      '2. **Option B: Close it** - it is opened again at the next call',
      '',
      'As the cache is old, **Option A** seems safest.',
      '',
      'What do you prefer? Or shall I look further?',
    ].join('\n');
    expect([150, 320].map((max) => replyVerdict(reply, max, 'how large is that?'))).toEqual([
      'I found the cause. These are the fixes … Option A: Take the cache out (simplest) - every …; Option B: Close it - it is opened again at the …',
      'I found the cause. These are the fixes … Option A: Take the cache out (simplest) - every call reads the price then; Option B: Close it - it is opened again at the next call',
    ]);
    expect(replyVerdict(reply.replace(/What do.*/, 'I take it out.'), 150)).toBe(
      'I found the cause. These are the fixes … I take it out.',
    );
  });

  it('says more of the reply, the more space it has', () => {
    const reply =
      'Done.\n\nBoth shops now close the cart before they pay.\n\n**Changes:**\n1. `cart.ts` closes the cart\n2. `pay.ts` waits for it\n3. `mail.ts` is as it was';
    expect([80, 150, 320].map((max) => replyVerdict(reply, max))).toEqual([
      'Done. Both shops now close the cart before they pay.',
      'Done. Both shops now close the cart before they pay. Changes: 1. `cart.ts` closes the cart; 2. `pay.ts` waits for it; 3. `mail.ts` is as it was',
      'Done. Both shops now close the cart before they pay. Changes: 1. `cart.ts` closes the cart; 2. `pay.ts` waits for it; 3. `mail.ts` is as it was',
    ]);
  });

  it('are all parts of a report with numbered headings, and no list under the heading of another one', () => {
    const part = (title: string) => [
      title,
      '**Problem**: carts were kept.',
      '**Solution**:',
      '- `cart.ts` closes them',
      '#### `pay/` package',
      '- waits for that',
    ];
    const report = [
      'I have successfully changed the way in which orders are paid, and all that depends on it. Here is what I did:',
      '',
      '## Changes made',
      ...part('### 1. Carts are closed first'),
      ...part('### 2. **Payments wait (`pay.ts`)**'),
      ...part('### 3. Mails go out last'),
      'Mails could be tested, too.',
    ].join('\n');
    const risks = [
      'Both are still there.',
      '',
      '**#5 (Old ids)**: hardly a concern.',
      'However:',
      '- The input comes from the agent',
      '',
      '**#6 (Two writers at once)**: a small concern, as writers wait for each other.',
      'However:',
      '- Errors are handled',
    ].join('\n');
    expect([
      replyVerdict(report, 150),
      replyVerdict(report, 320),
      replyVerdict(risks, 320, 'Is #6 with two writers at once a real concern?'),
    ]).toEqual([
      '1. Carts are closed first; 2. Payments wait (`pay.ts`); 3. Mails go out last',
      'I have successfully changed the way in which orders are paid, and all that depends on it. … 1. Carts are closed first; 2. Payments wait (`pay.ts`); 3. Mails go out last',
      'Both are still there. #5 (Old ids): hardly a concern. However: The input comes from the agent; #6 (Two writers at once): a small concern, as writers wait for each other. However: Errors are handled',
    ]);
  });

  it('says nothing twice', () => {
    expect(
      told(
        'All tests pass and the linter is happy. Let me sum it up:',
        '## Summary',
        'I have mended both faults in `readStock()`:',
        '### 1. Added a log line for silent errors',
        '### 2. Read the shelf instead of the list',
        '',
        'All tests pass, and the linter is happy.',
      ),
    ).toBe(
      'All tests pass and the linter is happy. … 1. Added a log line for silent errors; 2. Read the shelf instead of the list',
    );
  });

  it('is the same verdict in summaries', () => {
    const reply =
      'I looked at all three of them, and at their tests.\n1. one of them waits for the lock of the other one\n2. the other one waits for the lock of the first\n\n**Causa**: la cerradura se tomó dos veces.\n\nYa no está.';
    expect(closingLines(reply, 0, { question: '', isAnswer: true }).map(({ text }) => text)).toEqual([
      'I looked at all three of them, and at their tests. … Causa: la cerradura se tomó dos veces.',
    ]);
  });
});

it('words behind an edit are told, unless they announce the next one', () => {
  const said = 'Now I pass the flag `force` to the callers of `openCart()`. Let me look for them.';
  const reason = 'Wait, `PostRun` only runs if the command succeeds. I take that back.';
  const behind = (kind: 'edit' | 'command', hasFailed = false) =>
    [said, reason].map((words) => wordsOnResult(words, { kind, hasFailed }));
  const [first, second] = [
    'Now I pass the flag `force` to the callers of `openCart()`.',
    'Wait, `PostRun` only runs if the command succeeds.',
  ];
  expect([behind('edit'), behind('edit', true), behind('command')]).toEqual([
    ['', second],
    [first, second],
    [first, second],
  ]);
});
