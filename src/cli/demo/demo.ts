/** Implements `leporello demo`: connects a client, the gateway and a scripted model on the loopback, and prints what happens between them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { assembleGateway } from '../../gateway/app.ts';
import { serveNode } from '../../gateway/http/node-server.ts';
import { undiciUpstream } from '../../gateway/http/undici-upstream.ts';
import { sqliteStore } from '../../store/sqlite/sqlite.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import type { DemoArgs } from '../command-args.ts';
import { ownCommand } from '../home.ts';
import { type ChatBody, type ChatClient, type ChatMessage, chatClient, sampleBody } from './client.ts';
import { type ScriptedProvider, demoScript, startScriptedProvider } from './model.ts';
import { storeFile } from '../../store/data-folder.ts';
import type { Terminal } from '../terminal.ts';

/** The window in tokens, small so that a short conversation fills it. */
const windowTokens = 8_000;
const fractions = { triggerShare: 0.85, targetShare: 0.6 };

/** A fixed secret, so that ids are always the same. The demo stores nothing that it must protect. */
const secret = new TextEncoder().encode('the demo keeps nothing that needs a secret');

export async function demo(args: DemoArgs, terminal: Terminal): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-demo-'));
  const stage = await setUp(folder);
  let stopped = false;
  const removeStopListener = terminal.onStop(() => {
    stopped = true;
  });
  try {
    const client = chatClient(stage.url);
    const startedAt = performance.now();
    const turns: DemoTurn[] = [];
    if (!args.json) await terminal.out(opening(windowTokens, fractions));
    for await (const turn of playDemo({ ...stage, sample: sampleBody, client })) {
      await terminal.out(args.json ? jsonLine(turn) : turnText(turn));
      turns.push(turn);
      if (stopped) return 130;
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    const sum = sumOf(turns, await countRestored(turns, stage.original), seconds);
    await terminal.out(args.json ? `${JSON.stringify({ total: sum })}\n` : closing(sum, windowTokens));
    return 0;
  } finally {
    removeStopListener();
    await stage.tearDown();
    await rm(folder, { recursive: true, force: true });
  }
}

async function setUp(folder: string) {
  const store = await sqliteStore({ file: storeFile(folder) });
  const provider = await startScriptedProvider(demoScript(sampleBody));
  const upstream = undiciUpstream();
  const gateway = assembleGateway(
    {
      models: { [sampleBody.model]: { windowTokens, tokenizer: { encoding: 'o200k_base' } } },
      triggers: { windowFraction: fractions },
      urls: { openai: `${provider.url}/v1` },
      // The first request waits for the tokenizer to load, which takes long on a slow machine.
      prepareDeadlineMs: 60_000,
    },
    { store, secret, upstream, log: { info: () => undefined, warn: () => undefined } },
  );
  const server = await serveNode(gateway, { port: 0, host: '127.0.0.1' });
  const url = `http://127.0.0.1:${server.port}`;
  const ask = async (path: string): Promise<unknown> => {
    const response = await fetch(url + path, { headers: { authorization: 'Bearer demo' } });
    return response.json();
  };
  return {
    url,
    provider,
    receipt: (id: string) => waitForReceipt(() => ask(`/_leporello/receipts/${id}`)),
    original: (id: string) => ask(`/_leporello/memory/${id}`),
    async tearDown(): Promise<void> {
      await server.close(0);
      await upstream.close();
      await provider.close();
      await store.close();
    },
  };
}

/** Asks until the receipt exists: it is written when its response has ended, which the client may notice slightly earlier. */
async function waitForReceipt(ask: () => Promise<unknown>): Promise<Receipt> {
  for (let tries = 1; ; tries++) {
    const answer = (await ask()) as Receipt | { readonly error: unknown };
    if ('id' in answer) return answer;
    if (tries > 500)
      throw new Error(`The gateway wrote no receipt within 5 seconds: ${JSON.stringify(answer.error)}`);
    await pause(10);
  }
}

/** Counts the folded texts that the gateway returns exactly as the client has them. */
async function countRestored(
  turns: readonly DemoTurn[],
  originalOf: (id: string) => Promise<unknown>,
): Promise<number> {
  let count = 0;
  for (const { id, original } of turns.flatMap((turn) => turn.folded)) {
    if ((await originalOf(id)) === original) count += 1;
  }
  return count;
}

