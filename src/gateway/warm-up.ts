/**
 * Warms up a process before its first request: loads the token tables and the model catalog, and folds a made-up conversation in each wire
 * format, so that the code is compiled before a client waits for it. It uses its own engine and store, and nothing of it remains.
 */
import { createDefaultEngine } from '../library/default-engine.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import type { Outcome } from '../receipts/receipt.ts';
import { defaultUpstreams, routeOf } from './routing/routes.ts';

/**
 * Warms up this process. It takes about 400 ms of CPU, and saves a first request of 2.3 MB about 350 ms. `model` names a model with the
 * tokenizer that most requests need. `pause` is called between two made-up requests, which take up to 50 ms each; the warm-up ends when it
 * rejects, or after `maxRequests` of them. Returns the outcome of each made-up request. Never rejects: without it the first requests are slower.
 */
export async function warmUp(
  model: string,
  pause: () => Promise<void> = () => Promise.resolve(),
  maxRequests = Number.POSITIVE_INFINITY,
): Promise<readonly Outcome['status'][]> {
  const outcomes: Outcome['status'][] = [];
  try {
    const encryptedStore = createEncryptedStore({
      store: inMemoryStore(),
      secret: new Uint8Array(32),
    });
    const engine = createDefaultEngine({ models: { '*': { windowTokens: 24_000 } } }, encryptedStore);
    for (const { path, body } of formatsFor(model)) {
      const route = routeOf('POST', path, [], defaultUpstreams);
      if (route.kind !== 'model') continue;
      // The first request fits, the second must be folded, and the others replay that fold.
      for (const count of [3, 60, 61, 62]) {
        if (outcomes.length === maxRequests) return outcomes;
        await pause();
        const bytes = new TextEncoder().encode(JSON.stringify(body(count)));
        const { outcome } = await engine.prepare({ codec: route.codec, body: bytes, tenant: 'warm-up' });
        outcomes.push(outcome.status);
      }
    }
  } catch {
    // Without the warm-up, the first requests load and compile what they need.
  }
  return outcomes;
}

const tool = { name: 'run', description: 'Runs a command.' };

/** Returns a tool result of about 2 kB: by turns JSON, code and log lines. */
function result(step: number): string {
  const lines = Array.from(
    { length: 12 },
    (_, line) => `2026-01-01T00:00:${line} step ${step} took ${line * 7} ms`,
  );
  const rows = Array.from({ length: 12 }, (_, row) => ({
    id: row * step,
    path: `src/file-${row}.ts`,
    ok: true,
  }));
  const code = Array.from(
    { length: 12 },
    (_, line) => `${line + 1}\texport const value${line} = ${step + line};`,
  );
  return [JSON.stringify(rows), code.join('\n'), lines.join('\n')][step % 3]!.repeat(2);
}

function steps<T>(count: number, make: (id: string, text: string) => readonly T[]): readonly T[] {
  return Array.from({ length: count }, (_, step) => make(`call_${step}`, result(step))).flat();
}

type WarmUpFormat = { readonly path: string; readonly body: (count: number) => object };

const question = { role: 'user', content: 'Run all steps and report what failed.' };

const formatsFor = (model: string): readonly WarmUpFormat[] => [
  {
    path: '/v1/chat/completions',
    body: (count) => ({
      model,
      tools: [{ type: 'function', function: tool }],
      messages: [
        question,
        ...steps<object>(count, (id, content) => [
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id, type: 'function', function: { name: 'run', arguments: '{"command":"make"}' } },
            ],
          },
          { role: 'tool', tool_call_id: id, content },
        ]),
      ],
    }),
  },
  {
    path: '/v1/messages',
    body: (count) => ({
      model,
      max_tokens: 100,
      tools: [{ ...tool, input_schema: { type: 'object' } }],
      messages: [
        question,
        ...steps<object>(count, (id, content) => [
          { role: 'assistant', content: [{ type: 'tool_use', id, name: 'run', input: { command: 'make' } }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] },
        ]),
      ],
    }),
  },
  {
    path: '/v1/responses',
    body: (count) => ({
      model,
      tools: [{ type: 'function', ...tool, parameters: { type: 'object' } }],
      input: [
        question,
        ...steps<object>(count, (call_id, output) => [
          { type: 'function_call', call_id, name: 'run', arguments: '{"command":"make"}' },
          { type: 'function_call_output', call_id, output },
        ]),
      ],
    }),
  },
  {
    path: `/v1beta/models/${model}:generateContent`,
    body: (count) => ({
      tools: [{ functionDeclarations: [tool] }],
      contents: [
        { role: 'user', parts: [{ text: question.content }] },
        ...steps<object>(count, (id, output) => [
          { role: 'model', parts: [{ functionCall: { id, name: 'run', args: { command: 'make' } } }] },
          { role: 'user', parts: [{ functionResponse: { id, name: 'run', response: { output } } }] },
        ]),
      ],
    }),
  },
];
