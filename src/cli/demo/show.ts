/** What the demo prints. Text alone. */
import type { ChatMessage } from './chat.ts';
import type { DemoRecall, DemoTurn, Stub } from './play.ts';

const indent = ' '.repeat(10);
const width = 110;

type Fractions = { readonly trigger: number; readonly target: number };

export function opening(window: number, { trigger, target }: Fractions): string {
  return `A coding agent looks for a bug. The model is scripted; the client, the gateway and its memory are real.
Client: plain fetch, streaming.
The model's window: ${count(window)} tokens; the gateway folds above ${count(window * trigger)}, down to ${count(window * target)}.
"as it is" is what the client asked to send, "sent" what went out (from the first fold on with the tool read_memory), both in tokens.

turn  messages  as it is   sent  the agent
`;
}

export function turnText(turn: DemoTurn): string {
  const { number, messages, before, after } = {
    number: String(turn.turn).padStart(4),
    messages: String(turn.messages).padStart(8),
    before: count(turn.tokensBefore).padStart(8),
    after: count(turn.tokensAfter).padStart(6),
  };
  return [
    `${number}  ${messages}  ${before} ${after}  ${sayingOf(turn.reply)}\n`,
    foldText(turn.folded),
    turn.recall === undefined ? '' : recallText(turn.recall, turn.reply),
  ].join('');
}

export type DemoSum = {
  readonly turns: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly largestBefore: number;
  readonly largestAfter: number;
  /** Texts that were folded, and how many of them memory gave back as they were. */
  readonly folded: number;
  readonly givenBack: number;
  readonly seconds: number;
};

export function closing(sum: DemoSum, window: number): string {
  const saved = (100 * (sum.tokensBefore - sum.tokensAfter)) / sum.tokensBefore;
  return `
${count(sum.tokensAfter)} tokens went out in ${sum.turns} turns instead of ${count(sum.tokensBefore)} (${saved.toFixed(1)} % less), the recall's second request among them.
The largest request had ${count(sum.largestAfter)} instead of ${count(sum.largestBefore)}, in a window of ${count(window)}.
Memory gave back ${sum.givenBack} of ${sum.folded} folded texts, each as it was. Took ${sum.seconds.toFixed(1)} s.

Where to look next
  leporello serve                 the same gateway, for your own agent: change its base URL
  leporello compact FILE          fold a recorded conversation, offline
  leporello help                  everything else
`;
}

function foldText(folded: readonly Stub[]): string {
  const [first] = folded;
  if (first === undefined) return '';
  const others = folded.length - 1;
  const more = others === 0 ? '' : `, and ${others} more like it`;
  const head = `folded: ${count(first.original.length)} characters became this${more}:`;
  return `${indent}${head}\n${wrapped(first.text, `${indent}| `)}`;
}

function recallText({ asked, tokens }: DemoRecall, reply: ChatMessage): string {
  const calls = reply.tool_calls?.length ?? 0;
  const sentence =
    `recall: in the middle of this answer the model called read_memory ${asked}. The gateway answered it with ` +
    `${count(tokens)} tokens and the stream went on. The client got ${count(reply.content?.length ?? 0)} characters of text and ` +
    `${calls === 0 ? 'no call' : `${calls} calls`}; the answer ends:`;
  const last = (reply.content ?? '').split('\n\n').at(-2) ?? '';
  return `${wrapped(sentence, indent)}${last
    .split('\n')
    .map((line) => `${indent}| ${line}\n`)
    .join('')}`;
}

/** The call the agent makes, or the beginning of what it says. */
function sayingOf({ content, tool_calls }: ChatMessage): string {
  const call = tool_calls?.[0]?.function;
  const text = call === undefined ? `"${content ?? ''}` : `${call.name} ${call.arguments}`;
  const line = text.split('\n', 1)[0]!;
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}

/** At blanks; a longer word stands on a line of its own. */
function wrapped(text: string, prefix: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && prefix.length + line.length + 1 + word.length > width) {
      lines.push(line);
      line = '';
    }
    line += line === '' ? word : ` ${word}`;
  }
  return [...lines, line].map((each) => `${prefix}${each}\n`).join('');
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
