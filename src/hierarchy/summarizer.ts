/** The interface of what writes summaries, and the words it is asked with. */

export interface Summarizer {
  /** For receipts: the model's name, `extractive`. */
  readonly name: string;
  /** May reject, may take its time until `signal` says it is too late; whatever it returns is checked. */
  summarize(request: SummaryRequest): Promise<string>;
}

export type SummaryRequest = {
  /** Oldest first; each begins with its id. */
  readonly steps: readonly string[];
  /** Tokens the summary should have, and hardly more. */
  readonly maxTokens: number;
  /** What the steps are and what the summary is for. */
  readonly guidance: string;
  readonly signal: AbortSignal;
};

/** What a model is told of a stretch. `task` and `goal` are the agent's own words. */
export function guidanceFor(level: string, task: string, goal: string): string {
  const what =
    level === 'subgoal'
      ? `the actions an agent took${goal === '' ? '' : ` for the sub-goal ${JSON.stringify(goal)}`}, each with what came of it`
      : `summaries of earlier work, oldest first, which together are one ${level}`;
  return [
    `The steps are ${what}.${task === '' ? '' : ` The task: ${JSON.stringify(task)}.`}`,
    'Write what the agent must still know of them: what was found, decided, changed, and what failed and why;',
    'paths, names, numbers, commands and errors word for word; requirements word for word.',
    'Keep the ids (such as a12, s3) of steps whose details may be needed again. No introduction, no advice.',
  ].join(' ');
}
