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
import { type Leporello, partsOf } from '../library/leporello.ts';
import { type SdkMessage, sdkForm } from './lib/ai-sdk-messages.ts';
import { type Generated, joined, roundOf, shownStream } from './lib/ai-sdk-replies.ts';
import { type AdapterOptions, type OpenModelCall, memoryReader, openModelCall } from './lib/model-call.ts';
import { checkAdapterOptions, checkResultShrinkOptions, checkTools } from './lib/options.ts';
import { type ResultShrinkOptions, resultShrinker } from './lib/shrink-results.ts';
import { definitionOf, frameworkCodec, wireRequest } from './lib/wire-body.ts';

export type { AdapterOptions } from './lib/model-call.ts';
export type { ResultShrinkOptions } from './lib/shrink-results.ts';

type WrapGenerate = NonNullable<LanguageModelMiddleware['wrapGenerate']>;
type CallOptions = Parameters<WrapGenerate>[0]['params'];
type SdkModel = Parameters<WrapGenerate>[0]['model'];

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
        reply = await call.next(roundOf(reply, wantsJson(params)));
      }
      return joined(rounds, call.privateTools, wantsJson(params));
    },
    async wrapStream({ params, model }) {
      const call = await openCall(leporello, options, { params, model }, (folded) => model.doStream(folded));
      return { ...call.reply, stream: shownStream(call, wantsJson(params)) };
    },
  };
}

/** True for a request of an object. All text of its reply is read as JSON, so a text ahead of a recall would break it. */
function wantsJson({ responseFormat }: CallOptions): boolean {
  return responseFormat?.type === 'json';
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
      send({ messages, addedTools }) {
        const added = addedTools.map(({ name, description, parameters }) => ({
          type: 'function' as const,
          name,
          description,
          inputSchema: parameters,
        }));
        return send({
          ...params,
          prompt: messages as CallOptions['prompt'],
          ...(added.length > 0 && { tools: [...tools, ...added] }),
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

/** Returns the tool `read_memory`, with which the model of a loop with `leporelloPrepareStep` reads what was folded. */
export function leporelloTools(
  leporello: Leporello,
  settings: Pick<AdapterOptions, 'tenant' | 'maxRecallTokens'> = {},
): Record<string, Tool<Record<string, unknown>, string>> {
  const execute = memoryReader(leporello, checkAdapterOptions(settings));
  const { name, description, parameters } = leporello.recallTool;
  return {
    [name]: {
      description,
      inputSchema: jsonSchema<Record<string, unknown>>(parameters),
      execute,
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
