/**
 * Public entry `leporello/ai-sdk`: Leporello for the AI SDK, in process. A middleware folds prompts and answers recalls for any language model,
 * also for those that take no `fetch`: gateway strings, Bedrock, Vertex. The messages of the program stay as they are.
 */
import {
  APICallError,
  type LanguageModelMiddleware,
  type PrepareStepFunction,
  type Tool,
  type ToolSet,
  jsonSchema,
} from 'ai';
import { isRecord } from '../conversation/json-scan.ts';
import { isPrivateTool } from '../conversation/turns.ts';
import { type Leporello, partsOf } from '../library/leporello.ts';
import { type SdkMessage, replyBlocks, sdkForm } from './lib/ai-sdk-messages.ts';
import { type AdapterOptions, type OpenModelCall, openModelCall } from './lib/model-call.ts';
import { checkAdapterOptions, checkResultShrinkOptions, checkTools } from './lib/options.ts';
import { type ResultShrinkOptions, resultShrinker } from './lib/shrink-results.ts';
import { definitionOf, frameworkCodec, ownToolNames, ownTools, wireRequest } from './lib/wire-body.ts';

export type { AdapterOptions } from './lib/model-call.ts';
export type { ResultShrinkOptions } from './lib/shrink-results.ts';

type WrapGenerate = NonNullable<LanguageModelMiddleware['wrapGenerate']>;
type WrapStream = NonNullable<LanguageModelMiddleware['wrapStream']>;
type CallOptions = Parameters<WrapGenerate>[0]['params'];
type SdkModel = Parameters<WrapGenerate>[0]['model'];
type Generated = Awaited<ReturnType<WrapGenerate>>;
type Streamed = Awaited<ReturnType<WrapStream>>;
type StreamPart = Streamed['stream'] extends ReadableStream<infer Part> ? Part : never;
type SdkUsage = Generated['usage'];

/**
 * Folds the prompts of a model and answers its recalls inside the reply, plain and streamed.
 *
 * @example
 * const model = wrapLanguageModel({ model: gateway('anthropic/claude-sonnet-5'), middleware: leporelloMiddleware(createLeporello()) });
 */
export function leporelloMiddleware(
  leporello: Leporello,
  options: AdapterOptions = {},
): LanguageModelMiddleware {
  partsOf(leporello);
  checkAdapterOptions(options);
  return {
    async wrapGenerate({ params, model }) {
      const call = await openCall(leporello, options, { params, model }, (folded) =>
        model.doGenerate(folded),
      );
      const rounds: Generated[] = [];
      for (let reply: Generated | undefined = call.reply; reply; ) {
        rounds.push(reply);
        reply = await call.next(roundOf(reply, ownToolNames(call.recallTool)));
      }
      return joined(rounds, ownToolNames(call.recallTool));
    },
    async wrapStream({ params, model }) {
      const call = await openCall(leporello, options, { params, model }, (folded) => model.doStream(folded));
      const source = { reader: call.reply.stream.getReader(), isCancelled: false };
      return { ...call.reply, stream: streamOf(relay(call, source), source) };
    },
  };
}

function openCall<Reply>(
  leporello: Leporello,
  options: AdapterOptions,
  { params, model }: { readonly params: CallOptions; readonly model: SdkModel },
  send: (params: CallOptions) => PromiseLike<Reply>,
): Promise<OpenModelCall<Reply>> {
  const { prompt, tools = [], maxOutputTokens, abortSignal } = params;
  const definitions = tools.map((tool) =>
    definitionOf(
      tool.type === 'function' ? tool : { type: tool.id.replace(/^.*\./, ''), name: tool.name, ...tool.args },
    ),
  );
  return openModelCall<SdkMessage, Reply>(
    leporello,
    {
      request: { model: model.modelId, messages: prompt, tools: definitions, maxOutputTokens },
      form: sdkForm,
      upstream: model.provider,
      retries: { signal: abortSignal ?? new AbortController().signal, spent: asFinal },
      send({ messages, recallTool }) {
        const own = ownTools(recallTool).map(({ name, description, parameters }) => ({
          type: 'function' as const,
          name,
          description,
          inputSchema: parameters,
        }));
        return send({
          ...params,
          prompt: messages as CallOptions['prompt'],
          ...(own.length > 0 && { tools: [...tools, ...own] }),
        });
      },
    },
    options,
  );
}

