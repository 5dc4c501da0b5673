/**
 * Plants demands of a user in recorded sessions joined end to end, lets the engine fold them with summaries, and looks which of the
 * demands still stand word for word in what is sent at the end.
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

/** As people say it: bare, with a reason, in the middle of other words. */
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
  /** Of them, those that the last request shows word for word. */
  readonly kept: number;
  readonly missing: readonly string[];
  /** Tokens of the conversation as it came last, and as it was sent. */
  readonly came: number;
  readonly sent: number;
  /** Messages that summaries stand for at the end. */
  readonly summarised: number;
};

export type PlantOptions = {
  readonly count: number;
  readonly settings: FoldSettings;
  readonly counter: TokenCounter;
};

/** One demand in a user's message of its own, each so many messages. */
export async function plantAndFold(
  record: ConversationRecord,
  { count, settings, counter }: PlantOptions,
): Promise<ConstraintFigures> {
  const planted = Array.from({ length: count }, (_, at) => demands[at % demands.length]!(at));
  const messages = withPlanted(record.messages, planted);
  const body = conversationBody({ messages }, 15_000, counter);
  const recording = readRecording({ id: record.id, source: record.source, format: chat, body }, counter);
  const last = { came: 0, sent: 0, text: '' };
  const policy = enginePolicy({
    name: 'summaries',
    settings,
    window,
    counter,
  });
  const watching: Policy = {
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
          last.came = sent.prepared?.report.tokensBefore ?? 0;
          last.sent = sent.prepared?.report.tokensAfter ?? 0;
          return sent;
        },
      };
    },
  };
  await play(recording, watching, { window });
  const missing = planted.filter((demand) => !last.text.includes(demand));
  const summarised = [...last.text.matchAll(/\[Summary of (\d+) earlier messages/g)];
  return {
    planted: planted.length,
    kept: planted.length - missing.length,
    missing,
    came: last.came,
    sent: last.sent,
    summarised: summarised.reduce((sum, [, messagesIn]) => sum + Number(messagesIn), 0),
  };
}

/** Evenly over the first three quarters, where nothing is parted from its answer. */
function withPlanted(
  messages: ConversationRecord['messages'],
  planted: readonly string[],
): ConversationRecord['messages'] {
  const free = messages.flatMap(({ role }, at) =>
    role === 'assistant' && at < messages.length * 0.75 ? [at] : [],
  );
  const places = new Map(
    planted.map((demand, at) => [free[Math.floor((at * free.length) / planted.length)]!, demand]),
  );
  return messages.flatMap((message, at) => {
    const demand = places.get(at);
    return demand === undefined ? [message] : [{ role: 'user', content: demand }, message];
  });
}