function sumOf(turns: readonly DemoTurn[], restored: number, seconds: number): DemoSum {
  const before = turns.map((turn) => turn.tokensBefore);
  // A recall needs a second request: everything that was sent before, and the answer.
  const after = turns.flatMap(({ tokensAfter, recall }) =>
    recall === undefined ? [tokensAfter] : [tokensAfter, tokensAfter + recall.tokens],
  );
  return {
    turns: turns.length,
    tokensBefore: before.reduce((sum, tokens) => sum + tokens, 0),
    tokensAfter: after.reduce((sum, tokens) => sum + tokens, 0),
    largestBefore: Math.max(...before),
    largestAfter: Math.max(...after),
    folded: turns.flatMap((turn) => turn.folded).length,
    givenBack: restored,
    seconds,
  };
}

function jsonLine({ folded, ...turn }: DemoTurn): string {
  return `${JSON.stringify({ ...turn, folded: folded.map(({ id, text }) => ({ id, stub: text })) })}\n`;
}

// Turns of the demo: the sample conversation is played with the gateway between client and scripted model, and formatted for the terminal.

/** A turn, as the client and the scripted model see it. */
type DemoTurn = {
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

async function* playDemo({ sample, client, provider, receipt }: Stage): AsyncGenerator<DemoTurn> {
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
    const id = /^\[Folded result: .*(mem_[0-9a-z]{16})/s.exec(content ?? '')?.[1];
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

function opening(window: number, { triggerShare, targetShare }: Fractions): string {
  return `A coding agent looks for a bug. The model is scripted; the client, the gateway and its store are real.
Client: plain fetch, streaming.
The model's window: ${spelled(window)} tokens; the gateway folds above ${spelled(window * triggerShare)}, down to ${spelled(window * targetShare)}.
"client" is the size of the client's request, "sent" of the request that the gateway sent (with the tool read_memory), in tokens.

turn  messages    client   sent  the agent
`;
}

function turnText(turn: DemoTurn): string {
  const { number, messages, before, after } = {
    number: String(turn.turn).padStart(4),
    messages: String(turn.messages).padStart(8),
    before: spelled(turn.tokensBefore).padStart(8),
    after: spelled(turn.tokensAfter).padStart(6),
  };
  return [
    `${number}  ${messages}  ${before} ${after}  ${summaryOf(turn.reply)}\n`,
    foldText(turn.folded),
    turn.recall === undefined ? '' : recallText(turn.recall, turn.reply),
  ].join('');
}

type DemoSum = {
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

function closing(sum: DemoSum, window: number): string {
  const saved = (100 * (sum.tokensBefore - sum.tokensAfter)) / sum.tokensBefore;
  return `
${spelled(sum.tokensAfter)} tokens were sent in ${sum.turns} turns instead of ${spelled(sum.tokensBefore)} (${saved.toFixed(1)} % less), including the second request for the recall.
The largest request had ${spelled(sum.largestAfter)} tokens instead of ${spelled(sum.largestBefore)}, in a window of ${spelled(window)}.
The gateway restored ${sum.givenBack} of ${sum.folded} folded texts exactly. The demo took ${sum.seconds.toFixed(1)} s.

Next steps
  ${ownCommand} serve                 run the gateway for your own agent: change its base URL
  ${ownCommand} compact FILE          fold a recorded conversation, offline
  ${ownCommand} help                  show all commands
`;
}

function foldText(folded: readonly Stub[]): string {
  const [first] = folded;
  if (first === undefined) return '';
  const others = folded.length - 1;
  const more = others === 0 ? '' : `, and ${others} more like it`;
  const head = `folded: ${spelled(first.original.length)} characters were replaced by this stub${more}:`;
  return `${indent}${head}\n${wrapped(first.text, `${indent}| `)}`;
}

function recallText({ asked, tokens }: DemoRecall, reply: ChatMessage): string {
  const calls = reply.tool_calls?.length ?? 0;
  const sentence =
    `recall: inside this answer the model called read_memory ${asked}. The gateway answered with ` +
    `${spelled(tokens)} tokens, and the stream continued. The client got ${spelled(reply.content?.length ?? 0)} characters of text and ` +
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

function spelled(value: number): string {
  return value.toLocaleString('en-US');
}
