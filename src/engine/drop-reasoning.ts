/**
 * Takes all reasoning out of a conversation whose provider refused it: sealed reasoning is bound to what stood before it, and what was
 * made over a fold or a recall that is no longer known (another gateway, a lost store) would be refused for ever.
 */
import type { Edit } from '../conversation/edit.ts';
import { placeKey } from '../conversation/pairing.ts';
import { newFault, newProblems } from './check.ts';
import { type Draft, draft, type Planned, type PlanInput } from './plan.ts';

/** Undefined when there is none, and when the rest would not be valid. */
export async function dropReasoning(input: PlanInput, start: Draft): Promise<Planned | undefined> {
  const gone = new Set(start.edits.flatMap((edit) => (edit.kind === 'drop-part' ? [placeKey(edit)] : [])));
  const dropped = input.conversation.messages.flatMap(({ index: message, parts }) =>
    parts.flatMap(({ type }, part): readonly Edit[] =>
      type === 'reasoning' && !gone.has(placeKey({ message, part }))
        ? [{ kind: 'drop-part', message, part, memory: undefined }]
        : [],
    ),
  );
  if (dropped.length === 0) return undefined;
  const result = await draft(input, [...start.edits, ...dropped]);
  const { rules } = input.codec;
  if (newProblems(rules, start.sent, result.sent).length > 0) return undefined;
  if (newFault(rules, input.conversation.body, result.body) !== undefined) return undefined;
  const tokensSaved = start.tokens - result.tokens;
  return { draft: result, steps: [{ strategy: 'drop-reasoning', edits: dropped.length, tokensSaved }] };
}
