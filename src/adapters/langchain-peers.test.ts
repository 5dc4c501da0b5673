/** Plays one conversation with LangChain's own middlewares and with ours, and compares what is left of it. docs/defects.md has the results. */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  ToolMessage,
  trimMessages,
} from '@langchain/core/messages';
import {
  type AgentMiddleware,
  ClearToolUsesEdit,
  contextEditingMiddleware,
  countTokensApproximately,
  createAgent,
  summarizationMiddleware,
  tool,
} from 'langchain';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { foldingEarly, log } from '../../test/support/folded-logs.ts';
import { ScriptedChatModel } from '../../test/support/scripted-chat-model.ts';
import { createLeporello } from '../library/leporello.ts';
import { leporelloMiddleware, leporelloModel } from './langchain.ts';

const read = tool(({ at }: { at: number }) => log(at), {
  name: 'read',
  schema: z.object({ at: z.number() }),
});

/** Reads 30 logs. Returns the state, and the last request to the model. */
async function readLogs(middleware: AgentMiddleware) {
  const model = new ScriptedChatModel((_, index) =>
    index < 30
      ? { text: '', calls: [{ id: `c${index}`, name: 'read', args: { at: index } }] }
      : { text: 'Done.' },
  );
  const agent = createAgent({ model, tools: [read], middleware: [middleware] });
  const start = { messages: [new HumanMessage('Read all. Never touch the billing service.')] };
  const { messages } = await agent.invoke(start, { recursionLimit: 200 });
  return { messages, asked: model.asked.at(-1)! };
}

const resultsIn = (messages: readonly BaseMessage[]) =>
  messages.filter((message) => ToolMessage.isInstance(message)).map(({ content }) => content);
const originals = Array.from({ length: 30 }, (_, at) => log(at));
const ours = () => leporelloMiddleware(createLeporello(foldingEarly));
const theirs = (middleware: unknown) => middleware as AgentMiddleware;

describe('the state of an agent', () => {
  it('keeps every result; with contextEditingMiddleware half of them are gone', async () => {
    const editing = contextEditingMiddleware({
      edits: [new ClearToolUsesEdit({ trigger: { tokens: 6_000 }, keep: { messages: 3 } })],
    });
    const cleared = resultsIn((await readLogs(theirs(editing))).messages);
    expect(cleared.filter((content) => content === '[cleared]').length).toBe(15);
    const { messages, asked } = await readLogs(ours());
    expect(resultsIn(messages)).toEqual(originals);
    expect(JSON.stringify(asked)).toContain('[Folded');
  });

  it('keeps the words of the user; after a summarizer that fails, they are gone', async () => {
    const failing = new ScriptedChatModel(() => {
      throw new Error('429 rate limit');
    });
    const options = { model: failing, trigger: { messages: 40 }, keep: { messages: 2 } } as never;
    const lost = await readLogs(theirs(summarizationMiddleware(options)));
    expect(JSON.stringify(lost.messages)).not.toContain('Never touch the billing service.');
    const { messages, asked } = await readLogs(ours());
    expect(JSON.stringify(messages)).toContain('Never touch the billing service.');
    expect(JSON.stringify(asked)).toContain('Never touch the billing service.');
  });
});

describe('a call and its result', () => {
  it('stay together; trimMessages begins every other window with a result without its call', async () => {
    const { messages, asked } = await readLogs(ours());
    let orphaned = 0;
    for (let maxTokens = 1; maxTokens <= 60; maxTokens++) {
      const trimmed = await trimMessages(messages, { maxTokens, tokenCounter: (list) => list.length });
      if (ToolMessage.isInstance(trimmed[0])) orphaned++;
    }
    expect(orphaned).toBe(30);
    const calls = new Set(
      asked.flatMap((message) =>
        AIMessage.isInstance(message) ? (message.tool_calls?.map(({ id }) => id) ?? []) : [],
      ),
    );
    const results = asked.filter((message) => ToolMessage.isInstance(message));
    expect(results.length).toBeGreaterThan(0);
    expect(results.filter((message) => !calls.has(message.tool_call_id))).toEqual([]);
  });
});

describe('the tokens of an image', () => {
  it('are counted; countTokensApproximately counts none', async () => {
    // The first bytes of a PNG of 1,024 by 1,024 pixels.
    const header = [
      137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 4, 0, 0, 0, 4, 0, 8, 2, 0, 0, 0,
    ];
    const url = `data:image/png;base64,${btoa(String.fromCharCode(...header, ...Array.from({ length: 3_000 }, () => 0)))}`;
    const image = new HumanMessage({ content: [{ type: 'image_url', image_url: { url } }] });
    const words = new HumanMessage('Look.');
    expect(countTokensApproximately([words, image]) - countTokensApproximately([words])).toBe(0);
    const tokens: number[] = [];
    const model = leporelloModel(
      new ScriptedChatModel(() => ({ text: 'I see.' })),
      createLeporello(foldingEarly),
      {
        onPrepared: ({ report }) => void tokens.push(report.tokensBefore ?? 0),
      },
    );
    for (const messages of [[words], [words, image]]) await model.invoke(messages);
    expect(tokens[1]! - tokens[0]!).toBeGreaterThan(500);
  });
});
