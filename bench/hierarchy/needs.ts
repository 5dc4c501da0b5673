/**
 * Checks whether the context contains what an agent needs next: values in the arguments of recorded calls (paths, names, numbers, lines) that
 * occurred earlier in the same session. For comparison, it checks the newest actions, unchanged, with the same number of tokens.
 */
import { openTrajectory } from '../../src/index.ts';
import { loadTokenCounter } from '../../src/tokens/load-counter.ts';
import type { HierarchyOptions } from '../../src/trajectory/fold.ts';
import { candidatesOf, holds } from '../../src/replay/needs.ts';
import type { RunSubgoal } from './agent.ts';

export type NeedRow = {
  readonly trajectory: string;
  readonly sessions: number;
  readonly needs: number;
  /** Mean tokens of the contexts. */
  readonly tokens: number;
  readonly 'visible %': string;
  /** Share of values that the newest actions with the same number of tokens contain. */
  readonly 'visible in the newest %': string;
};

export async function needRow(
  name: string,
  sessions: readonly (readonly RunSubgoal[])[],
  options: HierarchyOptions,
): Promise<NeedRow> {
  const counter = await loadTokenCounter('gpt-4o');
  let [needs, visible, inNewest, tokens, contexts] = [0, 0, 0, 0, 0];
  for (const subgoals of sessions) {
    const trajectory = await openTrajectory({ goal: subgoals[0]!.goal, counter, ...options });
    const before: { readonly text: string; readonly tokens: number }[] = [];
    for (const { goal, actions } of subgoals) {
      trajectory.startSubgoal(goal);
      for (const action of actions) {
        await trajectory.settled();
        const context = trajectory.context();
        const history = before.map(({ text }) => text).join('\n');
        const newest = newestOf(before, context.tokens);
        for (const { value, within } of candidatesOf(action.action.slice(action.action.indexOf(' ') + 1))) {
          const need = [value, ...within].find((one) => holds(history, one));
          if (need === undefined) continue;
          needs++;
          visible += Number(holds(context.text, need));
          inNewest += Number(holds(newest, need));
        }
        tokens += context.tokens;
        contexts++;
        trajectory.addAction(action);
        const text = `${action.action}\n${action.observation}`;
        before.push({ text, tokens: counter.count(text) });
      }
    }
    await trajectory.settled();
  }
  return {
    trajectory: name,
    sessions: sessions.length,
    needs,
    tokens: Math.round(tokens / contexts),
    'visible %': ((100 * visible) / needs).toFixed(1),
    'visible in the newest %': ((100 * inNewest) / needs).toFixed(1),
  };
}

/** Returns the newest actions with about `maxTokens` tokens. The oldest of them is cut at its start. */
function newestOf(
  before: readonly { readonly text: string; readonly tokens: number }[],
  maxTokens: number,
): string {
  const taken: string[] = [];
  let left = maxTokens;
  for (const { text, tokens } of before.toReversed()) {
    taken.unshift(
      tokens <= left ? text : text.slice(text.length - Math.floor((text.length * left) / tokens)),
    );
    left -= tokens;
    if (left <= 0) break;
  }
  return taken.join('\n');
}
