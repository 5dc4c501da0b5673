/** Plays a run into a trajectory turn by turn, and measures what an agent would have sent and waited for. */
import { type HierarchyOptions, loadTokenCounter, openTrajectory } from '../../src/index.ts';
import type { MadeSubgoal } from './agent.ts';

export type Row = {
  readonly run: string;
  readonly actions: number;
  readonly 'tokens seen': number;
  readonly 'largest context': number;
  readonly 'last context': number;
  /** Tokens seen for one of the last context. */
  readonly overall: string;
  /** Tokens in for one out, all of a level together. */
  readonly subgoals: string;
  readonly phases: string;
  readonly overviews: string;
  /** Warnings: under 0.7 and over 1.5 times the target. */
  readonly 'under / over': string;
  /** Of the context's characters, those that stood at the same place in the turn before. */
  readonly 'prefix kept %': number;
  readonly 'ms a turn, first tenth': number;
  readonly 'ms a turn, last tenth': number;
  /** Actions whose record is what was done, all of them asked for by id. */
  readonly recalled: string;
};

export async function playRun(
  run: string,
  subgoals: readonly MadeSubgoal[],
  options: HierarchyOptions,
): Promise<Row> {
  const counter = await loadTokenCounter('gpt-4o');
  const trajectory = await openTrajectory({
    goal: 'Make all tests of the service pass.',
    counter,
    ...options,
  });
  const given = new Map<string, string>();
  const times: number[] = [];
  let largest = 0;
  let last = '';
  let [kept, sent] = [0, 0];
  for (const { goal, outcome, actions } of subgoals) {
    for (const [at, action] of actions.entries()) {
      const start = performance.now();
      if (at === 0) trajectory.startSubgoal(goal);
      given.set(trajectory.addAction(action), JSON.stringify([action.action, action.observation]));
      if (at === actions.length - 1) void trajectory.completeSubgoal(outcome);
      await trajectory.settled();
      const { text, tokens } = trajectory.context();
      times.push(performance.now() - start);
      largest = Math.max(largest, tokens, counter.count(text));
      kept += commonStart(last, text);
      sent += text.length;
      last = text;
    }
  }
  let recalled = 0;
  for (const [id, action] of given) {
    const record = await trajectory.record(id);
    if (record?.kind === 'action' && JSON.stringify([record.action, record.observation]) === action)
      recalled++;
  }
  const { tokensSeen, tokensNow, compressions } = trajectory.report();
  const ratio = (level: string): string => {
    const { count = 0, tokensBefore = 0, tokensAfter = 1 } = compressions[level] ?? {};
    return count === 0 ? '' : `${(tokensBefore / tokensAfter).toFixed(1)} (${count})`;
  };
  const all = Object.values(compressions);
  const sum = (what: 'under' | 'over') => all.reduce((total, one) => total + one[what], 0);
  const tenth = Math.ceil(times.length / 10);
  return {
    run,
    actions: given.size,
    'tokens seen': tokensSeen,
    'largest context': largest,
    'last context': tokensNow,
    overall: `${Math.round(tokensSeen / tokensNow)}:1`,
    subgoals: ratio('subgoal'),
    phases: ratio('phase'),
    overviews: ratio('overview'),
    'under / over': `${sum('under')} / ${sum('over')}`,
    'prefix kept %': Math.round((1_000 * kept) / sent) / 10,
    'ms a turn, first tenth': mean(times.slice(0, tenth)),
    'ms a turn, last tenth': mean(times.slice(-tenth)),
    recalled: `${recalled} of ${given.size}`,
  };
}

function commonStart(before: string, after: string): number {
  const most = Math.min(before.length, after.length);
  let at = 0;
  while (at < most && before.charCodeAt(at) === after.charCodeAt(at)) at++;
  return at;
}

function mean(times: readonly number[]): number {
  return Math.round((100 * times.reduce((sum, each) => sum + each, 0)) / times.length) / 100;
}
