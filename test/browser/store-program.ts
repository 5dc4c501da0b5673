/** The program that the browser plays with a store over HTTP: it folds a long conversation, and reads an original that is only in the store. */
import { createLeporello } from '../../src/index.ts';
import { httpStore } from '../../src/store/http.ts';

/** The result of the first of 40 calls, which is folded. */
export const firstLog: string = log(0);

export type PlayedFold = { readonly status: string; readonly sent: string; readonly id: string };

function log(at: number): string {
  return Array.from({ length: 60 }, (_, line) => `log ${at} line ${line} is well`).join('\n');
}

function open(url: string) {
  return createLeporello({
    store: httpStore({ url, timeoutMs: 60_000 }),
    storeDeadlineMs: 600_000,
    secret: new Uint8Array(32).fill(7),
    calibration: false,
    models: { '*': { windowTokens: 8_000 } },
  });
}

/** Folds the conversation. Returns the body to send and the id of the first stub. */
export async function foldOver(url: string): Promise<PlayedFold> {
  const calls = Array.from({ length: 40 }, (_, at) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'read', arguments: `{"at":${at}}` } }],
    },
    { role: 'tool', tool_call_id: `c${at}`, content: log(at) },
  ]);
  const tools = [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }];
  const messages = [{ role: 'user', content: 'Read all.' }, ...calls.flat()];
  const { outcome, body } = await open(url).prepare({ body: { model: 'gpt-4o', tools, messages } });
  const sent = new TextDecoder().decode(body);
  return { status: outcome.status, sent, id: /mem_[a-z0-9]{16}/.exec(sent)?.[0] ?? 'none' };
}

/** Reads an original with a new instance, which has it from the store alone. */
export function readOver(url: string, id: string): Promise<string> {
  return open(url).readMemory(JSON.stringify({ id }), { maxTokens: 100_000 });
}
