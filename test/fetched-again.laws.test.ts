/**
 * Plays recorded coding sessions through the engine with a small budget: results that the agent fetches again after a fold are counted, and none
 * of them is folded within the next 16 requests, which is four times the usual age.
 */
import { describe, expect, it } from 'vitest';
import { codingSessions, readConversations } from '../bench/replay/data.ts';
import { conversationBody } from '../src/cli/replay/conversation-body.ts';
import { chat } from '../src/cli/replay/sources.ts';
import type { Conversation } from '../src/conversation/conversation.ts';
import { lastAssistant } from '../src/conversation/turns.ts';
import { createClient } from '../src/replay/client.ts';
import { messageText } from '../src/replay/needs.ts';
import { enginePolicy } from '../src/replay/policies.ts';
import { readRecording } from '../src/replay/recording.ts';
import { sha256 } from '../src/store/encrypted-store.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';

const recorded = readConversations();

/** Shrinks are off, so that a result is sent as it arrived until a fold takes it. */
const settings = {
  shrinks: false,
  triggers: { tokenBudget: { triggerTokens: 24_000, targetTokens: 10_000 } },
} as const;

const fourAges = 16;

function newResults(conversation: Conversation): readonly string[] {
  return conversation.messages
    .slice((lastAssistant(conversation) ?? 0) + 1)
    .filter(({ role }) => role === 'tool')
    .map((message) => messageText(conversation, message));
}

describe.skipIf(!recorded)(
  `recorded sessions (${recorded ? '../shared/data' : 'which are not here'})`,
  () => {
    it('keep results that were fetched again', async () => {
      const counter = await loadExactCounter('o200k_base');
      const sessions = (recorded ?? [])
        .filter(({ source, messages }) => source === codingSessions && messages.length >= 60)
        .slice(0, 12);
      let fetched = 0;
      const folded: string[] = [];
      for (const session of sessions) {
        const body = conversationBody(session, 1_000, counter);
        const recording = readRecording({ ...session, format: chat, body, coldAt: new Set() }, counter);
        const policy = enginePolicy({ name: 'small budget', settings, window: 400_000, counter });
        const { send } = policy.open(chat.codec);
        const client = createClient(recording);
        const reading = { digest: sha256, blocks: new Map() };
        const kept: { readonly since: number; readonly text: string }[] = [];
        for (const [at, step] of recording.steps.entries()) {
          client.reach(step.at);
          const request = client.request((bytes) => chat.codec.read(bytes, reading), at * 10_000);
          const { body: sentBody, prepared } = await send(request);
          const sent = chat.codec.read(sentBody, reading);
          const texts = new Set(sent.messages.map((message) => messageText(sent, message)));
          const again = prepared?.report.fetchedAgain?.length ?? 0;
          const results = newResults(request.conversation);
          fetched += again;
          // The report does not say which of several results it means.
          if (again === results.length) for (const text of results) kept.push({ since: at, text });
          for (const { since, text } of kept)
            if (at - since <= fourAges && !texts.has(text))
              folded.push(`${session.id}: fetched with request ${since}, folded with ${at}`);
        }
      }
      expect(folded).toEqual([]);
      expect(fetched).toBeGreaterThan(10);
    });
  },
);