/** Returns a provider's error as one that the SDK does not retry: it would send the first round again, too, and its retries multiply with ours. */
function asFinal(error: unknown): unknown {
  if (!APICallError.isInstance(error)) return error;
  const fields: ConstructorParameters<typeof APICallError>[0] = error;
  return new APICallError({ ...fields, message: error.message, isRetryable: false, cause: error });
}

type ReplyParts = {
  readonly content: Generated['content'];
  readonly finishReason: Generated['finishReason'];
  readonly usage: SdkUsage;
};

function roundOf({ content, finishReason, usage }: ReplyParts, recallTool: string | undefined) {
  const called = content.flatMap((part) =>
    part.type === 'tool-call' && part.providerExecuted !== true
      ? [{ id: part.toolCallId, name: part.toolName, argumentsJson: part.input }]
      : [],
  );
  return {
    content: replyBlocks(content),
    recalls: called.filter(({ name }) => isPrivateTool(name, recallTool)),
    calls: called.filter(({ name }) => !isPrivateTool(name, recallTool)),
    isComplete: !['length', 'content-filter', 'error', 'interrupted'].includes(finishReason.unified),
    promptTokens: usage.inputTokens.total,
  };
}

/** Joins the rounds of a reply: the program sees one, without the recalls. */
function joined(rounds: readonly Generated[], recallTool: string | undefined): Generated {
  const last = rounds.at(-1)!;
  const content = rounds.flatMap((round) => round.content.filter((part) => !isRecall(part, recallTool)));
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
  recallTool: string | undefined,
): boolean {
  return part.type === 'tool-call' && isPrivateTool(part.toolName, recallTool);
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

/** Yields the parts of all rounds as one stream. Only recalls and the ends of rounds are held back. */
async function* relay(call: OpenModelCall<Streamed>, source: Source): AsyncGenerator<StreamPart> {
  const recallTool = ownToolNames(call.recallTool);
  const finished: Finish[] = [];
  const shown: { readonly type: string }[] = [];
  let isEnded = false;
  try {
    for (let number = 1; ; number++) {
      const round = openRound(number, recallTool);
      for await (const part of partsIn(source.reader)) {
        const visible = round.take(part);
        if (visible) yield visible;
      }
      const { content, finish } = round.end();
      shown.push(...content.filter((part) => !isRecall(part, recallTool)));
      // The provider's stream broke off, or the program cancelled it.
      if (!finish) return;
      finished.push(finish);
      const reply = await call.next(roundOf({ ...finish, content }, recallTool));
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

type OpenText = { readonly type: 'text' | 'reasoning'; text: string; providerMetadata?: object | undefined };

/** Reads one round of a stream: what the program sees of each part, and the content of the reply. */
function openRound(number: number, recallTool: string | undefined) {
  const content: (Generated['content'][number] | OpenText)[] = [];
  const open = new Map<string, OpenText>();
  const hidden = new Set<string>();
  let finish: Finish | undefined;
  /** Ids of texts are unique within one round only. */
  const idOf = (id: string) => (number === 1 ? id : `${number}:${id}`);

  function take(part: StreamPart): StreamPart | undefined {
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
        if (!isPrivateTool(part.toolName, recallTool)) return part;
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
        return isRecall(part, recallTool) ? undefined : part;
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

  return { take, end: () => ({ content: content as Generated['content'], finish }) };
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

// Folding between the steps of a loop, and tools

/**
 * Folds the messages of a loop between its steps, for models that cannot be wrapped. The loop continues with the folded messages; the messages
 * that it returns stay complete. Give the loop the tools of `leporelloTools`, so that the model can read what was folded.
 *
 * @example
 * generateText({ model, messages, tools: { ...tools, ...leporelloTools(leporello) }, prepareStep: leporelloPrepareStep(leporello) });
 */
export function leporelloPrepareStep<Tools extends ToolSet>(
  leporello: Leporello,
  options: Pick<AdapterOptions, 'tenant' | 'onPrepared'> = {},
): PrepareStepFunction<Tools> {
  const { tenant, onPrepared } = checkAdapterOptions(options);
  const tools = [definitionOf(leporello.recallTool)];
  return async ({ messages, model, instructions }) => {
    const system = typeof instructions === 'string' ? instructions : JSON.stringify(instructions);
    const modelId = typeof model === 'string' ? model : model.modelId;
    const wire = wireRequest<SdkMessage>({ model: modelId, messages, tools, system }, sdkForm);
    const prepared = await leporello.compact({
      codec: frameworkCodec,
      body: wire.body,
      ...(tenant !== undefined && { tenant }),
    });
    onPrepared?.(prepared);
    if (prepared.outcome.status !== 'compacted') return undefined;
    return { messages: wire.read(prepared.body).messages as typeof messages };
  };
}

/** The tool by which the model of a loop with `leporelloPrepareStep` reads what was folded. */
export function leporelloTools(
  leporello: Leporello,
  settings: Pick<AdapterOptions, 'tenant' | 'maxRecallTokens'> = {},
): Record<string, Tool<Record<string, unknown>, string>> {
  const { tenant, maxRecallTokens: maxTokens } = checkAdapterOptions(settings);
  const { name, description, parameters } = leporello.recallTool;
  const options = { ...(tenant !== undefined && { tenant }), ...(maxTokens !== undefined && { maxTokens }) };
  return {
    [name]: {
      description,
      inputSchema: jsonSchema<Record<string, unknown>>(parameters),
      execute: (input) => leporello.readMemory(JSON.stringify(input), options),
    },
  };
}

type Executable = { execute(input: unknown, how: ExecuteOptions): unknown };
type ExecuteOptions = { readonly toolCallId: string; readonly messages: readonly SdkMessage[] };

/**
 * Returns tools whose results are shortened when they would fill the window: the items of a list that are least relevant to the user's question
 * first, from 85 % of the window down to 80 %. Other results, and results that fit, stay as they are.
 */
export function shrinkResults<Tools extends ToolSet>(
  leporello: Leporello,
  tools: Tools,
  options: ResultShrinkOptions = {},
): Tools {
  const shrink = resultShrinker(leporello, checkResultShrinkOptions(options));
  const wrapped = Object.entries(checkTools(tools)).map(([name, tool]) => {
    if (!tool.execute) return [name, tool];
    const run = (input: unknown, how: ExecuteOptions): unknown => {
      const running = (tool as Executable).execute(input, how);
      // A tool that reports its progress yields several results.
      if (isRecord(running) && Symbol.asyncIterator in running) return running;
      const request = { model: undefined, messages: how.messages, tools: [] };
      const body = () => wireRequest<SdkMessage>(request, sdkForm).body;
      return Promise.resolve(running).then((result) =>
        // The tool writes the text for the model itself, of a result in the form that it knows.
        tool.toModelOutput && typeof result !== 'string'
          ? result
          : shrink({ callId: how.toolCallId, tool: name, result, body }),
      );
    };
    // A tool may be an object of a class, and the SDK keeps members of it that are not enumerable.
    const own = { ...Object.getOwnPropertyDescriptors(tool), execute: { value: run, enumerable: true } };
    return [name, Object.create(Object.getPrototypeOf(tool) as object, own) as Tool];
  });
  return Object.fromEntries(wrapped) as Tools;
}
