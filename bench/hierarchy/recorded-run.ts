/** Reads recorded coding sessions as neutral steps, and as one run of detected sub-goals. */
import { findSubgoals, type NeutralStep } from '../../src/index.ts';
import { type ChatMessage, readRecorded } from '../tokens/recorded.ts';
import type { RunSubgoal } from './agent.ts';

/** Returns undefined if there are no recorded conversations. */
export function recordedSteps(): readonly (readonly NeutralStep[])[] | undefined {
  const sessions = readRecorded()?.filter(({ source }) => source === 'entire-cli-sessions');
  return sessions?.map(({ messages }) => stepsOf(messages));
}

/** Returns the sub-goals of all sessions in order. Sub-goals without calls are left out. */
export function recordedRun(sessions: readonly (readonly NeutralStep[])[]): readonly RunSubgoal[] {
  return sessions.flatMap((steps) =>
    findSubgoals(steps).flatMap(({ start, end, goal }) => {
      const actions = steps.slice(start, end).flatMap((step) => {
        if (step.kind === 'said') return [];
        return [{ action: `${step.tool} ${step.input}`, observation: step.result ?? '' }];
      });
      return actions.length === 0 ? [] : [{ goal, actions }];
    }),
  );
}

function stepsOf(messages: readonly ChatMessage[]): readonly NeutralStep[] {
  const results = new Map(messages.map(({ tool_call_id, content }) => [tool_call_id, textOf(content)]));
  return messages.flatMap(({ role, content, tool_calls = [] }): readonly NeutralStep[] => {
    if (role !== 'user' && role !== 'assistant') return [];
    const text = textOf(content);
    const said: readonly NeutralStep[] = text === '' ? [] : [{ kind: 'said', by: role, text }];
    return [
      ...said,
      ...tool_calls.map(
        ({ id, function: { name, arguments: input } }): NeutralStep => ({
          kind: 'called',
          tool: name,
          input,
          result: results.get(id),
        }),
      ),
    ];
  });
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : '';
}
