/**
 * Public entry `leporello/openai-agents`: Leporello for OpenAI Agents JS, in process. A model around another one folds the items that are sent and
 * answers recalls inside the reply. Runs, sessions and their histories have the complete items and none of the recalls.
 */
import {
  type AgentInputItem,
  type CallModelInputFilter,
  type FunctionTool,
  type Model,
  type ModelProvider,
  Usage,
  tool as functionTool,
} from '@openai/agents';
import { type JsonRecord, isRecord, objectsOf, wordAt } from '../conversation/json-scan.ts';
import type { PrivateTools } from '../conversation/turns.ts';
import { type Leporello, partsOf } from '../library/leporello.ts';
import { itemBlocks, itemForm } from './lib/agents-items.ts';
import {
  type AdapterOptions,
  type ModelRound,
  type OpenModelCall,
  foldedMessages,
  memoryReader,
  openModelCall,
} from './lib/model-call.ts';
import { checkNamedOptions } from './lib/options.ts';
import { definitionOf } from './lib/wire-body.ts';

export { LeporelloSession, type SessionOptions } from './lib/agents-session.ts';
export type { AdapterOptions } from './lib/model-call.ts';

export type AgentsModelOptions = AdapterOptions & {
  /** The name of the model, for its window and its tokens. A model of the Agents SDK does not say it. */
  readonly model?: string;
};

type AgentsRequest = Parameters<Model['getResponse']>[0];
type AgentsReply = Awaited<ReturnType<Model['getResponse']>>;
type AgentsEvent =
  ReturnType<Model['getStreamedResponse']> extends AsyncIterable<infer Event> ? Event : never;
type ReplyDone = Extract<AgentsEvent, { readonly type: 'response_done' }>;

/**
 * Returns a provider whose models fold and recall.
 *
 * @example
 * const runner = new Runner({ modelProvider: leporelloProvider(new OpenAIProvider(), createLeporello()) });
 */
export function leporelloProvider(
  provider: ModelProvider,
  leporello: Leporello,
  options: AdapterOptions = {},
): ModelProvider {
  partsOf(leporello);
  checkNamedOptions(options);
  return {
    async getModel(name) {
      const model = await provider.getModel(name);
      return leporelloModel(model, leporello, { ...(name !== undefined && { model: name }), ...options });
    },
  };
}

/**
 * Returns a model that folds and recalls. A request that continues a conversation kept by the provider goes to the model as it is.
 *
 * @example
 * new Agent({ name: 'Reader', model: leporelloModel(aisdk(myModel), createLeporello(), { model: 'my-model' }) });
 */
export function leporelloModel(model: Model, leporello: Leporello, options: AgentsModelOptions = {}): Model {
  partsOf(leporello);
  checkNamedOptions(options);
  const folding: Model = {
    async getResponse(request) {
      if (isKept(request)) return model.getResponse(request);
      const call = await openCall(leporello, options, request, (folded) => model.getResponse(folded));
      const { privateTools } = call;
      const rounds: AgentsReply[] = [];
      for (let reply: AgentsReply | undefined = call.reply; reply; ) {
        rounds.push(reply);
        reply = await call.next(roundOf(reply));
      }
      const last = rounds.at(-1)!;
      if (rounds.length === 1 && !last.output.some((item) => isRecall(item, privateTools))) return last;
      const output = rounds.flatMap((round) => withoutPrivateTools(round.output, privateTools));
      const usage = rounds.map((round) => round.usage).reduce(addedUsages);
      return { ...withoutPrivateTools(last, privateTools), output, usage };
    },
    getStreamedResponse: (request) =>
      isKept(request) ? model.getStreamedResponse(request) : relay(model, leporello, options, request),
  };
  if (model.getRetryAdvice) folding.getRetryAdvice = (args) => model.getRetryAdvice?.(args);
  return folding;
}

/**
 * Returns a filter for `callModelInputFilter` that folds the input of each model call, for programs that cannot replace the model. Its agents need
 * the tool `leporelloRecallTool`. The run and its session keep the items as they are. Refusals of the provider are not seen here, so nothing is folded
 * harder after one.
 *
 * @example
 * const agent = new Agent({ name: 'Engineer', model: 'gpt-5', tools: [...tools, leporelloRecallTool(leporello)] });
 * await run(agent, 'Go on.', { callModelInputFilter: leporelloInputFilter(leporello) });
 */
