/**
 * Measures the errors of counts against the usage that providers reported for recorded conversations. OpenAI's recordings are complete and its
 * tokenizer is public, so whole prompts and their growth are compared. Claude's recordings lack system prompt and tools, so only growth is.
 */
import type { ReadBlock } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import { conversationCounter } from '../../src/tokens/count-conversation.ts';
import { loadTokenCounter } from '../../src/tokens/load-counter.ts';
import { median, quantile, round, sum } from './arithmetic.ts';
import { fitLeastRelativeError } from './fit.ts';
import type { ChatMessage, Recorded } from './recorded.ts';

type Row = Readonly<Record<string, string | number>>;
type Count = (text: string) => number;

/** Compares the exact counter, including message overhead and tools, with reported usage. */
export async function wholePrompts(recorded: readonly Recorded[]): Promise<readonly Row[]> {
  const errors: Record<string, number[]> = {};
  for (const conversation of recorded) {
    if (conversation.source !== 'tau2-bench' || conversation.meta.usage === undefined) continue;
    const { totalBefore, countRange } = await countingOf(
      { ...conversation, tools: withTitles(conversation.tools) },
      'gpt-4.1',
    );
    const [first, ...later] = conversation.meta.usage;
    let [from = 0, prompt = 0] = first ?? [];
    (errors['whole prompt'] ??= []).push(totalBefore(from) / prompt - 1);
    for (const [to = 0, next = 0] of later) {
      (errors['growth per turn'] ??= []).push(countRange(from, to) / (next - prompt) - 1);
      [from, prompt] = [to, next];
    }
  }
  return Object.entries(errors).map(([measured, list]) => ({ measured, ...errorRow(list) }));
}

/**
 * Adds the titles that pydantic gave to every property in the tools that were sent: its name in words. The recorded definitions were rebuilt
 * from signatures and docstrings and lack them.
 */
function withTitles(tools: unknown): unknown {
  if (!Array.isArray(tools)) return tools;
  return (tools as readonly { readonly function: ToolFunction }[]).map((tool) => {
    const { parameters, ...rest } = tool.function;
    const properties = Object.entries(parameters.properties).map(
      ([name, property]) => [name, { ...property, title: titleOf(name) }] as const,
    );
    const titled = { ...parameters, title: 'parameters', properties: Object.fromEntries(properties) };
    return { ...tool, function: { ...rest, parameters: titled } };
  });
}

type ToolFunction = { readonly parameters: { readonly properties: Readonly<Record<string, object>> } };

function titleOf(name: string): string {
  return name.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => ` ${letter.toUpperCase()}`).trim();
}

/** Returns counting functions for a conversation as a request to `model`. */
export async function countingOf(conversation: Recorded, model: string) {
  const counter = conversationCounter(await loadTokenCounter(model));
  const { messages, tools } = conversation;
  const body = new TextEncoder().encode(
    JSON.stringify({ model, messages, ...(tools === undefined ? {} : { tools }) }),
  );
  const view = openaiChat.read(body, { digest: sha256, blocks: new Map<string, ReadBlock>() });
  const countRange = (from: number, to: number): number => {
    let tokens = 0;
    for (let index = from; index < to; index++) tokens += counter.message(view, index);
    return tokens;
  };
  return {
    countRange,
    /** Counts the prompt that ends before the message with this index. */
    totalBefore: (index: number) => counter.total(view) - countRange(index, messages.length),
  };
}

/** The growth from one prompt to the next: the reported tokens, and features of the messages in between. */
type Growth = {
  readonly fitted: boolean;
  readonly tokens: number;
  readonly counted: number;
  readonly base: number;
  readonly characters: number;
  readonly wrappings: number;
  readonly digits: number;
  readonly lines: number;
  readonly capitals: number;
  readonly wide: number;
};

