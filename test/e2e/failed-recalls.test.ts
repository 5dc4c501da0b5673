/** Tests recalls whose original cannot be read: the model reads a sentence instead, and the client gets its reply. */
import { describe, expect, it } from 'vitest';
import { LeporelloError } from '../../src/errors.ts';
import type { Engine } from '../../src/engine/types.ts';
import type { GatewayTracing } from '../../src/gateway/options.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Reply, Script, TurnPart } from '../support/fake-provider/script.ts';
import { formats, postAs, shapes } from './bodies.ts';
import { replies } from './replies.ts';
import { offering, startStack } from './stack.ts';

const recall: TurnPart = {
  type: 'tool-call',
  name: 'read_memory',
  arguments: { id: 'mem_0000000000000000' },
};
const run: TurnPart = { type: 'tool-call', name: 'run', arguments: {} };
const looking: Reply = { type: 'turn', parts: [{ type: 'text', text: 'One moment. ' }, recall] };
const both: Reply = { type: 'turn', parts: [recall, run] };
const found: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Here it is.' }] };

/** Wraps the engine so that originals can be read from the store only, which fails: as after the end of the thread that folded the request. */
const unreadable: GatewayTracing = {
  handler: (handler) => handler,
  storeCall: (_, call) => call(),
  parts(parts) {
    const prepare: Engine['prepare'] = async (request) => ({
      ...(await parts.engine.prepare(request)),
      original: () => Promise.reject(new LeporelloError('store-failed', 'The file is gone.')),
    });
    return { ...parts, engine: { ...parts.engine, prepare } };
  },
};

const sentence = 'This memory cannot be read now. Go on without it.';

async function newestReceipt(url: string): Promise<Receipt> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  return ((await response.json()) as { receipts: Receipt[] }).receipts[0]!;
}

describe.each(formats)('a %s recall whose original cannot be read', (format) => {
  const start = (script: Script) => startStack(script, offering, { tracing: unreadable });

  it.each(['whole', 'streamed'])('is answered with a sentence, and the %s reply goes on', async (how) => {
    await using stack = await start(({ index }) => (index === 0 ? looking : found));
    const response = await postAs(stack.url, format, how);
    const text = await response.text();
    expect([response.status, text.includes('Here it is.')]).toEqual([200, true]);
    if (how === 'streamed') expect(text).toMatch(replies[format].streamEnd);
    expect(new TextDecoder().decode(stack.provider.requests[1]!.body)).toContain(sentence);
    expect(await newestReceipt(stack.url)).toMatchObject({
      problem: 'a recall failed: The file is gone.',
      recalls: [{ round: 1, found: false }],
    });
  });

  it.each(['whole', 'streamed'])('beside a call of the client leaves the client its %s call', async (how) => {
    await using stack = await start(() => both);
    const response = await postAs(stack.url, format, how);
    const text = await response.text();
    // A Responses object repeats the tools of the request, so the call is looked for by its argument.
    expect([response.status, text.includes('"run"'), text.includes('mem_0000')]).toEqual([200, true, false]);
    if (how === 'streamed') expect(text).toMatch(replies[format].endWithCalls);
    expect(await newestReceipt(stack.url)).toMatchObject({ problem: 'a recall failed: The file is gone.' });
  });
});

describe('a recall that names no original', () => {
  it.each([
    [
      'half an id',
      (id: string) => ({ id: id.slice(0, 14), lines: '1' }),
      / The closest is mem_\w{16}:\\njob 0 line 0/,
      false,
    ],
    [
      'the id of a call',
      () => ({ id: 'call-0', lines: '1' }),
      / to which mem_\w{16} belongs:\\njob 0 line 0/,
      false,
    ],
    [
      'nothing',
      () => ({}),
      /No id was given\..*\\nFolded in this conversation, the newest first:\\nmem_\w{16} · result of /,
      false,
    ],
    [
      'words of another language',
      () => ({ query: 'wo steht es' }),
      /No match for .*\\nFolded in this conversation/,
      true,
    ],
  ])('but %s is answered with what it may mean', async (_, argumentsFor, answer, isFound) => {
    const script: Script = ({ index, body }) => {
      const id = /mem_[a-z0-9]{16}/.exec(JSON.stringify(body))?.[0] ?? '';
      return index === 0
        ? { type: 'turn', parts: [{ type: 'tool-call', name: 'read_memory', arguments: argumentsFor(id) }] }
        : found;
    };
    const triggers = {
      tokenBudget: { triggerTokens: 8_000, targetTokens: 2_000, bufferTokens: 1 },
      cacheRent: false,
      coldCache: false,
    } as const;
    await using stack = await startStack(script, { shrinks: false, triggers });
    const { path, settings, job, withRules, user } = shapes.chat;
    const result = (at: number) =>
      Array.from({ length: 60 }, (__, line) => `job ${at} line ${line} of its log`).join('\n');
    const jobs = Array.from({ length: 16 }, (__, at) => job(`call-${at}`, result(at))).flat();
    const response = await fetch(stack.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer dummy' },
      body: JSON.stringify({ ...settings, ...withRules('Be brief.', [user('Run the jobs.'), ...jobs]) }),
    });
    expect(await response.text()).toContain('Here it is.');
    expect(new TextDecoder().decode(stack.provider.requests[1]!.body)).toMatch(answer);
    expect(await newestReceipt(stack.url)).toMatchObject({ recalls: [{ round: 1, found: isFound }] });
  });
});
