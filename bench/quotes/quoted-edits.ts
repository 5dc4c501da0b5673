/**
 * Plays a recorded coding session through the real engine, and looks for each recorded edit whether the sent context shows the text that it must
 * quote. bench/quote-loss.ts and bench/against.ts use it; the traps are those of bench/quote-loss.ts.
 */
import { conversationBody, pricesIn } from '../../src/cli/replay/conversation-body.ts';
import { chat } from '../../src/cli/replay/sources.ts';
import { quotedTexts } from '../../src/strategies/lib/failed-edits.ts';
import type { FoldSettings } from '../../src/library/default-engine.ts';
import type { Conversation } from '../../src/conversation/conversation.ts';
import { inputOf } from '../../src/conversation/messages.ts';
import { createClient } from '../../src/replay/client.ts';
import { messageText } from '../../src/replay/needs.ts';
import { enginePolicy } from '../../src/replay/policies.ts';
import { readRecording } from '../../src/replay/recording.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import type { BenchRecord } from '../replay/data.ts';
import { type FoldSeen, isIn, linesIn, type Loss, lossOf, shows } from './losses.ts';

/** An edit of the recording: whether the full context shows its text, and whether the sent one does. */
export type QuotedEdit = {
  readonly isShown: boolean;
  readonly isLost: boolean;
  /** True if the request after a failed edit shows the text again. */
  readonly isRepaired: boolean;
  /** How the text was lost; undefined if it was not, and where nobody asked. */
  readonly loss?: Loss | undefined;
};

export type QuoteOptions = {
  readonly settings?: FoldSettings;
  /** The context window in tokens. */
  readonly window?: number;
  /** Whether to say where lost texts were. */
  readonly tellsWhere?: boolean;
  /** Whether each edit whose text is lost fails, and stays in the conversation with its report. Default: only in a request of its own. */
  readonly failuresStay?: boolean;
  /** Is called for each result that is fetched again after a fold, with the strategy that had taken its lines. */
  readonly onFetchedAgain?: (strategy: string) => void;
};

/** Returns the edits of a session. */
export async function quotedEdits(
  session: BenchRecord,
  counter: TokenCounter,
  options: QuoteOptions = {},
): Promise<readonly QuotedEdit[]> {
  const { id, source } = session;
  const body = conversationBody(session, 15_000, counter);
  const recording = readRecording({ id, source, format: chat, body }, counter);
  const settings = { usdPerMillionTokens: pricesIn('anthropic'), ...options.settings };
  const { window = 200_000, tellsWhere = false, failuresStay = false } = options;
  const policy = enginePolicy({ name: 'default', settings, window, counter }).open(chat.codec);
  const client = createClient(recording);
  const reading = { digest: sha256, blocks: new Map() };
  const read = (bytes: Uint8Array): Conversation => chat.codec.read(bytes, reading);
  const texts = new Map<string, string>();
  const textOf = (conversation: Conversation): string =>
    conversation.messages
      .map((message) => {
        const text = texts.get(message.digest) ?? messageText(conversation, message);
        texts.set(message.digest, text);
        return text;
      })
      .join('\n');
  /** Returns the calls of edits with these texts, and the client's reports that they failed. */
  const failuresOf = (lost: readonly string[], step: number): readonly object[] => [
    {
      role: 'assistant',
      content: null,
      tool_calls: lost.map((text, index) => {
        const path = pathOf(recording.conversation, text);
        const input = JSON.stringify({ file_path: path, old_string: text, new_string: '' });
        return {
          id: `failed-${step}-${index}`,
          type: 'function',
          function: { name: 'Edit', arguments: input },
        };
      }),
    },
    ...lost.map((_, index) => ({
      role: 'tool',
      tool_call_id: `failed-${step}-${index}`,
      content: 'String to replace not found in file.',
    })),
  ];
  /** Returns what is sent after these edits failed. */
  const sentAfter = async (
    before: Uint8Array,
    lost: readonly string[],
    step: number,
  ): Promise<Uint8Array> => {
    const failures = failuresOf(lost, step);
    if (failuresStay) {
      client.add(failures.map((message) => encoder.encode(JSON.stringify(message))));
      return (await policy.send(client.request(read, step * 10_000 + 5_000))).body;
    }
    const { messages, ...rest } = JSON.parse(new TextDecoder().decode(before)) as {
      messages: readonly object[];
    };
    const after = encoder.encode(JSON.stringify({ ...rest, messages: [...messages, ...failures] }));
    return (await policy.send({ conversation: read(after), at: 1e9, rerun: new Set() })).body;
  };
  const edits: QuotedEdit[] = [];
  const folds: FoldSeen[] = [];
  for (const [at, step] of recording.steps.entries()) {
    client.reach(step.at);
    const request = client.request(read, at * 10_000);
    const { body: sent, prepared } = await policy.send(request);
    for (const { strategy } of prepared?.report.fetchedAgain ?? []) options.onFetchedAgain?.(strategy);
    const { trigger, steps = [] } = prepared?.report ?? {};
    if (tellsWhere && steps.some(({ edits: made }) => made > 0))
      folds.push({ step: at, trigger: trigger ?? 'repair', left: textOf(read(sent)) });
    const quoted = quotedIn(recording.conversation, step);
    if (quoted.length === 0) continue;
    const full = textOf(request.conversation);
    const left = textOf(read(sent));
    const shown = quoted.filter((text) => shows(full, text));
    const lost = shown.filter((text) => !shows(left, text));
    // Failures that stay are those of one reply; each of the others is in a request of its own.
    const tried = failuresStay && lost.length > 0 ? [lost] : lost.map((text) => [text]);
    const repaired = new Set<string>();
    for (const quotes of tried) {
      const after = read(await sentAfter(request.conversation.body, quotes, at));
      // The failed calls show the quotes, too, so only their results count.
      const reports = textOf({ ...after, messages: after.messages.slice(-quotes.length) });
      for (const text of quotes)
        if (linesIn(text).every((line) => isIn(left, line) || isIn(reports, line))) repaired.add(text);
    }
    for (const text of quoted) {
      const isLost = lost.includes(text);
      const path = pathOf(recording.conversation, text);
      const place = { id, conversation: request.conversation, sent: read(sent), folds, step: at, path, text };
      const loss = isLost && tellsWhere ? lossOf(place, counter) : undefined;
      edits.push({ isShown: shown.includes(text), isLost, isRepaired: repaired.has(text), loss });
    }
  }
  return edits;
}

const encoder = new TextEncoder();

/** Returns the path of the edit with this text. */
function pathOf({ body, messages }: Conversation, text: string): string {
  const calls = messages.flatMap((message) =>
    message.parts.flatMap((part) =>
      part.type === 'tool-call' ? quotedTexts(inputOf(body, message, part)) : [],
    ),
  );
  return calls.find((one) => one.text === text)?.path ?? '';
}

/** Returns the texts that the edits of a step must match. */
function quotedIn(
  { body, messages }: Conversation,
  { at, end }: { readonly at: number; readonly end: number },
): readonly string[] {
  return messages
    .slice(at, end)
    .flatMap((message) =>
      message.parts.flatMap((part) =>
        part.type === 'tool-call' ? quotedTexts(inputOf(body, message, part)).map(({ text }) => text) : [],
      ),
    )
    .filter((text) => text.trim().length > 20);
}
