import { expect, it } from 'vitest';
import { runSteps } from '../../conversation/steps.ts';
import { stepWords } from '../../outline/step-line.ts';
import { knownNames, messagesLog } from './stubs.ts';

it('a log without space for more has the first demand, ahead of the words of the model', () => {
  const pages = [
    {
      memory: 'mem_1',
      messages: 4,
      entries: [
        { kind: 'reply', text: 'How can I help you?', verdict: 'How can I help you?' },
        {
          kind: 'user',
          text: 'Cancel both orders, but keep the gift.',
          verdict: 'Cancel both orders, but keep the gift.',
        },
        { kind: 'reply', text: 'Both are cancelled.', verdict: 'Both are cancelled.' },
        { kind: 'user', text: `The ${'very '.repeat(40)}old one, too.`, verdict: 'The old one, too.' },
      ],
    },
  ] as const;
  const known = knownNames({ logs: '', staying: [], dropped: [], all: [], repaired: new Map() });
  const log = (maxWords: number) =>
    runSteps(messagesLog({ pages, maxCharacters: 0, maxVerdicts: 0, maxWords, known, recallTool: undefined }))
      .split('\n')
      .slice(1);
  expect([log(0), log(130)]).toEqual([
    ['USER: Cancel both orders, but keep the gift.]'],
    ['USER: Cancel both orders, but keep the gift.', 'USER: The old one, too.]'],
  ]);
});

it('what the model said of a failure stays with it, and gives way later than what it said of other results', () => {
  const ran = (command: string, result: string) =>
    stepWords({ tool: 'Bash', input: JSON.stringify({ command }), result, isError: undefined });
  const [failed, listed] = [ran('shop back 7', 'FAIL: mail.txt is still there'), ran('shop list', '7 open')];
  const entries = [
    { kind: 'user', text: 'Take back order 7.' },
    { kind: 'step', step: listed },
    { kind: 'found', text: 'Seven orders of May are still open.', on: listed },
    { kind: 'step', step: failed },
    { kind: 'found', text: 'That is meant to be so: `back` keeps files.', on: failed },
  ] as const;
  const known = knownNames({ logs: '', staying: [], dropped: [failed], all: [], repaired: new Map() });
  const pages = [{ memory: 'mem_1', messages: 4, entries }];
  const sizes = { maxCharacters: 210, maxVerdicts: 210, maxWords: 210 };
  expect(
    runSteps(messagesLog({ pages, ...sizes, known, recallTool: undefined }))
      .split('\n')
      .slice(1),
  ).toEqual([
    'USER: Take back order 7.',
    'Bash shop back 7: failed, "FAIL: mail.txt is still there"',
    'YOU: That is meant to be so: `back` keeps files.',
    '(1 call left out: Bash)]',
  ]);
});
