/** The recorded conversations beside the repository, as the replay benchmark takes them. */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { ConversationRecord, RecordedMessage } from '../../src/cli/replay/conversation-body.ts';

const dataFile = new URL('../../../shared/data/trajectories-dev.jsonl.gz', import.meta.url);

export type BenchRecord = ConversationRecord & {
  /** Messages of the model before which the provider had dropped the conversation from its cache. */
  readonly coldAt: readonly number[];
};

type DataLine = ConversationRecord & {
  /** What the provider reported, where it was recorded; entries of other lengths say nothing of its cache. */
  readonly meta?: { readonly usage?: readonly (readonly number[])[] };
};

/** Undefined where there are none. */
export function readConversations(): readonly BenchRecord[] | undefined {
  if (!existsSync(dataFile)) return undefined;
  const lines = gunzipSync(readFileSync(dataFile)).toString().trimEnd().split('\n');
  return lines.map((line) => {
    const { meta, ...record } = JSON.parse(line) as DataLine;
    return { ...record, coldAt: coldIn(meta?.usage ?? []) };
  });
}

/**
 * Where less than half of what was sent before was read from the cache: after a pause, mostly, or where the client changed what stands in
 * front. Times were not recorded.
 */
function coldIn(usage: readonly (readonly number[])[]): readonly number[] {
  let before = 0;
  return usage.flatMap(([message, uncached, written, read, output]) => {
    if (output === undefined) return [];
    const prompt = uncached! + written! + read!;
    const isCold = read! < Math.min(before, prompt) / 2;
    before = prompt;
    return isCold ? [message!] : [];
  });
}

export const codingSessions = 'entire-cli-sessions';

export const longHorizonId = 'long-horizon';

/** What a window of 200,000 tokens does not hold: the first eight coding sessions of 50 messages and more, joined end to end. */
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
