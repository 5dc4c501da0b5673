/** Plays the sample conversation turn by turn, with the gateway between client and scripted model, and formats what the demo prints. */
import type { Receipt } from '../../receipts/receipt.ts';
import type { ChatBody, ChatClient, ChatMessage, ScriptedProvider } from './model-and-client.ts';

/** A turn, as seen from both ends. */
export type DemoTurn = {
  readonly turn: number;
  /** Messages in the client's request. */
  readonly messages: number;
  readonly tokensBefore: number;
  /** Tokens of the sent request, including the recall tool. */
  readonly tokensAfter: number;
  /** Stubs that are new in this turn. */
  readonly folded: readonly Stub[];
  readonly recall: DemoRecall | undefined;
  /** The message that the client received. */
  readonly reply: ChatMessage;
  readonly ms: number;
};

/** A stub in a sent request. `original` is the client's text in its place. */
type Stub = { readonly id: string; readonly text: string; readonly original: string };

type DemoRecall = {
  /** The arguments of the model's call. */
  readonly asked: string;
  /** Tokens of the gateway's answer. */
  readonly tokens: number;
};

type Stage = {
  readonly sample: ChatBody;
  readonly client: ChatClient;
  readonly provider: ScriptedProvider;
  /** Returns the receipt of a request. */
  readonly receipt: (id: string) => Promise<Receipt>;
};

export async function* playDemo({ sample, client, provider, receipt }: Stage): AsyncGenerator<DemoTurn> {
  const shownIds = new Set<string>();
  const history: ChatMessage[] = [];
  let turn = 0;
  for (const message of sample.messages) {
    if (message.role !== 'assistant') {
      history.push(message);
      continue;
    }
    turn += 1;
    const first = provider.received.length;
    const { message: reply, headers } = await client.send({ ...sample, messages: history });
    const entry = await receipt(headers.get('x-leporello-receipt') ?? '');
    const sent = provider.received[first]!;
    const folded = stubsIn(sent, history).filter(({ id }) => !shownIds.has(id));
    for (const { id } of folded) shownIds.add(id);
    yield {
      turn,
      messages: history.length,
      tokensBefore: entry.tokensBefore ?? 0,
      tokensAfter: entry.tokensAfter ?? 0,
      folded,
      recall: recallIn(provider.received[first + 1], entry),
      reply,
      ms: entry.ms.prepare,
    };
    history.push(reply);
  }
}

function stubsIn({ messages }: ChatBody, history: readonly ChatMessage[]): readonly Stub[] {
  return messages.flatMap(({ role, content, tool_call_id }) => {
    const id = /^\[Folded .*(mem_[0-9a-z]{16})/s.exec(content ?? '')?.[1];
    if (role !== 'tool' || content === null || id === undefined) return [];
    const original = history.find((message) => message.tool_call_id === tool_call_id)?.content ?? '';
    return [{ id, text: content, original }];
  });
}

/** Finds a recall: a second request within one turn is a continuation, with the call and its answer at the end. */
function recallIn(continuation: ChatBody | undefined, { recalls }: Receipt): DemoRecall | undefined {
  const call = continuation?.messages.at(-2)?.tool_calls?.[0];
  const [answered] = recalls;
  return call && answered ? { asked: call.function.arguments, tokens: answered.tokens } : undefined;
}

const indent = ' '.repeat(10);
const width = 110;

type Fractions = { readonly triggerShare: number; readonly targetShare: number };

export function opening(window: number, { triggerShare, targetShare }: Fractions): string {
  return `A coding agent looks for a bug. The model is scripted; the client, the gateway and its store are real.
Client: plain fetch, streaming.
The model's window: ${count(window)} tokens; the gateway folds above ${count(window * triggerShare)}, down to ${count(window * targetShare)}.
"client" is the size of the client's request, "sent" of the request that the gateway sent (with the tool read_memory), in tokens.

turn  messages    client   sent  the agent
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
    `${number}  ${messages}  ${before} ${after}  ${summaryOf(turn.reply)}\n`,
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
  /** Number of folded texts. */
  readonly folded: number;
  /** Number of folded texts that were restored exactly. */
  readonly givenBack: number;
  readonly seconds: number;
};

export function closing(sum: DemoSum, window: number): string {
  const saved = (100 * (sum.tokensBefore - sum.tokensAfter)) / sum.tokensBefore;
  return `
${count(sum.tokensAfter)} tokens were sent in ${sum.turns} turns instead of ${count(sum.tokensBefore)} (${saved.toFixed(1)} % less), including the second request for the recall.
The largest request had ${count(sum.largestAfter)} tokens instead of ${count(sum.largestBefore)}, in a window of ${count(window)}.
The gateway restored ${sum.givenBack} of ${sum.folded} folded texts exactly. The demo took ${sum.seconds.toFixed(1)} s.

Next steps
  leporello serve                 run the gateway for your own agent: change its base URL
  leporello compact FILE          fold a recorded conversation, offline
  leporello help                  show all commands
`;
}

function foldText(folded: readonly Stub[]): string {
  const [first] = folded;
  if (first === undefined) return '';
  const others = folded.length - 1;
  const more = others === 0 ? '' : `, and ${others} more like it`;
  const head = `folded: ${count(first.original.length)} characters were replaced by this stub${more}:`;
  return `${indent}${head}\n${wrapped(first.text, `${indent}| `)}`;
}

function recallText({ asked, tokens }: DemoRecall, reply: ChatMessage): string {
  const calls = reply.tool_calls?.length ?? 0;
  const sentence =
    `recall: inside this answer the model called read_memory ${asked}. The gateway answered with ` +
    `${count(tokens)} tokens, and the stream continued. The client got ${count(reply.content?.length ?? 0)} characters of text and ` +
    `${calls === 0 ? 'no call' : `${calls} calls`}; the answer ends:`;
  const last = (reply.content ?? '').split('\n\n').at(-2) ?? '';
  return `${wrapped(sentence, indent)}${last
    .split('\n')
    .map((line) => `${indent}| ${line}\n`)
    .join('')}`;
}

/** Returns the call that the agent makes, or the beginning of its text. */
function summaryOf({ content, tool_calls }: ChatMessage): string {
  const call = tool_calls?.[0]?.function;
  const text = call === undefined ? `"${content ?? ''}` : `${call.name} ${call.arguments}`;
  const line = text.split('\n', 1)[0]!;
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}

/** Wraps a text at spaces; a longer word gets its own line. */
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
