/** Tests the session and the input filter for OpenAI Agents, with the runner of the Agents SDK. */
import { Agent, type AgentInputItem, type Model, Runner, Usage, tool } from '@openai/agents';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { foldingEarly, log, memoryIdIn } from '../../test/support/folded-logs.ts';
import { LeporelloError } from '../errors.ts';
import { createLeporello } from '../library/leporello.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import { LeporelloSession, leporelloInputFilter, leporelloRecallTool } from './openai-agents.ts';

const said = (content: string): AgentInputItem => ({ role: 'user', content });

const secret = new Uint8Array(32).fill(7);

function openStore(store: Store = inMemoryStore()) {
  return { store, leporello: createLeporello({ ...foldingEarly, store, secret }) };
}

describe('a session', () => {
  it('keeps items in their order, over processes', async () => {
    const { store, leporello } = openStore();
    const session = new LeporelloSession(leporello, { sessionId: 'a b/c' });
    expect([await session.getSessionId(), await session.getItems()]).toEqual(['a b/c', []]);
    await session.addItems([said('one'), said('two')]);
    await session.addItems([]);
    const later = new LeporelloSession(openStore(store).leporello, { sessionId: 'a b/c' });
    await later.addItems([said('three')]);
    expect(await session.getItems()).toEqual([said('one'), said('two'), said('three')]);
    expect(await session.getItems(2)).toEqual([said('two'), said('three')]);
    expect(await session.getItems(9)).toHaveLength(3);
    expect(await session.getItems(0)).toEqual([]);
  });

  it('gives back the newest item, and forgets all when it is cleared', async () => {
    const { leporello } = openStore();
    const session = new LeporelloSession(leporello);
    await session.addItems([said('one'), said('two')]);
    expect(await session.popItem()).toEqual(said('two'));
    expect(await session.popItem()).toEqual(said('one'));
    expect(await session.popItem()).toBeUndefined();
    await session.addItems([said('again')]);
    expect(await session.getItems()).toEqual([said('again')]);
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
  });

  it('does calls one after the other, also after one that failed', async () => {
    const { store } = openStore();
    let fails = false;
    const { leporello } = openStore({
      ...store,
      putMany: async (entries) => {
        if (fails) throw new LeporelloError('store-failed', 'The disk is full.');
        await store.putMany(entries);
      },
    });
    const session = new LeporelloSession(leporello);
    const items = Array.from({ length: 20 }, (_, at) => said(`${at}`));
    await Promise.all(items.map(async (item) => session.addItems([item])));
    fails = true;
    await expect(session.addItems([said('lost')])).rejects.toMatchObject({ code: 'store-failed' });
    fails = false;
    await session.addItems([said('last')]);
    expect(await session.getItems()).toEqual([...items, said('last')]);
  });

  it('keeps the items of all its objects, and bytes as bytes', async () => {
    const { leporello } = openStore();
    const open = () => new LeporelloSession(leporello, { sessionId: 'x' });
    const image: AgentInputItem = {
      type: 'function_call_result',
      callId: 'c',
      name: 'see',
      status: 'completed',
      output: { type: 'image', image: { data: new Uint8Array([137, 80, 78, 71]), mediaType: 'image/png' } },
    };
    await Promise.all([open().addItems([said('one'), image]), open().addItems([said('two')])]);
    expect(await open().getItems()).toEqual([said('one'), image, said('two')]);
  });

  it('is not that of another tenant or of another name', async () => {
    const { leporello } = openStore();
    await new LeporelloSession(leporello, { sessionId: 'x' }).addItems([said('mine')]);
    for (const options of [{ sessionId: 'x', tenant: 'other' }, { sessionId: 'y' }, {}])
      expect(await new LeporelloSession(leporello, options).getItems()).toEqual([]);
  });

  it('refuses an empty name and what is no Leporello', () => {
    const { leporello } = openStore();
    expect(() => new LeporelloSession(leporello, { sessionId: '' })).toThrow(
      'sessionId is "", but must be a text',
    );
    expect(() => new LeporelloSession({} as never)).toThrow('createLeporello()');
  });

  it('reports a gap instead of leaving an item out', async () => {
    const { store, leporello } = openStore();
    const session = new LeporelloSession(leporello, { sessionId: 'gap' });
    await session.addItems([said('one'), said('two')]);
    await store.delete(['sealed/local/agents-session/gap/0']);
    await expect(session.getItems()).rejects.toThrow('The store has no item 0 of session "gap"');
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
  });
});

/** A model that reads 24 logs, asks for the first folded one, and then says its beginning. */
function reader(): Model & { readonly sizes: readonly number[] } {
  const sizes: number[] = [];
  let step = 0;
  return {
    sizes,
    async getResponse({ input }) {
      const text = JSON.stringify(input);
      sizes.push(text.length);
      const call = (callId: string, name: string, args: object) => ({
        type: 'function_call' as const,
        callId,
        name,
        arguments: JSON.stringify(args),
        status: 'completed' as const,
      });
      const last = (input as readonly AgentInputItem[]).at(-1)! as { readonly output?: unknown };
      const output =
        step < 24
          ? [call(`c${step}`, 'read', { at: step })]
          : step === 24
            ? [call('recall', 'read_memory', { id: memoryIdIn(text) })]
            : [
                {
                  type: 'message' as const,
                  role: 'assistant' as const,
                  status: 'completed' as const,
                  content: [{ type: 'output_text' as const, text: JSON.stringify(last.output) }],
                },
              ];
      step++;
      return { output, usage: new Usage(), responseId: `r${step}` };
    },
    getStreamedResponse: () => {
      throw new Error('This model does not stream.');
    },
  };
}

describe('the input filter', () => {
  it('folds what is sent, lets the model recall with a tool, and leaves the session complete', async () => {
    const { leporello } = openStore();
    const session = new LeporelloSession(leporello);
    const model = reader();
    const agent = new Agent({
      name: 'Reader',
      model,
      tools: [
        tool({
          name: 'read',
          description: 'Reads a log.',
          parameters: z.object({ at: z.number() }),
          execute: async ({ at }) => log(at),
        }),
        leporelloRecallTool(leporello),
      ],
    });
    const result = await new Runner({ tracingDisabled: true }).run(agent, 'Read all logs.', {
      session,
      maxTurns: 40,
      callModelInputFilter: leporelloInputFilter(leporello, { model: 'gpt-4o' }),
    });
    const whole = JSON.stringify(await session.getItems());
    expect(
      Array.from({ length: 24 }, (_, at) => whole.includes(JSON.stringify(log(at)).slice(1, -1))),
    ).toEqual(Array.from({ length: 24 }, () => true));
    expect(Math.max(...model.sizes) < whole.length / 2).toBe(true);
    expect(result.finalOutput).toBe(JSON.stringify({ type: 'text', text: log(0) }));
  });
});
