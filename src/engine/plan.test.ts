import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import type { Strategy } from '../strategies/strategy.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { FoldOnly, Trigger } from '../triggers/trigger.ts';

const long = (what: string) => `${what} of a long file\n`.repeat(150);
const write = (at: number): Step => ({
  calls: [
    {
      name: 'write_file',
      input: JSON.stringify({ path: `${at}.ts`, content: long(`line ${at}`) }),
      result: long(`result ${at}`),
    },
  ],
});
const steps: readonly Step[] = [{ user: 'Go' }, write(1), write(2), write(3), write(4)];

/** Asks for everything in the named messages, even if it is more than the goal. */
const onlyThese = (smaller: readonly number[], gone: readonly number[] = []): Trigger => ({
  name: 'only-these',
  demand: ({ tokens }) => ({
    trigger: 'only-these',
    goal: { unit: 'tokens', target: tokens - 100 },
    atMost: undefined,
    force: false,
    only: { smaller: new Set(smaller), gone: new Set(gone) },
  }),
});

/** Returns the sent messages in which nothing is folded. */
async function leftBy(trigger: Trigger) {
  const { engine } = testEngine({ window: 1_000_000, triggers: [trigger] });
  const body = chatBody(steps, { tools: ['write_file'], model: 'gpt-4o' });
  const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
  const { messages } = JSON.parse(new TextDecoder().decode(prepared.body)) as { messages: unknown[] };
  return messages.flatMap((message, at) => (JSON.stringify(message).includes('mem_') ? [] : [at]));
}

describe('a demand that names messages', () => {
  it('puts stubs only into these, in results and arguments, and drops none', async () => {
    //  0 user, 1 call, 2 result, 3 call, 4 result, 5 call, 6 result, 7 call, 8 result
    expect(await leftBy(onlyThese([1, 2, 3, 4]))).toEqual([0, 5, 6, 7, 8]);
    expect(await leftBy(onlyThese([2, 3, 4]))).toEqual([0, 1, 5, 6, 7, 8]);
  });

  it('drops the messages that it names, calls with their results, and leaves one stub for them', async () => {
    // The stub replaces four messages, so message 5 becomes message 2.
    expect(await leftBy(onlyThese([], [1, 2, 3, 4]))).toEqual([0, 2, 3, 4, 5]);
    expect(await leftBy(onlyThese([6], [1, 2, 3, 4]))).toEqual([0, 2, 4, 5]);
  });

  it('makes originals only of what it names in the request, not of texts that it then drops with their messages', async () => {
    const trigger = onlyThese([1, 2, 3, 4, 5, 6], [1, 2, 3, 4]);
    const { engine } = testEngine({ window: 1_000_000, triggers: [trigger] });
    const body = chatBody(steps, { tools: ['write_file'], model: 'gpt-4o' });
    const { body: sent, report } = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
    const text = new TextDecoder().decode(sent);
    expect(report.steps.map(({ strategy }) => strategy)).toEqual(
      expect.arrayContaining(['offload-results', 'drop-oldest']),
    );
    expect(report.memories.filter((id) => !text.includes(id))).toEqual([]);
  });

  it('never reaches the newest batch', async () => {
    expect(await leftBy(onlyThese([1, 2, 3, 4, 5, 6, 7, 8]))).toEqual([0, 7, 8]);
  });
});

describe('a fold that adds the recall tool', () => {
  /** Saves less than the tool costs. */
  const stubbing = (message: number): Strategy => ({
    name: `stub ${message}`,
    reach: 'history',
    propose: ({ edits, idOf }) => {
      const at = { message, part: 0, text: 0 };
      const memory = idOf(new TextEncoder().encode(`${message}`));
      return edits.some((edit) => edit.kind === 'replace-text' && edit.at.message === message)
        ? []
        : [{ kind: 'replace-text', at, stub: memory, memory }];
    },
  });
  const forced: Trigger = {
    name: 'forced',
    demand: ({ tokens }) => ({
      trigger: 'forced',
      goal: { unit: 'tokens', target: tokens - 100 },
      atMost: undefined,
      force: true,
    }),
  };
  const folded = async (...messages: readonly number[]) => {
    const { engine } = testEngine({ triggers: [forced], strategies: messages.map(stubbing) });
    const short = (at: number): Step => ({
      calls: [{ name: 'look', result: `${at} understands everything immediately, `.repeat(9) }],
    });
    const body = chatBody([{ user: 'Go' }, ...[1, 2, 3, 4].map(short)], { tools: ['look'], model: 'gpt-4o' });
    const { report, recallTool } = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
    const saved = (report.tokensBefore ?? 0) - (report.tokensAfter ?? 0);
    return { memories: report.memories.length, saves: saved > 0, recallTool };
  };

  it('must save more than the tool costs, with all of its steps together', async () => {
    expect(await folded(2)).toEqual({ memories: 0, saves: false, recallTool: undefined });
    expect(await folded(2, 4, 6)).toEqual({ memories: 3, saves: true, recallTool: 'read_memory' });
  });
});

describe('a fold that no limit forces', () => {
  /** Returns the tokens that the fold of one result saves when this many are demanded; 0 when no fold is made. */
  async function saved(asked: number, only?: FoldOnly): Promise<number> {
    const wish: Trigger = {
      name: 'wish',
      demand: ({ tokens }) => ({
        trigger: 'wish',
        goal: { unit: 'tokens', target: tokens - asked },
        atMost: undefined,
        force: false,
        ...(only && { only }),
      }),
    };
    const stubOneResult: Strategy = {
      name: 'stub one result',
      reach: 'history',
      propose: ({ edits, idOf }) => {
        const memory = idOf(new TextEncoder().encode('result'));
        const at = { message: 2, part: 0, text: 0 };
        return edits.length > 0 ? [] : [{ kind: 'replace-text', at, stub: memory, memory }];
      },
    };
    const { engine } = testEngine({ window: 1_000_000, triggers: [wish], strategies: [stubOneResult] });
    const body = chatBody(steps, { tools: ['write_file'], model: 'gpt-4o' });
    const { report } = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
    return (report.tokensBefore ?? 0) - (report.tokensAfter ?? 0);
  }

  it.each([
    ['a quarter of the demand', 0.25, undefined],
    ['half of it when the demand names messages', 0.5, { smaller: new Set([2]), gone: new Set<number>() }],
  ])('must save %s', async (_, share, only) => {
    const won = await saved(1, only);
    expect(won).toBeGreaterThan(300);
    expect(await saved(Math.floor((won / share) * 0.98), only)).toBe(won);
    expect(await saved(Math.ceil((won / share) * 1.02), only)).toBe(0);
  });
});
