/**
 * Counts the words of users that remain in folded requests. It plays recorded coding sessions through the real engine with a small window, and
 * looks for each text that the user typed, and for each reason that the user gave when refusing a call, in the last request of the session. Run
 * `npm run bench bench/user-words.ts [-- --window TOKENS] [--half 1|2] [--limit N]`; it reads ../shared/data, prints a table and the texts
 * that are missing. It takes some two minutes on one core.
 *
 * Traps: (1) A text counts if it stands in the request word for word, apart from white space; of a longer one, its first 400 characters in whole
 * words. (2) Which texts the user typed is decided by the function that the engine itself uses (src/outline/outcome.ts), and so is what a
 * refusal is: a client whose wording it does not know is not counted. (3) Nothing is recalled. (4) The sessions are from one client.
 */
import { parseArgs } from 'node:util';
import { conversationBody, pricesIn } from '../src/cli/replay/conversation-body.ts';
import { chat } from '../src/cli/replay/sources.ts';
import type { Conversation } from '../src/conversation/conversation.ts';
import { textOf, textsOf } from '../src/conversation/messages.ts';
import { maxUserWords, oneLine, userReply, wholeWords } from '../src/outline/outcome.ts';
import { typedText } from '../src/outline/lib/typed-text.ts';
import { textBefore } from '../src/strategies/lib/summaries.ts';
import { createClient } from '../src/replay/client.ts';
import { messageText } from '../src/replay/needs.ts';
import { enginePolicy } from '../src/replay/policies.ts';
import { readRecording } from '../src/replay/recording.ts';
import { sha256 } from '../src/store/encrypted-store.ts';
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import type { TokenCounter } from '../src/tokens/token-counter.ts';
import { type BenchRecord, codingSessions, readConversations } from './replay/data.ts';
import { round } from './tokens/arithmetic.ts';

const { values } = parseArgs({
  options: { half: { type: 'string' }, limit: { type: 'string' }, window: { type: 'string' } },
});

type Said = {
  readonly kind: 'typed' | 'refusal';
  readonly words: string;
  /** The text in which the client sent them. */
  readonly whole: string;
};

await main();

async function main(): Promise<void> {
  const records = readConversations();
  if (records === undefined) {
    console.log('bench/user-words.ts skipped: there are no recorded conversations in ../shared/data.');
    return;
  }
  const counter = await loadExactCounter('o200k_base');
  const window = Number(values.window ?? 32_000);
  const sessions = records
    .filter(({ source }) => source === codingSessions)
    .filter((_, at) => values.half === undefined || at % 2 === Number(values.half) - 1)
    .slice(0, Number(values.limit ?? 'Infinity'));
  const found: (Said & { readonly isKept: boolean; readonly isFolded: boolean })[] = [];
  for (const session of sessions) {
    const { said, sent, isFolded } = await play(session, window, counter);
    const text = spaced(sent);
    for (const one of said)
      found.push({
        ...one,
        isFolded,
        isKept: [one.words, one.whole].some((words) => text.includes(spaced(words))),
      });
  }
  const row = (kind: Said['kind'], folded: boolean) => {
    const counted = found.filter((one) => one.kind === kind && (one.isFolded || !folded));
    const kept = counted.filter(({ isKept }) => isKept).length;
    return {
      words: kind,
      of: folded ? 'folded sessions' : 'all sessions',
      said: counted.length,
      kept,
      '%': round((100 * kept) / counted.length, 1),
    };
  };
  console.log(`${sessions.length} sessions, window ${window}`);
  console.table([row('typed', true), row('refusal', true), row('typed', false), row('refusal', false)]);
  for (const { kind, words, isKept } of found)
    if (!isKept) console.log(`missing, ${kind}: ${words.slice(0, 160)}`);
}

/** Returns what the user said in a session, and the text of its last request. */
async function play(session: BenchRecord, window: number, counter: TokenCounter) {
  const { id, source } = session;
  const body = conversationBody(session, 5_000, counter);
  const recording = readRecording({ id, source, format: chat, body }, counter);
  const settings = { usdPerMillionTokens: pricesIn('anthropic') };
  const policy = enginePolicy({ name: 'default', settings, window, counter }).open(chat.codec);
  const client = createClient(recording);
  const reading = { digest: sha256, blocks: new Map() };
  const read = (bytes: Uint8Array): Conversation => chat.codec.read(bytes, reading);
  let sent = '';
  let isFolded = false;
  let upTo = 0;
  for (const [at, step] of recording.steps.entries()) {
    client.reach(step.at);
    const { body: folded, prepared } = await policy.send(client.request(read, at * 10_000));
    isFolded ||= (prepared?.report.steps ?? []).some(({ edits }) => edits > 0);
    const conversation = read(folded);
    sent = conversation.messages.map((message) => messageText(conversation, message)).join('\n');
    upTo = step.at;
  }
  return { said: saidIn(recording.conversation, upTo), sent, isFolded };
}

function saidIn(conversation: Conversation, upTo: number): readonly Said[] {
  return conversation.messages.slice(0, upTo).flatMap((message) =>
    message.parts.flatMap((part, at): readonly Said[] => {
      const texts = textsOf(part).map((span) => textOf(conversation.body, message, span));
      const before = textBefore(conversation, message, at);
      if (part.type === 'text' && message.role === 'user')
        return texts.flatMap((text) => saying('typed', typedText(text, before).words, text));
      if (part.type === 'tool-result')
        return texts.flatMap((text) => saying('refusal', userReply(text)?.words ?? '', text));
      return [];
    }),
  );
}

function saying(kind: Said['kind'], words: string, whole: string): readonly Said[] {
  const kept = wholeWords(oneLine(words), maxUserWords).replace(/ …$/, '');
  return kept === '' ? [] : [{ kind, words: kept, whole }];
}

function spaced(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