export function leporelloInputFilter(
  leporello: Leporello,
  options: AgentsModelOptions = {},
): CallModelInputFilter {
  checkNamedOptions(options);
  const recallTool = leporello.recallTool.name;
  return async function filter({ modelData: { input, instructions }, agent }) {
    // The engine offers the tool itself, under the same name, so that its stubs name it.
    const tools = objectsOf(agent.tools).flatMap((own): readonly JsonRecord[] => {
      return own['type'] === 'function' && own['name'] !== recallTool ? [definitionOf(own)] : [];
    });
    const model = options.model ?? (typeof agent.model === 'string' ? agent.model : undefined);
    const messages = await foldedMessages<AgentInputItem>(
      leporello,
      {
        request: { model, messages: input, tools, system: instructions },
        form: itemForm,
        upstream: 'agents',
      },
      options,
    );
    return { input: [...messages], ...(instructions !== undefined && { instructions }) };
  };
}

/** Returns the tool with which a model reads what `leporelloInputFilter` folded. */
export function leporelloRecallTool(
  leporello: Leporello,
  options: Pick<AdapterOptions, 'tenant' | 'maxRecallTokens'> = {},
): FunctionTool {
  checkNamedOptions(options);
  const { name, description, parameters } = leporello.recallTool;
  return functionTool({
    name,
    description,
    parameters: { required: [], ...parameters, additionalProperties: true } as never,
    strict: false,
    execute: memoryReader(leporello, options),
  });
}

/** True when the provider keeps the history, so that it is not in the request. */
function isKept({ previousResponseId, conversationId }: AgentsRequest): boolean {
  return previousResponseId !== undefined || conversationId !== undefined;
}

function openCall<Reply>(
  leporello: Leporello,
  options: AgentsModelOptions,
  request: AgentsRequest,
  send: (request: AgentsRequest) => PromiseLike<Reply>,
): Promise<OpenModelCall<Reply>> {
  const { input, tools, handoffs, systemInstructions: system, modelSettings } = request;
  const items: readonly AgentInputItem[] =
    typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const definitions: readonly JsonRecord[] = [
    ...objectsOf(tools).map(definitionOf),
    ...handoffs.map(({ toolName, toolDescription, inputJsonSchema }) => ({
      name: toolName,
      description: toolDescription,
      input_schema: inputJsonSchema,
    })),
  ];
  return openModelCall<AgentInputItem, Reply>(
    leporello,
    {
      request: {
        model: options.model,
        messages: items,
        tools: definitions,
        system,
        maxOutputTokens: modelSettings.maxTokens,
      },
      form: itemForm,
      upstream: 'agents',
      send({ messages, addedTools }) {
        const added = addedTools.map(
          ({ name, description, parameters }) =>
            ({
              type: 'function',
              name,
              description,
              parameters,
              strict: false,
            }) as unknown as AgentsRequest['tools'][number],
        );
        return send({
          ...request,
          ...(messages !== items && { input: [...messages] }),
          ...(added.length > 0 && { tools: [...tools, ...added] }),
        });
      },
    },
    options,
  );
}

function isRecall(item: object, privateTools: PrivateTools): boolean {
  const { type, name } = item as JsonRecord;
  return type === 'function_call' && typeof name === 'string' && privateTools.has(name);
}

function roundOf({
  output,
  usage,
}: {
  readonly output: readonly object[];
  readonly usage: { readonly inputTokens: number };
}): ModelRound {
  const called = objectsOf(output).filter(({ type }) => type === 'function_call');
  const calls = called.map((item) => ({
    id: wordAt(item, 'callId') ?? '',
    name: wordAt(item, 'name') ?? '',
    argumentsJson: wordAt(item, 'arguments') ?? '',
  }));
  // Items that the program runs as well, such as commands of a shell or clicks on a screen.
  const others = objectsOf(output)
    .filter(({ type }) => /^(?!function_call$).*_call$/.test(String(type)) && type !== 'hosted_tool_call')
    .map((item) => ({
      id: wordAt(item, 'callId') ?? '',
      name: wordAt(item, 'type') ?? '',
      argumentsJson: '{}',
    }));
  return {
    content: itemBlocks(output),
    calls: [...calls, ...others],
    isComplete: objectsOf(output).every(({ status }) => status !== 'incomplete'),
    promptTokens: usage.inputTokens > 0 ? usage.inputTokens : undefined,
  };
}

