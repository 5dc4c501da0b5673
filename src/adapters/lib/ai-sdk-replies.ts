/**
 * Reads the replies of models of the AI SDK, plain and streamed: what the engine records of them, and what the program sees of several rounds. Pure
 * except for the streams.
 */
import type { LanguageModelMiddleware } from 'ai';
import type { PrivateTools } from '../../conversation/turns.ts';
import { replyBlocks } from './ai-sdk-messages.ts';
import { type ModelRound, type OpenModelCall, beginsLikeJson } from './model-call.ts';

export type Generated = Awaited<ReturnType<NonNullable<LanguageModelMiddleware['wrapGenerate']>>>;
export type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware['wrapStream']>>>;
type StreamPart = Streamed['stream'] extends ReadableStream<infer Part> ? Part : never;
type SdkUsage = Generated['usage'];

type ReplyParts = {
  readonly content: Generated['content'];
  readonly finishReason: Generated['finishReason'];
  readonly usage: SdkUsage;
};

/** Reads one reply of the model. `hidesText`: the program does not see its texts if another reply follows after a recall. */
export function roundOf({ content, finishReason, usage }: ReplyParts, hidesText: boolean): ModelRound {
  const calls = content.flatMap((part) =>
    part.type === 'tool-call' && part.providerExecuted !== true
      ? [{ id: part.toolCallId, name: part.toolName, argumentsJson: part.input }]
      : [],
  );
  return {
    content: replyBlocks(content),
    hidesText,
    calls,
    isComplete: !['length', 'content-filter', 'error', 'interrupted'].includes(finishReason.unified),
    promptTokens: usage.inputTokens.total,
  };
}

/** Joins the rounds of a reply: the program sees one, without the recalls. `inLast`: with the text of the last round only. */
export function joined(rounds: readonly Generated[], privateTools: PrivateTools, inLast: boolean): Generated {
  const last = rounds.at(-1)!;
  const content = rounds.flatMap((round) =>
    round.content.filter(
      (part) => !isRecall(part, privateTools) && !(inLast && round !== last && part.type === 'text'),
    ),
  );
  if (rounds.length === 1 && content.length === last.content.length) return last;
  return {
    ...last,
    content,
    warnings: rounds[0]!.warnings,
    usage: usageOf(rounds),
    finishReason: finishOf(last.finishReason, content),
  };
}

function isRecall(
  part: { readonly type: string; readonly toolName?: string },
  privateTools: PrivateTools,
): boolean {
  return part.type === 'tool-call' && privateTools.has(part.toolName ?? '');
}

/** A reply whose only calls were recalls gives the program nothing to run. */
function finishOf(
  reason: Generated['finishReason'],
  content: readonly { readonly type: string }[],
): Generated['finishReason'] {
  const isStopped = reason.unified === 'tool-calls' && !content.some(({ type }) => type === 'tool-call');
  return isStopped ? { ...reason, unified: 'stop' } : reason;
}

function usageOf(rounds: readonly { readonly usage: SdkUsage }[]): SdkUsage {
  if (rounds.length === 1) return rounds[0]!.usage;
  const sum = (pick: (usage: SdkUsage) => number | undefined) => {
    const known = rounds.flatMap(({ usage }) => pick(usage) ?? []);
    return known.length === 0 ? undefined : known.reduce((one, other) => one + other);
  };
  return {
    inputTokens: {
      total: sum(({ inputTokens }) => inputTokens.total),
      noCache: sum(({ inputTokens }) => inputTokens.noCache),
      cacheRead: sum(({ inputTokens }) => inputTokens.cacheRead),
      cacheWrite: sum(({ inputTokens }) => inputTokens.cacheWrite),
    },
    outputTokens: {
      total: sum(({ outputTokens }) => outputTokens.total),
      text: sum(({ outputTokens }) => outputTokens.text),
      reasoning: sum(({ outputTokens }) => outputTokens.reasoning),
    },
  };
}

// Streams

type Finish = Extract<StreamPart, { readonly type: 'finish' }>;

/** The provider's stream of the running round. */
type Source = { reader: ReadableStreamDefaultReader<StreamPart>; isCancelled: boolean };

/** Returns the parts of all rounds as one stream. Only recalls and the ends of rounds are held back, and in a reply with JSON all text that may be none. */
export function shownStream(call: OpenModelCall<Streamed>, wantsJson: boolean): ReadableStream<StreamPart> {
  const source = { reader: call.reply.stream.getReader(), isCancelled: false };
  return streamOf(relay(call, source, wantsJson), source);
}

