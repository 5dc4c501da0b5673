/** A gateway that has folded one streamed request, in which the model recalled twice: once an original, once an id that nothing has. */
import type { GatewaySettings } from '../../src/gateway/app.ts';
import type { ScriptRequest, Reply } from '../support/fake-provider/script.ts';
import { shapes } from './bodies.ts';
import { type Stack, startStack } from './stack.ts';

/** Texts of the conversation, of headers and of a tool's name. None of them may occur in metrics or traces. */
export const secrets = [
  'SECRET-question',
  'SECRET-rules',
  'SECRET-result',
  'SECRET-query',
  'SECRET-reply',
  'SECRET-key',
  'SECRET-session',
  'SECRET-path',
] as const;

export type FoldedScene = AsyncDisposable & {
  readonly stack: Stack;
  readonly metrics: () => Promise<string>;
};

function recall(name: string, asked: string) {
  const call = { id: asked, query: 'SECRET-query' };
  return { type: 'tool-call', id: name, name: 'read_memory', arguments: call } as const;
}

function linesOf(at: number): string {
  const lines = Array.from(
    { length: 60 },
    (_, line) => `SECRET-result ${at} ${line} of SECRET-path/${line}.ts`,
  );
  return lines.join('\n');
}

/** Recalls the first original and a missing one, then replies. */
function recallTwice({ body }: ScriptRequest): Reply {
  const sent = JSON.stringify(body);
  const text = { type: 'text', text: 'SECRET-reply' } as const;
  const id = /mem_[a-z0-9]{16}/.exec(sent)?.[0];
  if (id === undefined || sent.includes('SECRET-query')) return { type: 'turn', parts: [text] };
  return { type: 'turn', parts: [recall('one', id), recall('two', 'mem_0000000000000000')] };
}

/** Starts the gateway, and sends the request. `headers` are added to the client's. */
export async function foldedWithRecalls(
  headers: Readonly<Record<string, string>> = {},
  deps: Parameters<typeof startStack>[2] = {},
  settings: GatewaySettings = {},
): Promise<FoldedScene> {
  const stack = await startStack(
    recallTwice,
    {
      openMetrics: true,
      shrinks: false,
      triggers: {
        tokenBudget: { triggerTokens: 8_000, targetTokens: 2_000, bufferTokens: 1 },
        cacheRent: false,
        coldCache: false,
      },
      ...settings,
    },
    deps,
  );
  const { path, settings: fields, stream, job, withRules, user } = shapes.chat;
  const messages = [
    user('SECRET-question'),
    ...Array.from({ length: 12 }, (_, at) => job(`call-${at}`, linesOf(at))).flat(),
  ];
  const response = await fetch(stack.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer SECRET-key',
      'session-id': 'SECRET-session',
      ...headers,
    },
    body: JSON.stringify({ ...fields, ...stream, ...withRules('SECRET-rules', messages) }),
  });
  const text = await response.text();
  if (response.headers.get('x-leporello-outcome') !== 'compacted' || !text.includes('SECRET-reply'))
    throw new Error(`The request was not folded and answered: ${text.slice(0, 500)}`);
  return {
    stack,
    metrics: async () => (await fetch(`${stack.url}/metrics`)).text(),
    [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose](),
  };
}
