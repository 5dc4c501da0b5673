/** The words in which a summarizer is told what a stretch is and what its summary is for. */

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
