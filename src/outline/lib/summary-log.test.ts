import { expect, it } from 'vitest';
import { call, model, user } from '../../../test/support/summary-steps.ts';
import { extract } from '../extract.ts';
import type { SummaryRequest, SummaryStep } from '../summarizer.ts';

function summaryOf(
  steps: readonly SummaryStep[],
  max = 3_000,
  more: Pick<SummaryRequest, 'originals' | 'cuts' | 'stepsAhead' | 'question' | 'isToldByModel'> & {
    earlier?: readonly string[];
  } = {},
): string {
  const request: SummaryRequest = {
    steps,
    earlier: [],
    known: [],
    ...more,
    budget: { aim: max, max },
    count: (text) => Math.ceil(text.length / 4),
  };
  return extract(request) ?? '';
}

const title = 'In order (what USER demanded holds unless taken back later; YOU is the model):';
const page = (name: string, result: string) => call('open_page', { url: name }, result);
const empty = 'This page has moved.';

it('tells what a result says at its call, also where a line joins that call with others', () => {
  const steps = [
    user('Who paid for the mill?'),
    page('oakvale', empty),
    page('harrow', empty),
    page('selwick', 'In 1826 a loan from the city paid for Selwick Mill.'),
    page('marston', empty),
    page('kelding', empty),
    model('The city did, by a loan of 1826.'),
  ];
  expect(summaryOf(steps)).toBe(`${title}
- USER: Who paid for the mill?
- open_page ×2: oakvale, harrow: "This page has moved."
- open_page selwick: "In 1826 a loan from the city paid for Selwick Mill."
- open_page ×2: marston, kelding: "This page has moved."
- YOU: The city did, by a loan of 1826.`);
});

it('names the call in short of a result for whose call there is not enough room', () => {
  const steps = [
    user('Why is it slow?'),
    ...Array.from({ length: 6 }, (_, at) => call('run', { command: `cat logs/${at}.txt | sort` }, 'x')),
    call(
      'run',
      {
        command: `curl -s https://status.example.com/api/v2/incidents?limit=100 | jq -r '.incidents[] | .name, .impact'`,
        description: 'Ask the status page',
      },
      'The database of eu-west-1 was moved on 12 May.\nSince then each write waits for the zone us-east-1.',
    ),
    ...Array.from({ length: 6 }, (_, at) => call('run', { command: `cat logs/${at}.csv | sort` }, 'x')),
    model('Each write waits for another zone since the move of 12 May.'),
  ];
  expect(summaryOf(steps, 110)).toBe(`${title}
- USER: Why is it slow?
- (6 calls: run ×6)
- run (Ask the status page) → "The database of eu-west-1 was moved on 12 May."
- run ×6: cat logs/0.csv | sort, cat logs/1.csv | sort, cat logs/2.csv | sort, cat logs/3.csv | sort, cat logs/4.csv | sort, cat logs/5.csv | sort: "x"
- YOU: Each write waits for another zone since the move of 12 May.`);
});

it('numbers the original of a line where another one has the line before, and keeps the numbers of an earlier text', () => {
  const steps = [
    user('Rename the flag.'),
    call('edit_file', { path: 'src/flag.ts', old: 'a', new: 'b' }, 'ok'),
    model('The flag is `--quiet` now.'),
    user('And the docs?'),
    call('edit_file', { path: 'docs/flags.md', old: 'a', new: 'b' }, 'ok'),
    model('`docs/flags.md` has the new name, too.'),
  ];
  const once = summaryOf(steps, 3_000, { originals: [2, 1, 1, 1, 3, 3] });
  expect(once).toBe(`${title}
- [2] USER: Rename the flag.
- [1] edit_file flag.ts: ok
- YOU: The flag is \`--quiet\` now.
- USER: And the docs?
- [3] edit_file flags.md: ok
- YOU: \`docs/flags.md\` has the new name, too.
Files touched until then:
- edited: docs/flags.md, src/flag.ts`);
  const again = summaryOf([user('Now push it.')], 3_000, { earlier: [once], originals: [4] });
  expect(again.split('\n').slice(0, 8)).toEqual([
    title,
    '- [2] USER: Rename the flag.',
    '- [1] edit_file flag.ts: ok',
    '- YOU: The flag is `--quiet` now.',
    '- USER: And the docs?',
    '- [3] edit_file flags.md: ok',
    '- YOU: `docs/flags.md` has the new name, too.',
    '- [4] USER: Now push it.',
  ]);
});

