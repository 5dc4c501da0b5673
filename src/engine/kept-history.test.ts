import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { chatBody, chatMessages, type Step } from '../../test/support/chat-conversation.ts';
import { createLeporello, type Leporello } from '../library/leporello.ts';
import { defaultTriggers } from '../triggers/default-triggers.ts';

type Message = { readonly role: string; readonly content: unknown };

const tools = ['run', 'read_memory'];
const log = (at: number) => `row ${at}; `.repeat(140);

/** The steps of an agent for one request of the user: a call, its result, and a comment. */
function turn(at: number): readonly Step[] {
  return [
    { user: `Demand ${at}: never write to table t${at}.` },
    { calls: [{ name: 'run', input: JSON.stringify({ command: `check t${at}` }), result: log(at) }] },
  ];
}

const settings = {
  models: { 'gpt-4o': { windowTokens: 12_000 } },
  triggers: defaultTriggers({ windowFraction: { triggerShare: 0.5, targetShare: 0.3 } }),
};
const kept = () => ({ ...settings, store: inMemoryStore(), secret: new Uint8Array(32).fill(3) });

/** An agent that keeps its own folded messages and adds to these. */
function openAgent(leporello: Leporello, state: readonly Message[] = []) {
  let messages = state;
  let folds = 0;
  return {
    async go(steps: readonly Step[]): Promise<void> {
      const more = chatMessages(steps).map((message) => message as unknown as Message);
      const [frame] = [
        JSON.parse(new TextDecoder().decode(chatBody([], { tools, model: 'gpt-4o' }))) as object,
      ];
      const body = new TextEncoder().encode(JSON.stringify({ ...frame, messages: [...messages, ...more] }));
      const compacted = await leporello.compact({ codec: openaiChat, body });
      expect(compacted.outcome.status).not.toBe('failed');
      const sent = JSON.parse(new TextDecoder().decode(compacted.body)) as { messages: Message[] };
      messages = sent.messages;
      folds += Number(compacted.outcome.status === 'compacted');
    },
    state: () => messages,
    folds: () => folds,
  };
}

const textsOf = (messages: readonly Message[]) => messages.map(({ content }) => String(content));
const summariesIn = (messages: readonly Message[]) =>
  textsOf(messages).filter((text) => text.startsWith('[Summary of'));

describe('a program that keeps its own messages', () => {
  it('can continue without end: one summary holds every instruction, and all originals are found by their ids', async () => {
    const leporello = createLeporello(kept());
    const agent = openAgent(leporello);
    for (let at = 0; at < 40; at++) await agent.go(turn(at));
    expect(agent.folds()).toBeGreaterThan(3);
    const [summary = '', ...others] = summariesIn(agent.state());
    expect(others).toEqual([]);
    const lines = textsOf(agent.state()).flatMap((text) =>
      text.replaceAll(/^- \[\d+\] /gm, '- ').split('\n'),
    );
    const demands = Array.from({ length: 40 }, (_, at) => `Demand ${at}: never write to table t${at}.`);
    expect(
      demands.filter((demand) => !lines.includes(`- USER: ${demand}`) && !lines.includes(demand)),
    ).toEqual([]);
    const read: string[] = [];
    for (const id of summary.match(/mem_[0-9a-z]{16}/g) ?? [])
      read.push(await leporello.readMemory(JSON.stringify({ id, query: 'check t0' })));
    expect(read.join('\n')).toContain('check t0');
    expect(await leporello.readMemory('{"id":"mem_0000000000000000"}')).toMatch(/^No memory with id/);
  });

  it('continues in another process from its saved messages', async () => {
    const options = kept();
    const before = openAgent(createLeporello(options));
    for (let at = 0; at < 15; at++) await before.go(turn(at));
    const saved = JSON.parse(JSON.stringify(before.state())) as readonly Message[];
    const leporello = createLeporello(options);
    const after = openAgent(leporello, saved);
    for (let at = 15; at < 30; at++) await after.go(turn(at));
    expect(after.folds()).toBeGreaterThan(0);
    const [summary = '', ...others] = summariesIn(after.state());
    expect(others).toEqual([]);
    const [first] = summary.match(/mem_[0-9a-z]{16}/g) ?? [];
    expect(await leporello.readMemory(JSON.stringify({ id: first, query: 'Demand 0' }))).toContain(
      'Demand 0',
    );
    expect(await leporello.readMemory(JSON.stringify({ id: first }), { tenant: 'another' })).toMatch(
      /^No mem/,
    );
  });

  it('keeps the task of one long turn, however many summaries follow', async () => {
    const agent = openAgent(createLeporello(kept()));
    await agent.go([{ user: 'Check all tables.' }]);
    for (let at = 0; at < 40; at++) await agent.go(turn(at).slice(1));
    expect(agent.folds()).toBeGreaterThan(2);
    expect(textsOf(agent.state())[0]).toBe('Check all tables.');
    expect(summariesIn(agent.state()).length).toBe(1);
  });

  it('gets its own bytes when nothing is folded, in any format', async () => {
    const leporello = createLeporello(kept());
    const chat = chatBody(turn(0), { tools, model: 'gpt-4o' });
    for (const [codec, body] of [
      [openaiChat, chat],
      [anthropicMessages, asAnthropic(chat)],
    ] as const) {
      const compacted = await leporello.compact({ codec, body });
      expect(compacted.outcome).toEqual({ status: 'untouched', reason: 'no trigger fired' });
      expect(compacted.body).toEqual(body);
    }
  });
});
