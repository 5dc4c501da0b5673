/**
 * The tests that every SDK passes, through the gateway and with the `fetch` of `leporello/fetch`: if nothing needs a fold, and through folds and
 * private recalls.
 */
import { describe, expect, it } from 'vitest';
import { createLeporelloFetch } from '../../../src/adapters/fetch.ts';
import type { GatewaySettings } from '../../../src/gateway/app.ts';
import { inMemoryStore } from '../../../src/store/in-memory.ts';
import { startFakeProvider } from '../../support/fake-provider/fake-provider.ts';
import type { Script, ScriptRequest } from '../../support/fake-provider/script.ts';
import { type Stack, startStack } from '../stack.ts';
import { asks, contentOf, files, model, secretIn, usageOfOne } from './scenario.ts';
import { hasStub } from '../../support/stub-texts.ts';

export type SdkClient = {
  /** The client's finish reasons for a reply with calls and for one without; undefined if it reports none. */
  readonly finish: { readonly calls: string | undefined; readonly stop: string | undefined };
  /** Returns the usage that the client reports for several replies received as one, if it is not their sum. */
  readonly usageOf?: (replies: number, streaming: boolean) => Usage;
  /** Begins a conversation, whose history the client keeps in the SDK's form. */
  start(options: ClientOptions): Talk;
};

export type ClientOptions = {
  /** The base URL of the gateway or of the provider, `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** The `fetch` to send requests with. Undefined for the SDK's own, with the gateway. */
  readonly fetch: typeof globalThis.fetch | undefined;
  readonly streaming: boolean;
  readonly runTool: (path: string) => string;
};

/** Sends a user message and runs the tools until the model answers. */
export type Talk = (userText: string) => Promise<TurnResult>;

export type TurnResult = {
  /** Every reply of the model, in order. */
  readonly replies: readonly ReceivedReply[];
  /** Everything that the SDK shows of this turn: replies, events, history. */
  readonly everything: unknown;
};

export type ReceivedReply = { readonly text: string; readonly finish: string | undefined } & Usage;

type Usage = { readonly input: number | undefined; readonly output: number | undefined };

export function sdkSuite(name: string, client: SdkClient) {
  describe.each([
    ['through the gateway', startStack],
    ['with leporello/fetch', startFetch],
  ] as const)(`${name} %s`, (_way, start) => {
    describe.each([
      ['not streaming', false],
      ['streaming', true],
    ] as const)('%s', (_, streaming) => {
      it('runs its tools if everything fits', async () => {
        const run = await talk(client, { start, streaming, window: 1_000_000, reasoning: false });
        expect(run).toEqual(expected(client, { recalls: 0, streaming }));
      });

      it('continues through folds and recalls that it never sees', async () => {
        const run = await talk(client, { start, streaming, window: 12_000, reasoning: false });
        expect(run).toEqual(expected(client, { recalls: 1, streaming }));
      });

      it('does so with a model that reasons', async () => {
        const run = await talk(client, { start, streaming, window: 12_200, reasoning: true });
        expect(run).toEqual(expected(client, { recalls: 1, streaming }));
      });
    });

    it('continues in another instance on the same store', async () => {
      const setting = { start, streaming: false, window: 12_000, reasoning: false, restarts: true };
      expect(await talk(client, setting)).toEqual(expected(client, { recalls: 1, streaming: false }));
    });
  });
}

type SdkStack = Pick<Stack, 'provider' | 'url' | 'logged' | 'restart'> &
  AsyncDisposable & { readonly fetch?: typeof fetch };

/** Starts a scripted provider, and a `fetch` that folds what is sent to it. */
async function startFetch(script: Script, settings: GatewaySettings): Promise<SdkStack> {
  const provider = await startFakeProvider({ script });
  const logged: string[] = [];
  const record = (fields: object, message: string) => {
    logged.push(`${message} ${JSON.stringify(fields)}`);
  };
  const { models = {} } = settings;
  const kept = { store: inMemoryStore(), secret: new Uint8Array(32).fill(9) };
  const open = () =>
    createLeporelloFetch({
      ...kept,
      models,
      offerRecall: 'with-fold',
      storeDeadlineMs: 600_000,
      prepareDeadlineMs: 600_000,
      log: { info: record, warn: record },
    });
  let folding = open();
  return {
    provider,
    url: provider.url,
    logged,
    fetch: (input, init) => folding(input, init),
    async restart() {
      folding = open();
    },
    async [Symbol.asyncDispose]() {
      expect(logged.filter((line) => line.startsWith('the sent prefix changed'))).toEqual([]);
      await provider.close();
    },
  };
}

