/** Plays a run into a trajectory turn by turn, and measures the contexts that an agent would have sent and the time it would have waited. */
import { openTrajectory } from '../../src/index.ts';
import { loadTokenCounter } from '../../src/tokens/load-counter.ts';
import type { HierarchyOptions } from '../../src/trajectory/fold.ts';
import type { RunSubgoal } from './agent.ts';

export type Row = {
  readonly run: string;
  readonly actions: number;
  readonly 'tokens seen': number;
  readonly 'largest context': number;
  readonly 'last context': number;
  /** Tokens seen divided by the tokens of the last context. */
  readonly overall: string;
  /** Tokens before compression divided by tokens after it, over all compressions of a level, with their number. */
  readonly subgoals: string;
  readonly phases: string;
  readonly overviews: string;
  /** Compressions with a warning: below 0.7 times the target, and above 1.5 times. */
  readonly 'under / over': string;
  /** Share of the context's characters that are in the prefix it shares with the turn before. */
  readonly 'prefix kept %': number;
  readonly 'ms a turn, first tenth': number;
  readonly 'ms a turn, last tenth': number;
  /** Actions whose record, read by id, equals the action. */
  readonly recalled: string;
};

export async function playRun(
  run: string,
  subgoals: readonly RunSubgoal[],
  options: HierarchyOptions,
): Promise<Row> {
  const counter = await loadTokenCounter('gpt-4o');
  const trajectory = await openTrajectory({
    goal: 'Make all tests of the service pass.',
    counter,
    ...options,
  });
  const actionsById = new Map<string, string>();
  const times: number[] = [];
  let largest = 0;
  let last = '';
  let [kept, sent] = [0, 0];
  for (const { goal, outcome, actions } of subgoals) {
    for (const [at, action] of actions.entries()) {
      const start = performance.now();
      if (at === 0) trajectory.startSubgoal(goal);
      actionsById.set(trajectory.addAction(action), JSON.stringify([action.action, action.observation]));
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
  for (const [id, action] of actionsById) {
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
  const warnings = (kind: 'under' | 'over') => all.reduce((total, one) => total + one[kind], 0);
  const tenth = Math.ceil(times.length / 10);
  return {
    run,
    actions: actionsById.size,
    'tokens seen': tokensSeen,
    'largest context': largest,
    'last context': tokensNow,
    overall: `${Math.round(tokensSeen / tokensNow)}:1`,
    subgoals: ratio('subgoal'),
    phases: ratio('phase'),
    overviews: ratio('overview'),
    'under / over': `${warnings('under')} / ${warnings('over')}`,
    'prefix kept %': Math.round((1_000 * kept) / sent) / 10,
    'ms a turn, first tenth': mean(times.slice(0, tenth)),
    'ms a turn, last tenth': mean(times.slice(-tenth)),
    recalled: `${recalled} of ${actionsById.size}`,
  };
}

function commonStart(before: string, after: string): number {
  const max = Math.min(before.length, after.length);
  let at = 0;
  while (at < max && before.charCodeAt(at) === after.charCodeAt(at)) at++;
  return at;
}

function mean(times: readonly number[]): number {
  return Math.round((100 * times.reduce((sum, each) => sum + each, 0)) / times.length) / 100;
}
