/** What became of a request under its edits, for its report. */
import type { RecallTool } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { originalIdsOf, originalsOf } from '../conversation/original.ts';
import type { FoldStep } from '../receipts/receipt.ts';
import type { Prepared } from './prepared.ts';

export function outcomeOf(
  edits: readonly Edit[],
  steps: readonly FoldStep[] | undefined,
): Prepared['outcome'] {
  if (edits.length > 0) return { status: 'compacted' };
  const refused = steps?.find((step) => step.refused !== undefined)?.refused;
  if (refused !== undefined) return { status: 'untouched', reason: refused };
  return { status: 'untouched', reason: steps ? 'nothing to fold' : 'no trigger fired' };
}

export function callsOf({ messages }: Conversation, tool: RecallTool | undefined): number {
  const parts = messages.flatMap((message) => message.parts);
  return parts.filter((part) => part.type === 'tool-call' && part.name === tool?.name).length;
}

/** What a search looks through: what was folded last first, what was only made smaller last, and nothing that went again with its message. */
export function searchedOf(folds: readonly Edit[], shrinks: readonly Edit[]): readonly string[] {
  const gone = new Set(
    folds.flatMap((edit) =>
      edit.kind === 'drop-message' && edit.memory !== undefined ? [edit.message] : [],
    ),
  );
  const wentAgain = (edit: Edit) =>
    (edit.kind === 'replace-text' && gone.has(edit.at.message)) ||
    (edit.kind === 'replace-input' && gone.has(edit.message));
  return originalIdsOf([...shrinks, ...folds].filter((edit) => !wentAgain(edit))).toReversed();
}

export function originalFinder(conversation: Conversation, edits: readonly Edit[]): Prepared['original'] {
  let originals: ReadonlyMap<string, Uint8Array> | undefined;
  return (id) => {
    originals ??= originalsOf(conversation, edits);
    return originals.get(id);
  };
}