it('goes on with numbers of its own behind messages that stay, and divides no line and no calls in short there', () => {
  const runs = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => call('run', { command: `make part-${from + at}` }, 'ok'));
  const steps = [
    user('Rename the flag.'),
    ...runs(0, 6),
    model('The flag is `--quiet` now.\n\nShall I push?'),
    ...runs(6, 12),
    model('Pushed as `ab12`.'),
  ];
  const originals = [...steps.slice(0, 8).map(() => undefined), ...runs(6, 12).map(() => 1), 2];
  const cut = { steps: 8, summaries: 0, isTurn: true, question: 'Shall I push?' };
  expect(summaryOf(steps, 125, { originals, cuts: [cut] })).toBe(`${title}
- USER: Rename the flag.
- run ×6: make part-0, make part-1, make part-2, make part-3, make part-4, make part-5: ok
- YOU: The flag is \`--quiet\` now. Shall I push?
In order:
- [1] run ×6: make part-6, make part-7, make part-8, make part-9, make part-10, make part-11: ok
- [2] YOU: Pushed as \`ab12\`.`);
});

it('says what the words of the user came with: a skill, a hook', () => {
  const steps = [
    user(
      'Base directory for this skill: /home/me/.skills/release\n\n# Release\n\nTag and publish.\n\nARGUMENTS: 2.0.1',
    ),
    model('Version 2.0.1 is tagged.'),
    user(
      'Operation stopped by hook: Another session is active in this folder.\n\nOriginal prompt: publish it',
    ),
    model('Version 2.0.1 is published.'),
    user('Tell the others.'),
    user('Operation stopped by hook: The mail is off.'),
    user('Tell the others.'),
  ];
  expect(summaryOf(steps)).toBe(`${title}
- USER: (skill release) 2.0.1
- YOU: Version 2.0.1 is tagged.
- USER: (Operation stopped by hook: Another session is active in this folder.) publish it
- YOU: Version 2.0.1 is published.
- USER: Tell the others.
- USER: (Operation stopped by hook: The mail is off.) Tell the others.`);
});

it('keeps lines that the user pasted and that begin like one above them', () => {
  expect(
    summaryOf([user('> start\nError: port 8443 is taken\nport 8443 is taken'), model('Fixed it.')]),
  ).toBe(
    `${title}
- USER: start / Error: port 8443 is taken / port 8443 is taken
- YOU: Fixed it.`,
  );
});

it('does not give a question of the model to words that ask in turn', () => {
  const steps = [
    user('Fetch the branch first.'),
    model('Both functions do that now. Shall I join them?'),
    user('Can you look at the 3 callers?'),
    call('read_file', { path: 'src/callers.ts' }, 'export const a = 1;'),
    model('1. `a` is right.\n2. `b` is right.\n3. `c` fails. Shall I mend it?'),
    user('Yes.'),
  ];
  expect(summaryOf(steps)).toBe(`${title}
- USER: Fetch the branch first.
- YOU: Both functions do that now. Shall I join them?
- USER: Can you look at the 3 callers?
- read_file callers.ts
- YOU: 1. \`a\` is right. 2. \`b\` is right. 3. \`c\` fails.
- USER: Yes. (asked: "Shall I mend it?")
Files touched until then:
- read: src/callers.ts`);
});

it('tells the verdict of a reply that stands in a heading', () => {
  const review =
    '## Results\n\n### Verdict: **Approved with two wishes**\n\n### Issues\n\n`docs/hooks.md` still names the step that is gone, and nothing else does that any more.\n\nShall I change it?';
  expect(summaryOf([user('Review the branch.'), model(review), user('Yes.')])).toBe(`${title}
- USER: Review the branch.
- YOU: \`docs/hooks.md\` still names the step that is gone, and nothing else does that … Verdict: Approved with two wishes
- USER: Yes. (asked: "Shall I change it?")`);
});

