/** Reads the recorded conversations for the replay benchmark from ../shared/data. */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { ConversationRecord, RecordedMessage } from '../../src/cli/replay/conversation-body.ts';

const dataFile = new URL('../../../shared/data/trajectories-dev.jsonl.gz', import.meta.url);

export type BenchRecord = ConversationRecord & {
  /** Indices of the model's messages before which the provider had dropped the conversation from its cache. */
  readonly coldAt: readonly number[];
};

type DataLine = ConversationRecord & {
  /** Rows of reported usage: message index, tokens not cached, written, read, and of the reply. Shorter rows lack the cache figures. */
  readonly meta?: { readonly usage?: readonly (readonly number[])[] };
};

/** Returns undefined if there are none. */
export function readConversations(): readonly BenchRecord[] | undefined {
  if (!existsSync(dataFile)) return undefined;
  const lines = gunzipSync(readFileSync(dataFile)).toString().trimEnd().split('\n');
  return lines.map((line) => {
    const { meta, ...record } = JSON.parse(line) as DataLine;
    return { ...record, coldAt: coldIn(meta?.usage ?? []) };
  });
}

/**
 * Returns the messages for which the provider read less than half of the previous prompt from its cache: mostly after a pause, or after the
 * client changed the start of the prompt. Times were not recorded.
 */
function coldIn(usage: readonly (readonly number[])[]): readonly number[] {
  let previous = 0;
  return usage.flatMap(([message, uncached, written, read, output]) => {
    if (output === undefined) return [];
    const prompt = uncached! + written! + read!;
    const isCold = read! < Math.min(previous, prompt) / 2;
    previous = prompt;
    return isCold ? [message!] : [];
  });
}

export const codingSessions = 'entire-cli-sessions';

/** Returns the coding sessions with more than 300,000 characters of JSON. */
export function largeSessions(records: readonly BenchRecord[]): readonly BenchRecord[] {
  return records.filter(
    ({ source, messages }) => source === codingSessions && JSON.stringify(messages).length > 300_000,
  );
}

export const longHorizonId = 'long-horizon';

/** Joins the first eight coding sessions with at least 50 messages to one conversation, which exceeds a window of 200,000 tokens. */
export function longHorizon(records: readonly BenchRecord[]): readonly BenchRecord[] {
  const sessions = records.filter(
    ({ source, messages }) => source === codingSessions && messages.length >= 50,
  );
  if (sessions.length < 8) return [];
  const messages: RecordedMessage[] = [];
  const coldAt: number[] = [];
  for (const session of sessions.slice(0, 8)) {
    coldAt.push(...session.coldAt.map((message) => messages.length + message));
    messages.push(...session.messages);
  }
  return [{ id: longHorizonId, source: longHorizonId, messages, coldAt }];
}