export async function collect<T>(items: Iterable<T> | AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

type Setting = {
  readonly start: (script: Script, settings: GatewaySettings) => Promise<SdkStack>;
  readonly streaming: boolean;
  readonly window: number;
  readonly reasoning: boolean;
  /** Whether another instance takes over before each message of the user. Default false. */
  readonly restarts?: boolean;
};

async function talk(client: SdkClient, { start, streaming, window, reasoning, restarts }: Setting) {
  const script = model({ reasoning });
  const answered: ScriptRequest[] = [];
  await using stack = await start(
    (request) => {
      answered.push(request);
      return script(request);
    },
    { models: { '*': { windowTokens: window } } },
  );
  const toolsRun: string[] = [];
  const runTool = (path: string) => {
    toolsRun.push(path);
    return contentOf(path);
  };
  const firstUrl = stack.url;
  // A gateway that was started again has another port.
  const moving: typeof fetch = (input, init) => {
    if (input instanceof Request)
      return fetch(new Request(input.url.replace(firstUrl, stack.url), input), init);
    return fetch(String(input).replace(firstUrl, stack.url), init);
  };
  const ownFetch = stack.fetch ?? (restarts ? moving : undefined);
  const say = client.start({ url: firstUrl, fetch: ownFetch, streaming, runTool });
  const received: TurnResult[] = [];
  for (const ask of asks) {
    if (restarts && received.length > 0) await stack.restart();
    received.push(await say(ask));
  }
  return {
    replies: received.map(({ replies }) => replies),
    toolsRun,
    privateThingsSeen: privateThings.filter((thing) => shown(received).includes(thing)),
    requestsRefused: stack.provider.requests.length - answered.length,
    ...sent(stack),
  };
}

const privateThings = ['read_memory', 'mem_', '[Folded'];

/** Returns everything received, without the request's tools that Responses repeats; openai-responses.test.ts checks those. */
function shown(received: readonly TurnResult[]): string {
  return JSON.stringify(received, (key, value: unknown) => (key === 'tools' ? undefined : value));
}

/** Summarizes the provider's side: number of requests, whether folded, and which secrets the model still saw. */
function sent(stack: SdkStack) {
  const bodies = stack.provider.requests.map((request) => new TextDecoder().decode(request.body));
  return {
    requests: bodies.length,
    folded: bodies.some(hasStub),
    problems: stack.logged.filter((line) => /fail|problem|error/i.test(line)),
    stillSeen: ['a.log', 'b.log'].map((path) => secretIn(bodies.slice(-1), path)),
  };
}

function expected(
  { finish, usageOf = sumOf }: SdkClient,
  { recalls, streaming }: { readonly recalls: 0 | 1; readonly streaming: boolean },
) {
  const calls = (replies: number) => ({ finish: finish.calls, ...usageOf(replies, streaming) });
  const stop = (replies: number) => ({ finish: finish.stop, ...usageOf(replies, streaming) });
  const again = recalls > 0 ? 'Let me look again. ' : '';
  return {
    replies: [
      [
        ...files.map((path) => ({ text: `I read ${path}. `, ...calls(1) })),
        { text: `${again}It is 1067.`, ...stop(1 + recalls) },
      ],
      [
        { text: 'I read k.log. ', ...calls(1 + recalls) },
        { text: 'It is 1078.', ...stop(1) },
      ],
      [{ text: 'Bye.', ...stop(1) }],
    ],
    toolsRun: [...files, 'k.log'],
    privateThingsSeen: [],
    requestsRefused: 0,
    requests: files.length + 4 + 2 * recalls,
    folded: recalls > 0,
    problems: [],
    stillSeen: ['1067', '1078'],
  };
}

function sumOf(replies: number): Usage {
  return { input: usageOfOne.input * replies, output: usageOfOne.output * replies };
}
