/**
 * Counts what an agent does after the arms of an experiment parted: failed edits, failed calls, calls that fetch the same again, and the
 * user's messages. Reads the client's own conversation, so both arms are counted alike; `leporello bench-ab` counts with it, too. Only numbers leave
 * this module. Pure.
 */
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import { inputOf, textOf } from '../conversation/messages.ts';
import { saysTextNotFound } from '../outline/outcome.ts';

/** Counts of one conversation, or sums over several. */
export type OutcomeCounts = {
  readonly userTurns: number;
  readonly toolCalls: number;
  /** Calls with the same tool and arguments as an earlier call of the conversation. */
  readonly refetches: number;
  /** Results, and texts in the user's place, that say that the text of an edit was not found. */
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

/** Bytes of a text that may report a failed edit. */
const maxReportBytes = 20_000;

/**
 * Counts what happened in the messages from index `from` on. `calls` holds the calls that may be repeated there, and gets those that are counted.
 * Default: the calls of earlier messages.
 */
export function outcomesOf(
  { body, messages }: Conversation,
  from: number,
  calls: Set<string> = callsBefore({ body, messages }, from),
): OutcomeCounts {
  const counts = { ...noCounts };
  for (const message of messages.slice(from)) {
    if (isUserTurn(message)) counts.userTurns += 1;
    for (const part of message.parts) {
      if (part.type === 'tool-call') {
        const call = callKey(body, message, part);
        counts.toolCalls += 1;
        if (calls.has(call)) counts.refetches += 1;
        calls.add(call);
        continue;
      }
      if (part.type === 'tool-result' && part.isError) counts.toolErrors += 1;
      // Some clients report a failed edit in the user's place.
      if (part.type !== 'tool-result' && (part.type !== 'text' || message.role !== 'user')) continue;
      const reports = part.texts.filter(({ start, end }) => end - start <= maxReportBytes);
      if (reports.some((span) => saysTextNotFound(textOf(body, message, span)))) counts.failedEdits += 1;
    }
  }
  return counts;
}

function callsBefore({ body, messages }: Pick<Conversation, 'body' | 'messages'>, end: number): Set<string> {
  const calls = messages
    .slice(0, end)
    .flatMap((message) =>
      message.parts.flatMap((part) => (part.type === 'tool-call' ? [callKey(body, message, part)] : [])),
    );
  return new Set(calls);
}

function callKey(body: Uint8Array, message: Message, call: Part & { readonly type: 'tool-call' }): string {
  return `${call.name} ${inputOf(body, message, call)}`;
}

function isUserTurn({ role, parts }: Message): boolean {
  return role === 'user' && parts.some(({ type }) => type !== 'tool-result');
}
