/**
 * Describes how a fold took the text away that a recorded edit quotes: where the text stood, which fold took it, and what the conversation says
 * about the file after that. bench/quote-loss.ts prints it.
 */
import type { Conversation, Message, Part } from '../../src/conversation/conversation.ts';
import { inputOf } from '../../src/conversation/messages.ts';
import { userSpeaks } from '../../src/conversation/turns.ts';
import { filesRead } from '../../src/outline/files-shown.ts';
import { callWords } from '../../src/outline/step-line.ts';
import { messageText } from '../../src/replay/needs.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';

/** A fold that was made, with the text of the request that it was made in. */
export type FoldSeen = { readonly step: number; readonly trigger: string; readonly left: string };

/** How the text of an edit was lost. Ages count requests. */
export type Loss = {
  readonly session: string;
  readonly step: number;
  readonly file: string;
  /** The lines of the text, and those of them that are lost. */
  readonly lines: string;
  /** The tool whose result or call showed the first lost line last. */
  readonly from: string;
  readonly tokens: number;
  readonly age: number;
  readonly tokensSince: number;
  readonly fold: string;
  readonly foldAge: number;
  /** The requests between the newest edit of the file and the fold. */
  readonly editBeforeFold: number | undefined;
  /** Reads and other calls that name the file, after the fold. */
  readonly readSince: number;
  readonly namedSince: number;
  /** Whether the newest step, and the user's newest message, name the file. */
  readonly inNewestStep: boolean;
  readonly byUser: boolean;
};

type LostText = {
  readonly id: string;
  /** The conversation without the reply that makes the edit. */
  readonly conversation: Conversation;
  readonly sent: Conversation;
  readonly folds: readonly FoldSeen[];
  readonly step: number;
  readonly path: string;
  readonly text: string;
};

/** Describes how a text was lost. */
export function lossOf(
  { id, conversation, sent, folds, step, path, text }: LostText,
  counter: TokenCounter,
): Loss {
  const { messages } = conversation;
  const left = sent.messages.map((message) => messageText(sent, message)).join('\n');
  const gone = linesIn(text).filter((line) => !isIn(left, line));
  const [line = ''] = gone;
  const texts = messages.map((message) => messageText(conversation, message));
  const at = texts.findLastIndex((one) => isIn(one, line));
  const requestsFrom = (index: number) =>
    messages.slice(index).filter(({ role }) => role === 'assistant').length;
  const age = requestsFrom(at);
  const shownIn = step - age;
  const fold = folds.find((one) => one.step > shownIn && !isIn(one.left, line));
  const foldAge = fold ? step - fold.step : 0;
  const foldedAt = messages.findIndex(({ index }) => requestsFrom(index) <= foldAge);
  const calls = messages.flatMap((message) =>
    message.parts.flatMap((part) => (part.type === 'tool-call' ? [callIn(conversation, message, part)] : [])),
  );
  const name = path.slice(path.lastIndexOf('/') + 1);
  const isNamed = (one: string) => name !== '' && one.includes(name);
  const since = calls.filter(({ message, input }) => message >= foldedAt && isNamed(input));
  const lastEdit = calls.findLast(
    ({ message, kind, path: own }) => message < foldedAt && kind === 'edit' && own === path,
  );
  const lastReply = messages.findLastIndex(({ role }) => role === 'assistant');
  const spoken = messages.findLastIndex((message) => userSpeaks(conversation, message));
  const shownBy = messages[at];
  return {
    session: id.slice(0, 8),
    step,
    file: name,
    lines: `${gone.length} of ${linesIn(text).length}`,
    from: shownBy ? originOf(shownBy, calls) : 'nothing',
    tokens: counter.count(texts[at] ?? ''),
    age,
    tokensSince: texts.slice(at + 1).reduce((sum, one) => sum + counter.count(one), 0),
    fold: `${fold?.trigger ?? 'unknown'}, ${shownBy ? howFolded(shownBy, sent) : ''}`,
    foldAge,
    editBeforeFold: lastEdit && requestsFrom(lastEdit.message) - foldAge,
    readSince: since.filter(({ kind }) => kind === 'read').length,
    namedSince: since.length,
    inNewestStep: lastReply >= 0 && isNamed(texts.slice(lastReply).join('\n')),
    byUser: spoken >= 0 && isNamed(texts[spoken]!),
  };
}

type Call = {
  readonly id: string | undefined;
  readonly tool: string;
  readonly message: number;
  readonly input: string;
  readonly kind: string;
  readonly path: string;
};

function callIn(
  { body }: Conversation,
  message: Message,
  part: Extract<Part, { readonly type: 'tool-call' }>,
): Call {
  const input = inputOf(body, message, part);
  const { kind, path } = callWords({ tool: part.name, input });
  const [read] = filesRead({ tool: part.name, input });
  return {
    id: part.id,
    tool: part.name,
    message: message.index,
    input,
    kind: read ? 'read' : kind,
    path: read?.path ?? path,
  };
}

function originOf({ index, role, parts }: Message, calls: readonly Call[]): string {
  const [part] = parts;
  if (part?.type !== 'tool-result')
    return parts.flatMap((one) => (one.type === 'tool-call' ? [one.name] : [])).join('+') || role;
  const call = calls.findLast(({ id, message }) => id === part.callId && message < index);
  return `result of ${call?.tool}`;
}

/** Tells whether a message was replaced by a stub or dropped. */
function howFolded({ parts }: Message, sent: Conversation): string {
  const ids = parts.flatMap((part) =>
    part.type === 'tool-result' ? [part.callId] : part.type === 'tool-call' ? [part.id] : [],
  );
  const isThere = sent.messages.some((message) =>
    message.parts.some((part) => part.type === 'tool-call' && ids.includes(part.id)),
  );
  return isThere ? 'stub' : 'dropped';
}

/** Returns the telling lines of a text. */
export function linesIn(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length >= 8);
}

/** True if all lines of a text stand in a context, as they are or as in JSON. */
export function shows(context: string, text: string): boolean {
  return linesIn(text).every((line) => isIn(context, line));
}

/** True if a line stands in a context. */
export function isIn(context: string, line: string): boolean {
  return context.includes(line) || context.includes(JSON.stringify(line).slice(1, -1));
}
