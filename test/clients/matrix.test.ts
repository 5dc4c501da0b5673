import { expect, it } from 'vitest';
import { foldedLoop } from './loops.ts';
import { clientRow, spelledMatrix } from './matrix.ts';

const loop = (canResume: boolean) => foldedLoop({ prompt: 9_000, file: { of: 300, takes: 320 } }, canResume);
const receipts = [{ trigger: 'windowFraction', recalls: [{ found: true }] }] as never;
const exchanges = [{ response: 'event: message_start\ndata: {}\n' }] as never;

it('has a row for each client, which says what worked', () => {
  const rows = [
    clientRow('codex/responses', loop(true), { receipts, exchanges }, []),
    clientRow('gemini-cli/gemini', loop(false), { receipts, exchanges: [] }, []),
    clientRow('pi/messages', loop(true), { receipts: [], exchanges }, ['nothing was folded']),
  ];
  expect(spelledMatrix(rows)).toBe(
    [
      'client, adapter or library  runtime         fold    recall  stream           restart',
      'codex/responses             the CLI itself  yes     yes     yes              yes',
      'gemini-cli/gemini           the CLI itself  yes     yes     does not stream  cannot resume',
      'pi/messages                 the CLI itself  FAILED  FAILED  FAILED           FAILED',
      '',
    ].join('\n'),
  );
});
