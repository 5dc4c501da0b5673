/** A program that uses each value of the published package. consumer.laws.test.ts compiles it as users do; it is never run. */
import {
  cacheRent,
  clipNewest,
  coldCache,
  compressItems,
  createLeporello,
  createModelSummarizer,
  type Demand,
  defaultStrategies,
  defaultTriggers,
  dropFailedCalls,
  dropOldest,
  dropRecalls,
  type Edit,
  findSubgoals,
  type FoldView,
  foldSubgoals,
  inMemoryStore,
  LeporelloError,
  type Leporello,
  type LeporelloOptions,
  messageCount,
  mustFit,
  type NeutralStep,
  offloadMedia,
  offloadResults,
  openTrajectory,
  type Prepared,
  type Store,
  type Strategy,
  stubArguments,
  type Summarizer,
  summarizeHistory,
  tokenBudget,
  type Trajectory,
  type Trigger,
  type TriggerState,
  windowFraction,
} from 'leporello';
import { anthropicMessages } from 'leporello/codecs/anthropic-messages';
import { geminiFor } from 'leporello/codecs/gemini';
import { openaiChat } from 'leporello/codecs/openai-chat';
import { openaiResponses } from 'leporello/codecs/openai-responses';
import { agentsItems, aiSdkMessages, wireBody } from 'leporello/codecs/values';
import { langchainMessages } from 'leporello/codecs/values/langchain';

/** Drops nothing: a strategy of the user's own. */
export const nothing: Strategy = {
  name: 'nothing',
  reach: 'history',
  propose: (view: FoldView): readonly Edit[] => (view.isForced ? [] : []),
};

/** Folds every conversation that is longer than 100 messages: a trigger of the user's own. */
export const longTalk: Trigger = {
  name: 'long-talk',
  demand({ messages }: TriggerState): Demand | undefined {
    if (messages <= 100) return undefined;
    return { trigger: 'long-talk', goal: { unit: 'messages', target: 40 }, atMost: undefined, force: false };
  },
};

const options: LeporelloOptions = {
  models: { 'gpt-4o': { windowTokens: 8_000 } },
  usdPerMillionTokens: { 'my-*': { input: 1, output: 5 } },
  triggers: [
    mustFit(),
    windowFraction({ triggerShare: 0.8, targetShare: 0.5 }),
    tokenBudget({ triggerTokens: 110_000, targetTokens: 40_000 }),
    messageCount({ targetMessages: 4 }),
    coldCache({ idleMs: 300_000 }),
    cacheRent({ keepForRequests: 8 }),
    longTalk,
  ],
  strategies: [
    dropFailedCalls(),
    offloadMedia({ keepNewest: 2 }),
    offloadResults({ minResultBytes: 2_000 }),
    stubArguments(),
    dropRecalls(),
    foldSubgoals({ preset: 'debugging' }),
    summarizeHistory({ maxTokens: 1_000, isWrittenAhead: true }),
    dropOldest({ reach: 'everything' }),
    compressItems(),
    nothing,
    clipNewest(),
  ],
};
const leporello = createLeporello(options);

const codecs = [
  openaiChat,
  openaiResponses,
  anthropicMessages,
  geminiFor({ model: 'gemini-3-pro', streaming: true }),
];

export async function send(body: Uint8Array): Promise<Prepared> {
  const codec = codecs[0]!;
  let prepared = await leporello.prepare({ codec, body });
  if (prepared.outcome.status === 'failed') console.warn(prepared.outcome.reason);
  const post = (bytes: Uint8Array): Promise<Response> =>
    fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body: new Uint8Array(bytes) });
  let response = await post(prepared.body);
  if (!response.ok) {
    const refusal = { status: response.status, body: await response.text() };
    prepared = await leporello.prepare({ codec, body, refusal });
    response = await post(prepared.body);
  }
  const reply = (await response.json()) as { usage?: { prompt_tokens: number } };
  prepared.learn({ promptTokens: reply.usage?.prompt_tokens });
  if (prepared.recallTool !== undefined) {
    const answer: string = await leporello.recall(prepared, '{"id":"mem_0123456789abcdef"}');
    console.log(prepared.recallTool.name, answer, prepared.report.tokensAfter);
  }
  return prepared;
}

/** Folds messages of each framework, and the object that a provider's SDK takes. The result has the type of the request. */
export async function fold(messages: { readonly role: string; readonly content: string }[]): Promise<number> {
  let count = 0;
  for (const values of [aiSdkMessages, agentsItems, langchainMessages]) {
    const { codec, body, read } = values.write({ model: 'gpt-4o', messages, tools: [] });
    const folded: typeof messages = read((await leporello.prepare({ codec, body })).body).messages;
    count += folded.length;
  }
  const request = { model: 'gpt-4o', messages, temperature: 0 };
  const { codec, body, read } = wireBody(openaiChat).write(request);
  const folded: typeof request = read((await leporello.prepare({ codec, body })).body);
  return count + folded.messages.length + folded.temperature;
}

export function isFull(error: unknown): boolean {
  return LeporelloError.isInstance(error) && error.code === 'store-failed';
}

export function withStore(store: Store = inMemoryStore()): Leporello {
  return createLeporello({
    store,
    secret: new Uint8Array(32),
    strategies: [nothing, ...defaultStrategies({ preset: 'production' })],
    triggers: defaultTriggers({ tokenBudget: false }),
  });
}

export async function shorten(
  text: string,
  ask: (prompt: { readonly system: string; readonly text: string }) => Promise<string>,
): Promise<string> {
  const summarizer: Summarizer = createModelSummarizer({ model: 'small', ask, maxInputTokens: 8_000 });
  const budget = { tokens: 60_000, results: 8 };
  return (await leporello.compressResult({ text, budget, summarizer, waitMs: 0 })).text;
}

export async function replay(steps: readonly NeutralStep[]): Promise<Trajectory> {
  const trajectory = await openTrajectory({ goal: 'Fix the build', budgetTokens: 8_000, newestShare: 0.5 });
  for (const { goal } of findSubgoals(steps)) trajectory.startSubgoal(goal);
  return trajectory;
}
