/**
 * Counts what an agent does after the arms of an experiment parted: failed edits, failed calls, calls that fetch the same again, and the
 * user's messages. Reads the client's own conversation, so both arms are counted alike. Only numbers leave this module. Pure.
 */
import type { Conversation, Message } from '../conversation/conversation.ts';
import { inputOf, textOf } from '../conversation/messages.ts';
import { saysTextNotFound } from '../outline/outcome.ts';
import { sha256 } from '../store/encrypted-store.ts';

/** Counts of one conversation, or sums over several. */
export type OutcomeCounts = {
  readonly userTurns: number;
  readonly toolCalls: number;
  /** Calls with the same tool and arguments as an earlier call of the conversation. */
  readonly refetches: number;
  /** Results that say that the text of an edit was not found. */
  readonly failedEdits: number;
  /** Results that the client marked as errors. */
  readonly toolErrors: number;
};

export const noCounts: OutcomeCounts = {
  userTurns: 0,
  toolCalls: 0,
  refetches: 0,
  failedEdits: 0,
  toolErrors: 0,
};

/** Adds up counts. */
export function addedCounts(one: OutcomeCounts, other: OutcomeCounts): OutcomeCounts {
  return {
    userTurns: one.userTurns + other.userTurns,
    toolCalls: one.toolCalls + other.toolCalls,
    refetches: one.refetches + other.refetches,
    failedEdits: one.failedEdits + other.failedEdits,
    toolErrors: one.toolErrors + other.toolErrors,
  };
}

/** Bytes of a result that may report a failed edit. */
const maxReportBytes = 20_000;

/** Counts what happened in the messages from index `from` on. Earlier messages are read for calls that are repeated later. */
export function outcomesOf({ body, messages }: Conversation, from: number): OutcomeCounts {
  const counts = { ...noCounts };
  const calls = new Set<string>();
  for (const message of messages) {
    const isCounted = message.index >= from;
    if (isCounted && isUserTurn(message)) counts.userTurns += 1;
    for (const part of message.parts) {
      if (part.type === 'tool-call') {
        const call = sha256(new TextEncoder().encode(`${part.name} ${inputOf(body, message, part)}`));
        if (isCounted) counts.toolCalls += 1;
        if (isCounted && calls.has(call)) counts.refetches += 1;
        calls.add(call);
      } else if (part.type === 'tool-result' && isCounted) {
        if (part.isError) counts.toolErrors += 1;
        const reports = part.texts.filter(({ start, end }) => end - start <= maxReportBytes);
        if (reports.some((span) => saysTextNotFound(textOf(body, message, span)))) counts.failedEdits += 1;
      }
    }
  }
  return counts;
}

function isUserTurn({ role, parts }: Message): boolean {
  return role === 'user' && parts.some(({ type }) => type !== 'tool-result');
}
