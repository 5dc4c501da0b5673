/**
 * How far our counts are from what providers reported for recorded conversations. One provider's tokenizer is public, so
 * whole prompts and their growth are compared; the other's recordings lack system prompt and tools, so only growth is.
 */
import type { ReadBlock } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import { createConversationCounter } from '../../src/tokens/count-conversation.ts';
import { loadTokenCounter } from '../../src/tokens/load-counter.ts';
import { median, quantile, round, sum } from './arithmetic.ts';
import { fitLeastRelativeError } from './fit.ts';
import type { ChatMessage, Recorded } from './recorded.ts';

type Row = Readonly<Record<string, string | number>>;
type Count = (text: string) => number;

/** The exact counter, wrapping and tools included, beside what the provider reported. */
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
      (errors['growth of a turn'] ??= []).push(countRange(from, to) / (next - prompt) - 1);
      [from, prompt] = [to, next];
    }
  }
  return Object.entries(errors).map(([what, list]) => ({ what, ...errorRow(list) }));
}

/**
 * The recordings' definitions were rebuilt from signatures and docstrings. What was sent came from pydantic, which gives every property a
 * title: its name in words.
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

/** Counts of a conversation as `model` would be sent it. */
export async function countingOf(conversation: Recorded, model: string) {
  const counter = createConversationCounter({ counter: await loadTokenCounter(model) });
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
    /** The prompt that holds the messages before an index. */
    totalBefore: (index: number) => counter.total(view) - countRange(index, messages.length),
  };
}

/** How one prompt differs from the one before: tokens the provider reported, and the messages in between. */
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
    'o200k x 1.18, wrapping 22: ours': (growth) => growth.counted,
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
    const errorsFrom = (least: number) =>
      judged.filter(({ tokens }) => tokens >= least).map((growth) => estimate(growth) / growth.tokens - 1);
    return { estimator, ...errorRow(errorsFrom(0)), ...errorRow(errorsFrom(2_000), ' (2,000+)') };
  });
}

/** Only steps of calls and results: a user's turn brings reminders that were not recorded. */
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

/** Percent: the middle error with its sign, then the median and the 95th percentile of its size. */
function errorRow(errors: readonly number[], suffix = ''): Row {
  const sizes = errors.map(Math.abs);
  return {
    [`n${suffix}`]: errors.length,
    [`bias %${suffix}`]: round(100 * median(errors), 1),
    [`median %${suffix}`]: round(100 * median(sizes), 1),
    [`p95 %${suffix}`]: round(100 * quantile(sizes, 0.95), 1),
  };
}
