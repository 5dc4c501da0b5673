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
import { userSpeaks } from '../../src/conversation/turns.ts';
import { createClient } from '../../src/replay/client.ts';
import { messageText } from '../../src/replay/needs.ts';
import { enginePolicy } from '../../src/replay/policies.ts';
import { readRecording } from '../../src/replay/recording.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import type { BenchRecord } from '../replay/data.ts';

/** An edit of the recording: whether the full context shows its text, and whether the sent one does. */
export type QuotedEdit = {
  readonly isShown: boolean;
  readonly isLost: boolean;
  /** True if the request after a failed edit shows the text again. */
  readonly isRepaired: boolean;
  readonly from: string;
};

export type QuoteOptions = {
  readonly settings?: FoldSettings;
  /** The context window in tokens. */
  readonly window?: number;
  /** Whether to say where lost texts were. */
  readonly tellsWhere?: boolean;
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
  const { window = 200_000, tellsWhere = false } = options;
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
  /** Returns what is sent after an edit with this text, which the client answers with a failure. */
  const sentAfterFailure = async (before: Uint8Array, text: string): Promise<Uint8Array> => {
    const { messages, ...rest } = JSON.parse(new TextDecoder().decode(before)) as {
      messages: readonly object[];
    };
    const input = JSON.stringify({
      file_path: pathOf(recording.conversation, text),
      old_string: text,
      new_string: '',
    });
    const call = { id: 'failed', type: 'function', function: { name: 'Edit', arguments: input } };
    const failed = [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'failed', content: `String to replace not found in file.` },
    ];
    const after = new TextEncoder().encode(JSON.stringify({ ...rest, messages: [...messages, ...failed] }));
    return (await policy.send({ conversation: read(after), at: 1e9, rerun: new Set() })).body;
  };
  const edits: QuotedEdit[] = [];
  for (const [at, step] of recording.steps.entries()) {
    client.reach(step.at);
    const request = client.request(read, at * 10_000);
    const { body: sent, prepared } = await policy.send(request);
    for (const { strategy } of prepared?.report.fetchedAgain ?? []) options.onFetchedAgain?.(strategy);
    const quoted = quotedIn(recording.conversation, step);
    if (quoted.length === 0) continue;
    const full = textOf(request.conversation);
    const left = textOf(read(sent));
    for (const text of quoted) {
      const isShown = shows(full, text);
      const isLost = isShown && !shows(left, text);
      const isRepaired =
        isLost && shows(textOf(read(await sentAfterFailure(request.conversation.body, text))), text);
      const from = isLost && tellsWhere ? whereIn(recording.conversation, step.at, left, text) : '';
      edits.push({ isShown, isLost, isRepaired, from });
    }
  }
  return edits;
}

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

function linesIn(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length >= 8);
}

/** True if all lines of a text stand in a context, as they are or as in JSON. */
function shows(context: string, text: string): boolean {
  return linesIn(text).every((line) => isIn(context, line));
}

function isIn(context: string, line: string): boolean {
  return context.includes(line) || context.includes(JSON.stringify(line).slice(1, -1));
}

/** True if the user's newest message before `end` names the file. */
function isNamed(conversation: Conversation, end: number, path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const spoken = conversation.messages.slice(0, end).findLast((message) => userSpeaks(conversation, message));
  return name !== '' && spoken !== undefined && messageText(conversation, spoken).includes(name);
}

/** Names the newest message that shows the first lost line of a text, by the tool whose call or result it is, its age in requests, and whether the user named the file. */
function whereIn(conversation: Conversation, end: number, left: string, text: string): string {
  const line = linesIn(text).find((one) => !isIn(left, one))!;
  const { messages } = conversation;
  const at = messages
    .slice(0, end)
    .findLastIndex((message) => isIn(messageText(conversation, message), line));
  const message = messages[at];
  if (!message) return 'nothing';
  const age = messages.slice(at, end).filter(({ role }) => role === 'assistant').length;
  const [part] = message.parts;
  const calls = messages
    .slice(0, at + 1)
    .flatMap(({ parts }) => parts.flatMap((one) => (one.type === 'tool-call' ? [one] : [])));
  const id = part?.type === 'tool-result' ? part.callId : undefined;
  const tool =
    id === undefined
      ? message.parts.flatMap((one) => (one.type === 'tool-call' ? [one.name] : [])).join('+') || message.role
      : `result of ${calls.findLast((call) => call.id === id)?.name}`;
  const named = isNamed(conversation, end, pathOf(conversation, text)) ? ', named by the user' : '';
  return `${tool}, ${age < 5 ? '<5' : age < 15 ? '5-14' : age < 30 ? '15-29' : '30+'} requests old${named}`;
}
