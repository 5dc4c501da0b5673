/** Makes valid conversations in neutral form: an agent that reads and runs things, with results long enough to be folded. */
import type { NeutralTurn } from '../support/codec-suite/fixture.ts';
import type { Random } from './random.ts';

/** The offered tools. Conversations also call `nope`, which does not exist, and `ToolSearch`, which loads tools. */
export const tools = ['run', 'read'];

export function turnsOf(random: Random, marker: string): readonly NeutralTurn[] {
  const turns: NeutralTurn[] = [];
  if (random.chance(0.4)) turns.push({ say: 'system', text: 'You are an agent.' });
  turns.push({ say: 'user', text: `Do the task ${marker}.` });
  const steps = 1 + random.below(random.chance(0.2) ? 24 : 10);
  for (let at = 0; at < steps; at++) turns.push(...stepOf(random, `${marker}-${at}`));
  if (random.chance(0.6) && turns.at(-1)!.say !== 'user')
    turns.push(...answered(turns), { say: 'user', text: 'What now?' });
  return turns;
}

/** Some formats require a reply of the model between results and the user. */
function answered(turns: readonly NeutralTurn[]): readonly NeutralTurn[] {
  return turns.at(-1)!.say === 'results' ? [{ say: 'assistant', text: 'All done.', calls: [] }] : [];
}

function stepOf(random: Random, marker: string): readonly NeutralTurn[] {
  if (random.chance(0.12)) {
    return [
      { say: 'assistant', text: `Reply ${marker}.`, calls: [] },
      { say: 'user', text: `More ${marker}: ${'please '.repeat(random.below(60))}` },
    ];
  }
  const calls = Array.from({ length: random.chance(0.25) ? 2 + random.below(2) : 1 }, (_, at) => ({
    // Ids sometimes repeat between steps, as in recorded runs.
    id: random.chance(0.05) ? `call_r${at}` : `call_${marker}_${at}`,
    name: random.pick(['run', 'run', 'read', 'read', 'nope', 'ToolSearch']),
    argumentsJson: argumentsOf(random),
  }));
  const asked: NeutralTurn = {
    say: 'assistant',
    calls,
    ...(random.chance(0.3) && { text: `Step ${marker}.` }),
  };
  const results = calls.map(({ id, name }, at) => ({
    id,
    text: name === 'nope' ? "Error: tool 'nope' not found" : resultOf(random, `${marker}.${at}`),
  }));
  return [asked, { say: 'results', results: random.chance(0.1) ? results.toReversed() : results }];
}

function argumentsOf(random: Random): string {
  return random.pick([
    '{}',
    '{"path":"src/a.ts"}',
    '{"id":12345678901234567890,"f":1.0}',
    `{"path":"b.ts","content":${JSON.stringify('export const line = 1;\n'.repeat(60))}}`,
  ]);
}

function resultOf(random: Random, marker: string): string {
  const lines = random.pick([0, 1, 5, 40, 40, 80]);
  switch (random.below(5)) {
    case 0:
      return JSON.stringify(
        Array.from({ length: lines }, (_, n) => ({ id: n, name: `${marker}-${n}`, ok: true })),
      );
    case 1:
      // The result is the same in every conversation, so that later results refer to it.
      return 'equal line of every result\n'.repeat(lines);
    default:
      return `log ${marker}\n${Array.from({ length: lines }, (_, n) => `${marker} line ${n} took ${n * 7} ms\n`).join('')}`;
  }
}