it('says that a list goes on behind the item that is told', () => {
  const steps = [
    user('Mend what the comments say.'),
    call('list_comments', { page: 1 }, 'ok'),
    model(
      'Here are the 3 comments:\n\n1. The loop of `walk.go` walks `main` once more for each of its commits.\n2. It is long.\n3. It is old.',
    ),
    call('edit_file', { path: 'src/walk.go', old: 'a', new: 'b' }, 'ok'),
    model('All three are mended.'),
  ];
  expect(summaryOf(steps, 88)).toBe(`${title}
- USER: Mend what the comments say.
- list_comments 1: "ok"
- YOU: Here are the 3 comments: 1. The loop of \`walk.go\` walks \`main\` once more for each of its commits. …
- edit_file walk.go: ok
- YOU: All three are mended.
Files touched until then:
- edited: src/walk.go`);
});

it('tells steps that came between two earlier summaries between their lines, and can be cut between these', () => {
  const earlier = [
    `${title}\n- USER: Rename the flag.\n- edit_file flag.ts: ok`,
    'In order:\n- edit_file flags.md: ok\n- YOU: Both have the new name.',
  ];
  const steps = [user('And the docs?'), user('Now push it.'), call('run', { command: 'git push' }, 'ok')];
  const lines = [
    title,
    '- USER: Rename the flag.',
    '- edit_file flag.ts: ok',
    '- USER: And the docs?',
    '- edit_file flags.md: ok',
    '- YOU: Both have the new name.',
    '- USER: Now push it.',
    '- run git push: ok',
  ];
  expect(summaryOf(steps, 3_000, { earlier, stepsAhead: [0, 1] }).split('\n')).toEqual(lines);
  const cut = { steps: 1, summaries: 1, isTurn: false, question: '' };
  expect(summaryOf(steps, 3_000, { earlier, stepsAhead: [0, 1], cuts: [cut] }).split('\n')).toEqual(
    lines.toSpliced(4, 0, 'In order:'),
  );
});

it('names all originals of calls in short, and reads them again', () => {
  const runs = Array.from({ length: 6 }, (_, at) => call('run', { command: `make part-${at}` }, 'ok'));
  const steps = [user('Make all.'), ...runs, model('All six parts are made.')];
  const once = summaryOf(steps, 50, { originals: [1, 1, 1, 2, 2, 3, 3, 3] });
  const expected = `${title}
- [1] USER: Make all.
- [1-3] (6 calls: run ×6)
- [3] YOU: All six parts are made.`;
  expect(once).toBe(expected);
  expect(summaryOf([], 60, { earlier: [once] })).toBe(expected);
});

it('ends with the questions that an answer needs which stays behind it', () => {
  const reply = 'The lanes are drawn.\n\n1. Shall they have ends?\n2. Is the newest one on the left?';
  const question = '1. Shall they have ends? / 2. Is the newest one on the left?';
  expect(summaryOf([user('Draw it.'), model(reply)], 60, { question })).toBe(`${title}
- USER: Draw it.
- YOU: The lanes are drawn. 1. Shall they have ends? 2. Is the newest one on the left?`);
});

it('keeps the request at the end of a comment, and no words of a client about commands', () => {
  const about =
    'The test never reaches the code that sets the default, because the flag is hidden there. '.repeat(5);
  const request =
    'Consider either leaving the sender out of it or building the test anew, so that it can look at what would be sent, and not only at whether something was sent to it, since that is what broke last time.';
  const caveat =
    'Caveat: The messages below were generated by the user while running local commands. DO NOT respond to these messages.';
  const told = summaryOf([user('Mend the comments.'), user(caveat), user(`${about}${request}`)], 400);
  expect(told.split('\n').slice(1)).toEqual([
    '- USER: Mend the comments.',
    expect.stringMatching(
      /^- USER: The test never reaches .* \/ Consider either leaving .* broke last time\.$/,
    ),
  ]);
});

it('tells a demand whole that repeats lines of an earlier one, and a repeated message once', () => {
  const steps = [
    user('It should print:\nEnabled\nLocal, off'),
    model('Done. It prints the state and the file.'),
    user('It should print:\nEnabled\n\nProject, on\nLocal, off'),
    model('Now it prints the files of the project, too.'),
    user('Go on.'),
    model('The tests pass.'),
    user('Go on.'),
  ];
  expect(summaryOf(steps)).toBe(`${title}
- USER: It should print: / Enabled / Local, off
- YOU: Done. It prints the state and the file.
- USER: It should print: / Enabled / Project, on / Local, off
- YOU: Now it prints the files of the project, too.
- USER: Go on.
- YOU: The tests pass.`);
});
