/** Plays the sample turn by turn: an agent's client on one side, the scripted model on the other, the gateway between. */
import type { Receipt } from '../../receipts/receipt.ts';
import { type ChatBody, type ChatMessage } from './chat.ts';
import type { ChatClient } from './chat-client.ts';
import type { ScriptedProvider } from './scripted-provider.ts';

/** What one turn looked like from both ends. */
export type DemoTurn = {
  readonly turn: number;
  /** Messages in the client's request. */
  readonly messages: number;
  readonly tokensBefore: number;
  /** Of what was sent. The recall tool is in it. */
  readonly tokensAfter: number;
  /** Stubs that were not there a turn before. */
  readonly folded: readonly Stub[];
  readonly recall: DemoRecall | undefined;
  /** What the client got. */
  readonly reply: ChatMessage;
  readonly ms: number;
};

/** `original` is what the client still holds in that place. */
export type Stub = { readonly id: string; readonly text: string; readonly original: string };

export type DemoRecall = {
  /** The arguments of the model's call. */
  readonly asked: string;
  /** Of the gateway's answer. */
  readonly tokens: number;
};

type Stage = {
  readonly sample: ChatBody;
  readonly client: ChatClient;
  readonly provider: ScriptedProvider;
  /** What the gateway wrote down of a request. */
  readonly receipt: (id: string) => Promise<Receipt>;
};

export async function* playDemo({ sample, client, provider, receipt }: Stage): AsyncGenerator<DemoTurn> {
  const seen = new Set<string>();
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
    const written = await receipt(headers.get('x-leporello-receipt') ?? '');
    const sent = provider.received[first]!;
    const folded = stubsIn(sent, history).filter(({ id }) => !seen.has(id));
    for (const { id } of folded) seen.add(id);
    yield {
      turn,
      messages: history.length,
      tokensBefore: written.tokensBefore ?? 0,
      tokensAfter: written.tokensAfter ?? 0,
      folded,
      recall: recallIn(provider.received[first + 1], written),
      reply,
      ms: written.ms.prepare,
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

/** A second request within one turn is a continuation: the call and its answer stand at its end. */
function recallIn(continuation: ChatBody | undefined, { recalls }: Receipt): DemoRecall | undefined {
  const call = continuation?.messages.at(-2)?.tool_calls?.[0];
  const [answered] = recalls;
  return call && answered ? { asked: call.function.arguments, tokens: answered.tokens } : undefined;
}
