/**
 * Plays 50 recorded coding sessions through the engine with a small budget: after each fold, the agent's newest plan and the newest version of
 * every instruction file that it read are in the request that is sent. Plans and files are found here by the tools of the recorded client.
 */
import { describe, expect, it } from 'vitest';
import { codingSessions, readConversations } from '../bench/replay/data.ts';
import { conversationBody } from '../src/cli/replay/conversation-body.ts';
import { chat } from '../src/cli/replay/sources.ts';
import { createClient } from '../src/replay/client.ts';
import { messageText } from '../src/replay/needs.ts';
import { enginePolicy } from '../src/replay/policies.ts';
import { readRecording } from '../src/replay/recording.ts';
import { sha256 } from '../src/store/encrypted-store.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';

const recorded = readConversations();

const settings = { triggers: { tokenBudget: { triggerTokens: 24_000, targetTokens: 10_000 } } };

type CallInput = {
  readonly file_path?: string;
  readonly offset?: number;
  readonly todos?: readonly { readonly content: string }[];
};

/** A message as the recordings have it. */
type Message = {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
};

type Session = NonNullable<typeof recorded>[number];
const messagesOf = ({ messages }: Session) => messages as readonly object[] as readonly Message[];

/** Returns the calls with their results, in order. */
function callsIn(messages: readonly Message[]) {
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.tool_call_id, String(message.content)]] : [],
    ),
  );
  return messages
    .flatMap((message) => message.tool_calls ?? [])
    .filter(({ id }) => results.has(id))
    .map(({ id, function: { name, arguments: input } }) => ({
      name,
      input: JSON.parse(input) as CallInput,
      result: results.get(id)!,
    }));
}

/** Returns the words of the newest plan, and the lines of each instruction file that was read. */
function expectedIn(messages: readonly Message[]): readonly string[] {
  const calls = callsIn(messages);
  const plan = calls.findLast(
    ({ name, result }) => name === 'TodoWrite' && result.startsWith('Todos have been modified'),
  );
  const items = plan?.input.todos ?? [];
  const files = new Map<string, string>();
  for (const { name, input, result } of calls) {
    const path = input.file_path ?? '';
    if (name === 'Read' && /\/(?:AGENTS|CLAUDE|GEMINI|SKILL)\.md$/i.test(path) && /^\s*\d+→/.test(result))
      files.set(`${path} ${input.offset ?? ''}`, result);
  }
  const lines = [...files.values()].flatMap((text) =>
    text
      .split('\n')
      .map((line) => line.replace(/^\s*\d+→/, '').trim())
      .filter((line) => line.length >= 12 && !line.includes('system-reminder')),
  );
  return [...items.map(({ content }) => content), ...lines];
}

describe.skipIf(!recorded)(
  `recorded sessions (${recorded ? '../shared/data' : 'which are not here'})`,
  () => {
    it('have the newest plan and all instruction files in view after each fold', async () => {
      const counter = await loadExactCounter('o200k_base');
      const sessions = (recorded ?? [])
        .filter((session) => session.source === codingSessions && expectedIn(messagesOf(session)).length > 0)
        .slice(0, 50);
      expect(sessions.length).toBe(50);
      let folds = 0;
      const missing: string[] = [];
      for (const session of sessions) {
        const body = conversationBody(session, 1_000, counter);
        const recording = readRecording({ ...session, format: chat, body, coldAt: new Set() }, counter);
        const policy = enginePolicy({ name: 'small budget', settings, window: 100_000, counter }).open(
          chat.codec,
        );
        const client = createClient(recording);
        const reading = { digest: sha256, blocks: new Map() };
        const ahead = recording.conversation.messages.length - session.messages.length;
        let isFolded = false;
        for (const [at, step] of recording.steps.entries()) {
          client.reach(step.at);
          if (at % 3 !== 0) continue;
          const request = client.request((bytes) => chat.codec.read(bytes, reading), at * 10_000);
          const { body: sentBody, prepared } = await policy.send(request);
          const isFold = (prepared?.report.steps ?? []).some(({ edits }) => edits > 0);
          isFolded ||= isFold;
          folds += Number(isFold);
          if (!isFolded) continue;
          const sent = chat.codec.read(sentBody, reading);
          const text = sent.messages.map((message) => messageText(sent, message)).join('\n');
          const shown = (words: string) =>
            [words, JSON.stringify(words).slice(1, -1)].some((one) => text.includes(one));
          const lost = expectedIn(messagesOf(session).slice(0, step.at - ahead)).filter(
            (words) => !shown(words),
          );
          if (lost.length > 0) missing.push(`${session.id}, request ${at}: ${lost[0]}`);
        }
      }
      expect(missing).toEqual([]);
      expect(folds).toBeGreaterThan(50);
    });
  },
);
