/**
 * The program that every runtime plays: it folds a body of each wire format in process, and a conversation through `leporello/fetch`, plain and
 * streamed, with a hidden recall, and again from a second instance on the same store. It uses nothing but the platform's web interfaces.
 */
import { createLeporello, inMemoryStore } from '../../../src/index.ts';
import { createLeporelloFetch } from '../../../src/adapters/fetch.ts';

/** The results of one runtime. Equal ones send equal bytes. */
export type RuntimeResult = Readonly<Record<'fold' | 'recall' | 'stream' | 'restart', string>>;

/** Settings of the engine with a small window. */
export const settings = {
  calibration: false,
  storeDeadlineMs: 600_000,
  models: { '*': { windowTokens: 8_000 } },
} as const;

const secret = new Uint8Array(32).fill(7);
/** Returns the lines of a result. */
export const log = (at: number): string =>
  Array.from({ length: 60 }, (_, line) => `log ${at} line ${line} is well`).join('\n');
const numbers = Array.from({ length: 20 }, (_, at) => at);
const schema = { type: 'object' };

/** One body of each format, with 20 results. */
const bodies: Readonly<Record<string, object>> = {
  chat: {
    model: 'gpt-4o',
    tools: [{ type: 'function', function: { name: 'read', parameters: schema } }],
    messages: [
      { role: 'user', content: 'Read all.' },
      ...numbers.flatMap((at) => [
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: `c${at}`, type: 'function', function: { name: 'read', arguments: `{"at":${at}}` } },
          ],
        },
        { role: 'tool', tool_call_id: `c${at}`, content: log(at) },
      ]),
    ],
  },
  responses: {
    model: 'gpt-5',
    tools: [{ type: 'function', name: 'read', parameters: schema }],
    input: [
      { role: 'user', content: 'Read all.' },
      ...numbers.flatMap((at) => [
        { type: 'function_call', call_id: `c${at}`, name: 'read', arguments: `{"at":${at}}` },
        { type: 'function_call_output', call_id: `c${at}`, output: log(at) },
      ]),
    ],
  },
  messages: {
    model: 'claude-sonnet-4-5',
    max_tokens: 100,
    tools: [{ name: 'read', input_schema: schema }],
    messages: [
      { role: 'user', content: 'Read all.' },
      ...numbers.flatMap((at) => [
        { role: 'assistant', content: [{ type: 'tool_use', id: `c${at}`, name: 'read', input: { at } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: `c${at}`, content: log(at) }] },
      ]),
    ],
  },
  gemini: {
    tools: [{ functionDeclarations: [{ name: 'read' }] }],
    contents: [
      { role: 'user', parts: [{ text: 'Read all.' }] },
      ...numbers.flatMap((at) => [
        { role: 'model', parts: [{ functionCall: { name: 'read', args: { at } } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'read', response: { output: log(at) } } }] },
      ]),
    ],
  },
};

/** Plays everything. Rejects when something is not as expected. */
export async function play(): Promise<RuntimeResult> {
  return { fold: await foldAll(), ...(await playFetch()) };
}

async function foldAll(): Promise<string> {
  const sent: string[] = [];
  for (const [format, body] of Object.entries(bodies)) {
    const leporello = createLeporello({ ...settings, secret, store: inMemoryStore() });
    const text = JSON.stringify(body);
    const prepared = await leporello.prepare({ body: text });
    const now = new TextDecoder().decode(prepared.body);
    check(
      now.includes('[Folded') && now.length < text.length,
      `${format} was not folded: ${JSON.stringify(prepared.outcome)}`,
    );
    const id = /mem_[a-z0-9]{16}/.exec(now)![0];
    const answer = await leporello.recall(prepared, JSON.stringify({ id }));
    check(answer.includes('line 59 is well'), `${format}: the recall gave ${answer.slice(0, 80)}`);
    sent.push(now);
  }
  return digest(sent.join('\n'));
}

async function playFetch() {
  const store = inMemoryStore();
  const ask = async (isStreamed: boolean) => {
    const sent: string[] = [];
    const leporelloFetch = createLeporelloFetch({
      ...settings,
      prepareDeadlineMs: 600_000,
      secret,
      store,
      fetch: scripted(sent),
    });
    const body = JSON.stringify({ ...bodies['chat'], ...(isStreamed && { stream: true }) });
    const response = await leporelloFetch('https://provider.test/v1/chat/completions', {
      method: 'POST',
      body,
    });
    const text = await response.text();
    check(
      text.includes('All is well.') && !text.includes('read_memory'),
      `the client saw ${text.slice(0, 200)}`,
    );
    check(sent.length === 2 && sent[1]!.includes('line 59 is well'), `${sent.length} requests were sent`);
    return sent;
  };
  const plain = await ask(false);
  const streamed = await ask(true);
  const again = await ask(false);
  check(again[0] === plain[0], 'a second instance sent other bytes');
  return {
    recall: await digest(plain.join()),
    stream: await digest(streamed.join()),
    restart: await digest(again.join()),
  };
}

/** A model that recalls the first original that it sees the id of, and then answers. */
function scripted(sent: string[]): typeof fetch {
  return async (input, init) => {
    const body = await new Request(input, init).text();
    const id = /mem_[a-z0-9]{16}/.exec(body)?.[0] ?? 'none';
    const call = {
      id: 'r1',
      type: 'function',
      function: { name: 'read_memory', arguments: JSON.stringify({ id }) },
    };
    sent.push(body);
    const isFirst = sent.length === 1;
    const message = isFirst
      ? { role: 'assistant', content: null, tool_calls: [call] }
      : { role: 'assistant', content: 'All is well.' };
    const finish = isFirst ? 'tool_calls' : 'stop';
    if (!body.includes('"stream":true'))
      return Response.json({ id: 'x', choices: [{ index: 0, message, finish_reason: finish }] });
    const delta = isFirst
      ? { role: 'assistant', tool_calls: [{ index: 0, ...call }] }
      : { role: 'assistant', content: 'All is well.' };
    const events = [
      { id: 'x', choices: [{ index: 0, delta, finish_reason: null }] },
      { id: 'x', choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    ];
    const text = `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`;
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } });
  };
}

/** Returns the beginning of the SHA-256 hash of a text. */
export async function digest(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash).subarray(0, 6), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );
}

/** Throws `problem` unless the condition holds. */
export function check(holds: boolean, problem: string): void {
  if (!holds) throw new Error(problem);
}