async function* relay(
  call: OpenModelCall<Streamed>,
  source: Source,
  wantsJson: boolean,
): AsyncGenerator<StreamPart> {
  const { privateTools } = call;
  const finished: Finish[] = [];
  const shown: { readonly type: string }[] = [];
  let isEnded = false;
  try {
    for (let number = 1; ; number++) {
      const round = openRound(number, privateTools, wantsJson && privateTools.size > 0);
      for await (const part of partsIn(source.reader)) yield* round.take(part);
      const { content, finish, held, isHolding } = round.end();
      shown.push(...content.filter((part) => !isRecall(part, privateTools)));
      // The provider's stream broke off, or the program cancelled it.
      if (!finish) return yield* held;
      finished.push(finish);
      const reply = await call.next(roundOf({ ...finish, content }, isHolding));
      yield* reply ? held.filter((part) => !isText(part)) : held;
      if (!reply) break;
      source.reader = reply.stream.getReader();
      if (source.isCancelled) await source.reader.cancel();
    }
    isEnded = true;
    const last = finished.at(-1)!;
    yield { ...last, usage: usageOf(finished), finishReason: finishOf(last.finishReason, shown) };
  } finally {
    if (!isEnded) await call.left();
  }
}

function isText({ type }: StreamPart): boolean {
  return type === 'text-start' || type === 'text-delta' || type === 'text-end';
}

type OpenText = { readonly type: 'text' | 'reasoning'; text: string; providerMetadata?: object | undefined };

/**
 * Reads one round of a stream: what the program sees of each part, and the content of the reply. `holdsText`: text that does not begin like JSON is held
 * back until a call of the program follows, or the end of the round tells that the reply does not go on after a recall.
 */
function openRound(number: number, privateTools: PrivateTools, holdsText: boolean) {
  const content: (Generated['content'][number] | OpenText)[] = [];
  const open = new Map<string, OpenText>();
  const hidden = new Set<string>();
  /** The provider's own events that no part was read from yet. They tell of recalls, too. */
  const raws: StreamPart[] = [];
  let hasRecall = false;
  let finish: Finish | undefined;
  const held: StreamPart[] = [];
  let heldText = '';
  let isHolding = holdsText;
  /** Ids of texts are unique within one round only. */
  const idOf = (id: string) => (number === 1 ? id : `${number}:${id}`);

  function take(part: StreamPart): readonly StreamPart[] {
    if (part.type === 'raw' && privateTools.size > 0) {
      // Events of later rounds would begin a second message.
      if (number === 1 && !hasRecall) raws.push(part);
      return [];
    }
    const visible = shownOf(part);
    if (hasRecall) raws.length = 0;
    if (!visible) return [];
    const ready = [...raws.splice(0), visible];
    if (!isHolding) return ready;
    if (part.type === 'text-delta') heldText += part.delta;
    isHolding = !part.type.startsWith('tool-') && !beginsLikeJson(heldText);
    // Parts behind a text wait with it, so that they keep their order.
    if (isText(part) || held.length > 0 || !isHolding) held.push(...ready);
    else return ready;
    return isHolding ? [] : held.splice(0);
  }

  function shownOf(part: StreamPart): StreamPart | undefined {
    switch (part.type) {
      case 'stream-start':
      case 'response-metadata':
        return number === 1 ? part : undefined;
      case 'text-start':
      case 'reasoning-start': {
        const text: OpenText = { type: part.type === 'text-start' ? 'text' : 'reasoning', text: '' };
        text.providerMetadata = part.providerMetadata;
        open.set(`${text.type} ${part.id}`, text);
        content.push(text);
        return { ...part, id: idOf(part.id) };
      }
      case 'text-delta':
      case 'reasoning-delta':
      case 'text-end':
      case 'reasoning-end': {
        const text = open.get(`${part.type.split('-')[0]!} ${part.id}`);
        if (text && 'delta' in part) text.text += part.delta;
        if (text && part.providerMetadata) text.providerMetadata = part.providerMetadata;
        return { ...part, id: idOf(part.id) };
      }
      case 'tool-input-start':
        if (!privateTools.has(part.toolName)) return part;
        hasRecall = true;
        hidden.add(part.id);
        return undefined;
      case 'tool-input-delta':
      case 'tool-input-end':
        return hidden.has(part.id) ? undefined : part;
      case 'finish':
        finish = part;
        return undefined;
      case 'tool-call':
        content.push(part);
        hasRecall ||= isRecall(part, privateTools);
        return isRecall(part, privateTools) ? undefined : part;
      case 'tool-result':
      case 'file':
      case 'reasoning-file':
      case 'custom':
      case 'source':
      case 'tool-approval-request':
        content.push(part);
        return part;
      case 'error':
      case 'ping':
      case 'raw':
        return part;
    }
  }

  return {
    take,
    end() {
      const read = content as Generated['content'];
      return { content: read, finish, held: [...held, ...raws], isHolding };
    },
  };
}

async function* partsIn(reader: Source['reader']): AsyncGenerator<StreamPart> {
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isDone = done;
      if (done) return;
      yield value;
    }
  } finally {
    // A program that stops reading ends the provider's stream.
    if (!isDone) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}

function streamOf(parts: AsyncGenerator<StreamPart>, source: Source): ReadableStream<StreamPart> {
  return new ReadableStream<StreamPart>(
    {
      async pull(controller) {
        const { done, value } = await parts.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel(reason) {
        source.isCancelled = true;
        // The provider may be silent, or nothing may have been read yet.
        await source.reader.cancel(reason).catch(() => undefined);
        await parts.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
