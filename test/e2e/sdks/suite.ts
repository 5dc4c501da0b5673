/** The test cases that every SDK passes: through a gateway that has nothing to fold, and through folds and private recalls. */
import { describe, expect, it } from 'vitest';
import type { ScriptRequest } from '../../support/fake-provider/script.ts';
import { type Stack, startStack } from '../stack.ts';
import { asks, contentOf, files, model, secretIn, usageOfOne } from './scenario.ts';

export type SdkClient = {
  /** What the client calls the end of a reply with calls, and of one without; undefined where it does not say. */
  readonly finish: { readonly calls: string | undefined; readonly stop: string | undefined };
  /** The tokens it reports for so many replies of the model that it got as one, where that is not their sum. */
  readonly usageOf?: (replies: number, streaming: boolean) => Usage;
  /** Begins a conversation, whose history the client keeps as its SDK gives it. */
  start(options: ClientOptions): Talk;
};

export type ClientOptions = {
  /** `http://127.0.0.1:PORT` of the gateway. */
  readonly url: string;
  readonly streaming: boolean;
  readonly runTool: (path: string) => string;
};

/** Says something to the model and runs its tools until it answers. */
export type Talk = (said: string) => Promise<Heard>;

export type Heard = {
  /** Every reply of the model, in order. */
  readonly replies: readonly HeardReply[];
  /** All that the SDK shows of this turn: replies, events, history. */
  readonly everything: unknown;
};

export type HeardReply = { readonly text: string; readonly finish: string | undefined } & Usage;

type Usage = { readonly input: number | undefined; readonly output: number | undefined };

export function sdkSuite(name: string, client: SdkClient) {
  describe(`${name} through the gateway`, () => {
    describe.each([
      ['not streaming', false],
      ['streaming', true],
    ] as const)('%s', (_, streaming) => {
      it('runs its tools where all fits', async () => {
        const run = await talk(client, { streaming, window: 1_000_000, reasoning: false });
        expect(run).toEqual(expected(client, { recalls: 0, streaming }));
      });

      it('goes on through folds and recalls it never sees', async () => {
        const run = await talk(client, { streaming, window: 12_000, reasoning: false });
        expect(run).toEqual(expected(client, { recalls: 1, streaming }));
      });

      it('does so with a model that reasons', async () => {
        const run = await talk(client, { streaming, window: 12_200, reasoning: true });
        expect(run).toEqual(expected(client, { recalls: 1, streaming }));
      });
    });
  });
}

export async function collect<T>(items: Iterable<T> | AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

type Setting = { readonly streaming: boolean; readonly window: number; readonly reasoning: boolean };

async function talk(client: SdkClient, { streaming, window, reasoning }: Setting) {
  const script = model({ reasoning });
  const answered: ScriptRequest[] = [];
  await using stack = await startStack(
    (request) => {
      answered.push(request);
      return script(request);
    },
    { models: { '*': { window } } },
  );
  const toolsRun: string[] = [];
  const runTool = (path: string) => {
    toolsRun.push(path);
    return contentOf(path);
  };
  const say = client.start({ url: stack.url, streaming, runTool });
  const heard: Heard[] = [];
  for (const ask of asks) heard.push(await say(ask));
  return {
    replies: heard.map(({ replies }) => replies),
    toolsRun,
    privateThingsSeen: privateThings.filter((thing) => shown(heard).includes(thing)),
    requestsRefused: stack.provider.requests.length - answered.length,
    ...sent(stack),
  };
}

const privateThings = ['read_memory', 'mem_', '[Folded'];

/** All that was heard, but for the tools that Responses repeats from the request: openai-responses.test.ts has those. */
function shown(heard: readonly Heard[]): string {
  return JSON.stringify(heard, (key, value: unknown) => (key === 'tools' ? undefined : value));
}

/** What the provider got: how often it was asked, whether folded, and what the model saw of the secrets. */
function sent(stack: Stack) {
  const bodies = stack.provider.requests.map((request) => new TextDecoder().decode(request.body));
  return {
    requests: bodies.length,
    folded: bodies.some((body) => body.includes('[Folded ')),
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