export async function growthErrors(recorded: readonly Recorded[], ours: Count): Promise<readonly Row[]> {
  const growths: Growth[] = [];
  for (const conversation of recorded) {
    if (conversation.source === 'entire-cli-sessions' && !conversation.meta.microcompactions?.length) {
      growths.push(...(await growthsOf(conversation, ours)));
    }
  }
  const fitted = growths.filter((growth) => growth.fitted);
  const judged = growths.filter((growth) => !growth.fitted);
  const fit = (...features: readonly ((growth: Growth) => number)[]) =>
    fitLeastRelativeError(fitted, features);
  const estimators: Readonly<Record<string, (growth: Growth) => number>> = {
    'characters / 4': (growth) => growth.characters / 4,
    'characters / 2.76': (growth) => growth.characters / 2.76,
    o200k: (growth) => growth.base,
    'o200k x 1.18': (growth) => growth.base * 1.18,
    'Leporello: o200k x 1.18, 22 per wrapping': (growth) => growth.counted,
    'fit: characters, wrapping': fit(
      ({ characters }) => characters,
      ({ wrappings }) => wrappings,
    ),
    'fit: o200k, wrapping': fit(
      ({ base }) => base,
      ({ wrappings }) => wrappings,
    ),
    'fit: o200k, wrapping, digits, lines, capitals, wide': fit(
      ({ base }) => base,
      ({ wrappings }) => wrappings,
      ({ digits }) => digits,
      ({ lines }) => lines,
      ({ capitals }) => capitals,
      ({ wide }) => wide,
    ),
  };
  return Object.entries(estimators).map(([estimator, estimate]) => {
    const errorsFrom = (minTokens: number) =>
      judged
        .filter(({ tokens }) => tokens >= minTokens)
        .map((growth) => estimate(growth) / growth.tokens - 1);
    return { estimator, ...errorRow(errorsFrom(0)), ...errorRow(errorsFrom(2_000), ' (2,000+)') };
  });
}

/** Returns the growths by calls and results. Growths with user messages are left out, because their reminders were not recorded. */
async function growthsOf(conversation: Recorded, ours: Count): Promise<readonly Growth[]> {
  const { countRange } = await countingOf(conversation, conversation.meta.model ?? '');
  const growths: Growth[] = [];
  const session = conversation.id.slice(0, conversation.id.lastIndexOf('.'));
  const fitted = sha256(new TextEncoder().encode(session)).charCodeAt(0) % 2 === 0;
  let previous: readonly number[] | undefined;
  for (const row of conversation.meta.usage ?? []) {
    const [to = 0, ...prompt] = row.slice(0, 4);
    const [from = 0, ...before] = previous ?? [];
    const tokens = sum(prompt) - sum(before);
    const between = conversation.messages.slice(from, to);
    if (previous !== undefined && tokens > 0 && between.every(({ role }) => role !== 'user')) {
      const text = between.flatMap(textsOfMessage).join('\n');
      if (!text.includes('[image]')) {
        growths.push({ fitted, tokens, counted: countRange(from, to), ...featuresOf(between, text, ours) });
      }
    }
    previous = row.slice(0, 4);
  }
  return growths;
}

function textsOfMessage({ content, tool_calls = [] }: ChatMessage): readonly string[] {
  const calls = tool_calls.flatMap(({ function: { name, arguments: json } }) => [name, json]);
  return typeof content === 'string' ? [content, ...calls] : calls;
}

function featuresOf(between: readonly ChatMessage[], text: string, ours: Count) {
  const matches = (pattern: RegExp): number => text.match(pattern)?.length ?? 0;
  return {
    base: sum(between.flatMap(textsOfMessage).map(ours)),
    characters: text.length,
    wrappings: sum(
      between.map((message) => 1 + (message.tool_calls?.length ?? 0) + (message.role === 'tool' ? 1 : 0)),
    ),
    digits: matches(/\d/g),
    lines: matches(/\n/g),
    capitals: matches(/[A-Z]/g),
    wide: matches(/[^\0-\x7f]/g),
  };
}

/** Returns errors in percent: the median with its sign (bias), then the median and the 95th percentile of the absolute errors. */
function errorRow(errors: readonly number[], suffix = ''): Row {
  const sizes = errors.map(Math.abs);
  return {
    [`n${suffix}`]: errors.length,
    [`bias %${suffix}`]: round(100 * median(errors), 1),
    [`median %${suffix}`]: round(100 * median(sizes), 1),
    [`p95 %${suffix}`]: round(100 * quantile(sizes, 0.95), 1),
  };
}
