/** The recorded conversations beside the repository, as the replay benchmark takes them. */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { ConversationRecord } from '../../src/cli/replay/conversation-body.ts';

const dataFile = new URL('../../../shared/data/trajectories-dev.jsonl.gz', import.meta.url);

/** Undefined where there are none. */
export function readConversations(): readonly ConversationRecord[] | undefined {
  if (!existsSync(dataFile)) return undefined;
  const lines = gunzipSync(readFileSync(dataFile)).toString().trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as ConversationRecord);
}

export const codingSessions = 'entire-cli-sessions';

export const longHorizonId = 'long-horizon';

/** What a window of 200,000 tokens does not hold: the first eight coding sessions of 50 messages and more, joined end to end. */
export function longHorizon(records: readonly ConversationRecord[]): readonly ConversationRecord[] {
  const sessions = records.filter(
    ({ source, messages }) => source === codingSessions && messages.length >= 50,
  );
  if (sessions.length < 8) return [];
  const messages = sessions.slice(0, 8).flatMap((session) => session.messages);
  return [{ id: longHorizonId, source: longHorizonId, messages }];
}
