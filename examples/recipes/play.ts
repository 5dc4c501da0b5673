/**
 * Starts the gateway of a recipe: the configuration file beside the program is loaded as `leporello serve --config` loads it, and a scripted
 * provider answers instead of a model, so nothing leaves this machine. The secret is fixed, so that every run prints the same numbers; use
 * one of your own.
 */
import { fileURLToPath } from 'node:url';
import { gatewaySettings } from '../../src/cli/config/to-settings.ts';
import { loadConfig } from '../../src/cli/config/load-config.ts';
import type { AnyReceipt, Receipt } from '../../src/adapters/fetch.ts';
import { assembleGateway } from '../../src/gateway/index.ts';
import { serveNode, undiciUpstream } from '../../src/gateway/node.ts';
import { inMemoryStore } from '../../src/index.ts';
import { type Reply, type ScriptRequest, startFakeProvider } from '../../test/support/index.ts';

export type Message = {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly object[];
  readonly tool_call_id?: string;
};

/** A request's answer for the client, the messages that the provider got last, and the receipt. */
export type Played = {
  readonly answer: string;
  readonly sent: readonly Message[];
  readonly receipt: Receipt;
};

export type Play = AsyncDisposable & {
  /** Sends a Chat Completions request through the gateway. */
  ask(messages: readonly Message[]): Promise<Played>;
  /** Resolves when the gateway has logged a line that begins so. */
  logged(beginning: string): Promise<void>;
};

/** The model of all recipes: its tokenizer and window are known without the network. */
const model = 'gpt-4o';

/** Starts the gateway with a configuration file of this folder, and with `values` that change it. `reply` is the scripted model. */
export async function startRecipe(
  file: string,
  reply: (request: ScriptRequest) => Reply = () => says('Done.'),
  values: Readonly<Record<string, string>> = {},
): Promise<Play> {
  const provider = await startFakeProvider({ script: reply });
  const path = fileURLToPath(new URL(file, import.meta.url));
  const flags = Object.entries(values).map(([key, text]) => ({ flag: '--set', key, text }));
  const { config } = await loadConfig({ file: path, values: flags }, { env: {}, cwd: process.cwd() });
  const receipts: AnyReceipt[] = [];
  const lines: string[] = [];
  const waiting: { readonly beginning: string; readonly resolve: () => void }[] = [];
  const note = (_: object, line: string) => {
    lines.push(line);
    for (const { beginning, resolve } of waiting) if (line.startsWith(beginning)) resolve();
  };
  const upstream = undiciUpstream();
  const store = inMemoryStore();
  const handler = assembleGateway(
    // A busy machine must not change the numbers, so nothing has a deadline here, and the scripted provider's usage is not learned.
    {
      ...gatewaySettings(config),
      calibration: false,
      urls: { openai: `${provider.url}/v1` },
      prepareDeadlineMs: 600_000,
      storeDeadlineMs: 600_000,
    },
    {
      store,
      secret: new Uint8Array(32).fill(1),
      upstream,
      log: { info: note, warn: note },
      onReceipt: (receipt) => receipts.push(receipt),
    },
  );
  const server = await serveNode(handler, { port: 0, host: '127.0.0.1', onError: console.error });
  return {
    async ask(messages) {
      const response = await fetch(`http://127.0.0.1:${server.port}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer dummy', 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages, tools: [tool('run'), tool('search')] }),
      });
      const answered = (await response.json()) as { choices: { message: Message }[] };
      const bodies = provider.requests.map(({ body }) => new TextDecoder().decode(body));
      // Texts that a model writes ahead are asked for without tools.
      const body = JSON.parse(bodies.findLast((one) => one.includes('"tools":'))!) as { messages: Message[] };
      const receipt = receipts.findLast((one): one is Receipt => one.kind === 'request')!;
      return { answer: answered.choices[0]!.message.content ?? '', sent: body.messages, receipt };
    },
    logged: (beginning) =>
      new Promise((resolve) => {
        waiting.push({ beginning, resolve });
        if (lines.some((line) => line.startsWith(beginning))) resolve();
      }),
    async [Symbol.asyncDispose]() {
      await server.close(1_000);
      await upstream.close();
      await provider.close();
      await store.close();
    },
  };
}

function tool(name: string): object {
  return { type: 'function', function: { name, parameters: { type: 'object' } } };
}

/** A turn of the scripted model. */
export function says(text: string): Reply {
  return { type: 'turn', parts: [{ type: 'text', text }] };
}

/** A turn of the scripted model that reads an original. */
export function recalls(input: object): Reply {
  return {
    type: 'turn',
    parts: [{ type: 'tool-call', name: 'read_memory', arguments: JSON.stringify(input) }],
  };
}

/** Returns the messages of one call and its result. `text`: what the model says with the call. */
export function called(
  id: string,
  name: string,
  input: object,
  result: string,
  text: string | null = null,
): readonly Message[] {
  const call = { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
  return [
    { role: 'assistant', content: text, tool_calls: [call] },
    { role: 'tool', tool_call_id: id, content: result },
  ];
}

const words =
  'harbor light keeper stone tower winter oil lamp rope signal storm coast ship night record crew'.split(' ');

/** Returns text of so many words without meaning; each seed gives another text. */
export function prose(seed: number, length: number): string {
  let state = seed + 1;
  const next = () => (state = (state * 48_271) % 2_147_483_647);
  return Array.from(
    { length },
    (_, at) => `${words[next() % words.length]}${at % 12 === 11 ? '.' : ''}`,
  ).join(' ');
}
