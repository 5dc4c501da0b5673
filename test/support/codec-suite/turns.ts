/** Computes what scripted turns say, and what a client should make of them when the private calls are left out. */
import type { ToolCall } from '../../../src/codecs/codec.ts';
import type { Usage } from '../../../src/conversation/conversation.ts';
import { recallName } from './arbitrary.ts';
import type { ClientView, ResponseFixture, ScriptedPart, ScriptedTurn } from './fixture.ts';

export function saidIn(turn: ScriptedTurn, type: 'text' | 'reasoning'): string {
  return turn.parts.map((part) => (part.type === type ? part.pieces.join('') : '')).join('');
}

export function callsIn(turn: ScriptedTurn): readonly ToolCall[] {
  return turn.parts.flatMap((part) =>
    part.type === 'call' ? [{ id: part.id, name: part.name, argumentsJson: part.pieces.join('') }] : [],
  );
}

export function sumOf(turns: readonly Pick<ScriptedTurn, 'usage'>[]): Usage {
  const sum = (key: Exclude<keyof Usage, 'cacheWriteLong' | 'sentPrompt'>) =>
    turns.reduce((total, turn) => total + turn.usage[key], 0);
  return {
    input: sum('input'),
    cacheRead: sum('cacheRead'),
    cacheWrite: sum('cacheWrite'),
    output: sum('output'),
  };
}

/** Returns one message of all rounds. Only the last one can call something of the client's. */
export function expectedView(turns: readonly ScriptedTurn[]): ClientView {
  const last = turns.at(-1)!;
  const calls = callsIn(last).filter((call) => call.name !== recallName);
  return {
    text: turns.map((turn) => saidIn(turn, 'text')).join(''),
    reasoning: turns.map((turn) => saidIn(turn, 'reasoning')).join(''),
    calls,
    finish: last.finish === 'calls' && calls.length === 0 ? 'stop' : last.finish,
    usage: sumOf(turns),
    error: undefined,
  };
}

/** Returns the reasoning that a complete response of all rounds shows. */
export function reasoningIn(
  turns: readonly ScriptedTurn[],
  shown: ResponseFixture['reasoningShown'],
): string {
  const rounds = shown.ofEarlierRounds === 'kept' ? turns : turns.slice(-1);
  return rounds
    .flatMap(({ parts }) =>
      parts.filter(
        (part, at) =>
          part.type === 'reasoning' &&
          (shown.whereOnlyRecallsFollow === 'kept' ||
            !parts.some(isRecall) ||
            leadsTo(parts, at).some((led) => !isRecall(led))),
      ),
    )
    .map((part) => part.pieces.join(''))
    .join('');
}

function isRecall(part: ScriptedPart): boolean {
  return part.type === 'call' && part.name === recallName;
}

/** Returns what follows a reasoning up to the next one, or after that when two come in a row. */
function leadsTo(parts: readonly ScriptedPart[], at: number): readonly ScriptedPart[] {
  const behind = parts.slice(at + 1);
  const start = behind.findIndex((part) => part.type !== 'reasoning');
  const rest = start < 0 ? [] : behind.slice(start);
  const end = rest.findIndex((part) => part.type === 'reasoning');
  return end < 0 ? rest : rest.slice(0, end);
}
