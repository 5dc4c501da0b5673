/** A small agent for tests of trajectories: its task and actions, and summarizers with a fixed answer. */
import { openTrajectory, type Trajectory, type TrajectoryOptions } from '../../src/trajectory/trajectory.ts';
import type { Summarizer } from '../../src/outline/summarizer.ts';

const secret = new Uint8Array(32).fill(5);

export const answering = (answer: string): Summarizer => ({
  name: 'answering',
  summarize: async () => answer,
});

/** Opens a trajectory that folds even the newest and the fewest actions. */
export const openScene = (options: Partial<TrajectoryOptions> = {}): Promise<Trajectory> =>
  openTrajectory({
    goal: 'Mend the login',
    minActions: 0,
    newestShare: 0,
    secret,
    model: 'gpt-4o',
    ...options,
  });

/** Plays a sub-goal of `length` actions of some 100 tokens each. */
export async function work(trajectory: Trajectory, name: string, length: number): Promise<void> {
  trajectory.startSubgoal(name);
  for (let at = 1; at <= length; at++) {
    const lines = Array.from(
      { length: 10 },
      (_, line) => `src/${name}-${at}.ts:${line}: value ${line} is set`,
    );
    trajectory.addAction({ action: `grep value src/${name}-${at}.ts`, observation: lines.join('\n') });
  }
  await trajectory.completeSubgoal(`${name} is done`);
}
