/**
 * Plants demands of a user in joined recorded sessions, lets the engine fold them, and checks which demands are still in the last request,
 * word for word.
 */
import { conversationBody, type ConversationRecord } from '../../src/cli/replay/conversation-body.ts';
import { chat } from '../../src/cli/replay/sources.ts';
import type { FoldSettings } from '../../src/library/default-engine.ts';
import { enginePolicy, type Policy } from '../../src/replay/policies.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import { messageText } from '../../src/replay/needs.ts';
import { play } from '../../src/replay/replay.ts';
import { readRecording } from '../../src/replay/recording.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';

const window = 200_000;

/** Demands in the forms that people use: alone, with a reason, in the middle of other words. */
const demands: readonly ((at: number) => string)[] = [
  (at) => `Never touch the file legacy/module-${at}.go.`,
  (at) => `Always run the linter with flag --strict-${at} before you commit.`,
  (at) => `The response of endpoint /v2/items/${at} must stay under ${100 + at} ms.`,
  (at) => `don't use the word "foo${at}" in user-visible texts`,
  (at) => `Only Anna-${at} may approve changes to the billing code.`,
  (at) => `Keep at most ${at + 2} retries in the upload worker.`,
  (at) => `Please use tabs, not spaces, in package pkg${at}.`,
  (at) => `No new dependencies in service-${at}, we have enough of them.`,
];

export type ConstraintFigures = {
  readonly planted: number;
  /** Planted demands that are in the last request, word for word. */
  readonly kept: number;
  readonly missing: readonly string[];
  /** Tokens of the last request before folding. */
  readonly tokensBefore: number;
  /** Tokens of the last request as it was sent. */
  readonly tokensAfter: number;
  /** Messages that summaries replace in the last request. */
  readonly summarized: number;
};

export type PlantOptions = {
  readonly count: number;
  readonly settings: FoldSettings;
  readonly counter: TokenCounter;
};

/** Plants `count` demands, each in its own user message, and replays the conversation. */
export async function plantAndFold(
  record: ConversationRecord,
  { count, settings, counter }: PlantOptions,
): Promise<ConstraintFigures> {
  const planted = Array.from({ length: count }, (_, at) => demands[at % demands.length]!(at));
  const messages = withPlanted(record.messages, planted);
  const body = conversationBody({ messages }, 15_000, counter);
  const recording = readRecording({ id: record.id, source: record.source, format: chat, body }, counter);
  const last = { tokensBefore: 0, tokensAfter: 0, text: '' };
  const policy = enginePolicy({
    name: 'summaries',
    settings,
    window,
    counter,
  });
  const observedPolicy: Policy = {
    ...policy,
    open(codec) {
      const session = policy.open(codec);
      return {
        async send(request) {
          const sent = await session.send(request);
          const conversation = codec.read(sent.body, {
            digest: sha256,
            blocks: new Map(),
          });
          last.text = conversation.messages.map((message) => messageText(conversation, message)).join('\n');
          last.tokensBefore = sent.prepared?.report.tokensBefore ?? 0;
          last.tokensAfter = sent.prepared?.report.tokensAfter ?? 0;
          return sent;
        },
      };
    },
  };
  await play(recording, observedPolicy, { window });
  const missing = planted.filter((demand) => !last.text.includes(demand));
  const summaries = [...last.text.matchAll(/\[Summary of (\d+) earlier messages/g)];
  return {
    planted: planted.length,
    kept: planted.length - missing.length,
    missing,
    tokensBefore: last.tokensBefore,
    tokensAfter: last.tokensAfter,
    summarized: summaries.reduce((sum, [, folded]) => sum + Number(folded), 0),
  };
}

/** Inserts the demands evenly into the first three quarters, only before assistant messages, so that no call is separated from its result. */
function withPlanted(
  messages: ConversationRecord['messages'],
  planted: readonly string[],
): ConversationRecord['messages'] {
  const candidates = messages.flatMap(({ role }, at) =>
    role === 'assistant' && at < messages.length * 0.75 ? [at] : [],
  );
  const places = new Map(
    planted.map((demand, at) => [candidates[Math.floor((at * candidates.length) / planted.length)]!, demand]),
  );
  return messages.flatMap((message, at) => {
    const demand = places.get(at);
    return demand === undefined ? [message] : [{ role: 'user', content: demand }, message];
  });
}
