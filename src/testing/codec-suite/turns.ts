/** What scripted turns say, and what a client should make of them when the private calls are left out. */
import type { ToolCall, Usage } from '../../codecs/codec.ts';
import { recallName } from './arbitrary.ts';
import type { ClientView, ScriptedTurn } from './fixture.ts';

export function saidIn(turn: ScriptedTurn, type: 'text' | 'reasoning'): string {
  return turn.parts.map((part) => (part.type === type ? part.pieces.join('') : '')).join('');
}

export function callsIn(turn: ScriptedTurn): readonly ToolCall[] {
  return turn.parts.flatMap((part) =>
    part.type === 'call' ? [{ id: part.id, name: part.name, argumentsJson: part.pieces.join('') }] : [],
  );
}

export function sumOf(turns: readonly ScriptedTurn[]): Usage {
  const sum = (key: keyof Usage) => turns.reduce((total, turn) => total + turn.usage[key], 0);
  return {
    input: sum('input'),
    cacheRead: sum('cacheRead'),
    cacheWrite: sum('cacheWrite'),
    output: sum('output'),
  };
}

/** One message of all rounds. Only the last can call something of the client's. */
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