function addedUsages(one: Usage, other: Usage): Usage {
  const sum = new Usage({ requests: 0 });
  sum.add(one);
  sum.add(other);
  return sum;
}

// Streams

/** Yields the events of all rounds as one reply. Only recalls and the ends of rounds are held back. */
async function* relay(
  model: Model,
  leporello: Leporello,
  options: AgentsModelOptions,
  request: AgentsRequest,
): AsyncGenerator<AgentsEvent> {
  const call = await openCall(leporello, options, request, (folded) =>
    begun(model.getStreamedResponse(folded)),
  );
  const { privateTools } = call;
  const output: ReplyDone['response']['output'] = [];
  const usages: Usage[] = [];
  let isEnded = false;
  try {
    let last: ReplyDone | undefined;
    let reply: AsyncIterable<AgentsEvent> | undefined = call.reply;
    for (let number = 1; reply; number++) {
      const show = openEvents(privateTools);
      let done: ReplyDone | undefined;
      for await (const event of reply) {
        if (event.type === 'response_done') done = event;
        else if (event.type === 'model') {
          const visible = show(event.event);
          if (visible !== undefined) yield { ...event, event: visible };
        } else if (event.type !== 'response_started' || number === 1)
          yield withoutPrivateTools(event, privateTools);
      }
      if (!done) break;
      last = done;
      usages.push(Usage.fromJSON(done.response.usage as Parameters<typeof Usage.fromJSON>[0]));
      output.push(...withoutPrivateTools(done.response.output, privateTools));
      reply = await call.next(roundOf(done.response));
    }
    isEnded = true;
    if (last)
      yield {
        ...last,
        response: {
          ...withoutPrivateTools(last.response, privateTools),
          output,
          ...(usages.length > 1 && { usage: usages.reduce(addedUsages) }),
        },
      };
  } finally {
    if (!isEnded) await call.left();
  }
}

/** Waits for the first event, so that a refusal rejects before there is a stream. */
async function begun<Event>(stream: AsyncIterable<Event>): Promise<AsyncIterable<Event>> {
  const iterator = stream[Symbol.asyncIterator]();
  const first = await iterator.next();
  return (async function* whole() {
    try {
      for (let next = first; !next.done; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  })();
}

/** Returns a function that shows what a program may see of the provider's own events: nothing of the recalls. */
function openEvents(privateTools: PrivateTools): (event: unknown) => unknown {
  const hidden = new Set<unknown>();
  return (event) => {
    if (!isRecord(event) || privateTools.size === 0) return event;
    const { item, item_id: id, choices } = event;
    if (isNamed(item, privateTools) && isRecord(item)) {
      hidden.add(item['id']);
      return undefined;
    }
    if (id !== undefined && hidden.has(id)) return undefined;
    // The pieces of a call in Chat Completions name the tool only once.
    const calls = objectsOf(choices).flatMap(({ delta }) =>
      isRecord(delta) ? objectsOf(delta['tool_calls']) : [],
    );
    // Some servers give all parallel calls the same index, one after the other.
    for (const call of calls)
      if (isNamed(call, privateTools)) hidden.add(call['index']);
      else if (isRecord(call['function']) && wordAt(call['function'], 'name')) hidden.delete(call['index']);
    if (calls.length > 0 && calls.every(({ index }) => hidden.has(index))) return undefined;
    return withoutPrivateTools(event, privateTools);
  };
}

/** Leaves out of all lists within a value what has the name of a private tool: definitions and calls that providers repeat. */
function withoutPrivateTools<Value>(value: Value, privateTools: PrivateTools): Value {
  if (privateTools.size === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value))
    return value
      .filter((one: unknown) => !isNamed(one, privateTools))
      .map((one: unknown) => withoutPrivateTools(one, privateTools)) as Value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withoutPrivateTools(inner as unknown, privateTools)]),
  ) as Value;
}

function isNamed(value: unknown, privateTools: PrivateTools): boolean {
  if (!isRecord(value)) return false;
  const { function: inner } = value;
  return [value, inner].some((named) => isRecord(named) && privateTools.has(wordAt(named, 'name') ?? ''));
}
