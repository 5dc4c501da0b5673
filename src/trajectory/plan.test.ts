import { describe, expect, it } from 'vitest';
import { levelName } from '../outline/levels.ts';
import { nextWork, settingsFrom } from './fold.ts';
import { emptyState, letterOf, type Subgoal, type Summary, type TrajectoryState } from './state.ts';

/** `pssss`: a phase and four sub-goals, each of 100 tokens. `b` is a sub-goal of 500. */
function entriesOf(spelled: string): readonly Summary[] {
  return spelled.split('').map((letter, at) => {
    const level = { s: 1, b: 1, p: 2, o: 3 }[letter] ?? 1;
    const tokens = letter === 'b' ? 500 : 100;
    const id = `${letterOf(level)}${at + 1}`;
    return {
      kind: 'summary',
      level,
      id,
      goal: '',
      text: levelName(level),
      memory: 'mem_',
      tokens,
      covers: {},
    };
  });
}

function subgoal(id: string, actions: number, tokens = 10): Subgoal {
  const cost = { action: tokens, observation: tokens };
  const action = (at: number) => ({ id: `a${at}`, action: 'look', observation: 'nothing', cost });
  return { kind: 'subgoal', id, goal: '', actions: Array.from({ length: actions }, (_, at) => action(at)) };
}

function stateOf(entries: TrajectoryState['entries'], open?: Subgoal, actions = 100): TrajectoryState {
  const state = emptyState('');
  return { ...state, counts: { ...state.counts, a: actions }, entries, open };
}

/** Writes the work as `level: ids`. */
function workIn(
  state: TrajectoryState,
  preset: 'production' | 'long-horizon',
  pressing: boolean,
  waiting = true,
): string {
  const work = nextWork(state, settingsFrom({ preset, budgetTokens: 10_000 }), {
    context: pressing,
    waiting,
  });
  if (work === undefined) return 'nothing';
  if (work.kind === 'part') return `part ${work.length}`;
  const ids = work.of.map(({ id }) => id).join(' ');
  return work.kind === 'summarize' ? `summarize ${ids}` : `level ${work.level}: ${ids}`;
}

describe('the next work', () => {
  it('is the oldest finished sub-goal, once there are 20 actions', () => {
    const entries = [...entriesOf('ss'), subgoal('s3', 4), subgoal('s4', 4)];
    expect(workIn(stateOf(entries), 'production', false)).toBe('summarize s3');
    expect(workIn(stateOf(entries, undefined, 19), 'production', false)).toBe('nothing');
    expect(workIn(stateOf(entries), 'production', false, false)).toBe('nothing');
  });

  it('is a part of an open sub-goal that has grown long', () => {
    expect(workIn(stateOf([], subgoal('s1', 9)), 'production', false)).toBe('nothing');
    expect(workIn(stateOf([], subgoal('s1', 10)), 'production', false)).toBe('part 7');
  });

  it('is the next level if there are enough summaries before the newest, and levels are always made', () => {
    const twelve = stateOf(entriesOf('ssssssssssss'));
    expect(workIn(twelve, 'long-horizon', false)).toBe('level 2: s1 s2 s3 s4 s5 s6 s7 s8 s9 s10');
    expect(workIn(twelve, 'production', false)).toBe('nothing');
    expect(workIn(stateOf(entriesOf('sssssssssss')), 'long-horizon', false)).toBe('nothing');
    expect(workIn(stateOf(entriesOf('ppppppss')), 'long-horizon', false)).toBe('level 3: p1 p2 p3 p4 p5');
    expect(workIn(stateOf(entriesOf('oooooooss')), 'long-horizon', false)).toBe('nothing');
  });
});

describe('the next work over the budget', () => {
  it('is the lowest full level first, then the summaries with the most tokens, then the two oldest', () => {
    expect(workIn(stateOf(entriesOf('pppppssssssssss')), 'production', true)).toMatch(/^level 2: s6 .* s15$/);
    expect(workIn(stateOf(entriesOf('pppppss')), 'production', true)).toBe('level 3: p1 p2 p3 p4 p5');
    expect(workIn(stateOf(entriesOf('oooooss')), 'production', true)).toBe('level 4: o1 o2 o3 o4 o5');
    expect(workIn(stateOf(entriesOf('pppbbbb')), 'production', true)).toBe('level 2: s4 s5');
    expect(workIn(stateOf(entriesOf('ops')), 'production', true)).toBe('level 4: o1 p2');
  });

  it('is a sub-goal shown in full if those have too many tokens, and before incomplete levels', () => {
    const state = stateOf([...entriesOf('ssssssssss'), subgoal('s11', 4)], undefined, 5);
    expect(workIn(state, 'production', true)).toBe('summarize s11');
    expect(workIn(state, 'production', true, false)).toMatch(/^level 2: /);
    const few = stateOf([...entriesOf('ss'), subgoal('s3', 4)], undefined, 5);
    expect(workIn(few, 'production', true, false)).toBe('summarize s3');
  });

  it('is the older half of the open sub-goal if it is the larger part, or if nothing else is left', () => {
    expect(workIn(stateOf(entriesOf('ss'), subgoal('s3', 6, 1_000)), 'production', true)).toBe('part 3');
    expect(workIn(stateOf(entriesOf('ss'), subgoal('s3', 6, 10)), 'production', true)).toBe('level 2: s1 s2');
    expect(workIn(stateOf(entriesOf('p'), subgoal('s3', 6, 10)), 'production', true)).toBe('part 3');
    expect(workIn(stateOf(entriesOf('p'), subgoal('s3', 1, 10)), 'production', true)).toBe('nothing');
  });
});
