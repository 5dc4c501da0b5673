/**
 * A chat model of LangChain that folds what it sends through another one, and answers recalls inside its reply. The inner model runs without
 * callbacks, so that traces, streams and states see one reply.
 */
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import type { BaseLanguageModelInput } from '@langchain/core/language_models/base';
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BindToolsInput,
} from '@langchain/core/language_models/chat_models';
import type {
  AIMessage,
  AIMessageChunk,
  BaseMessage,
  InvalidToolCall,
  UsageMetadata,
} from '@langchain/core/messages';
import type { ChatGenerationChunk, ChatResult } from '@langchain/core/outputs';
import type { Runnable } from '@langchain/core/runnables';
import type { RecallTool } from '../../codecs/codec.ts';
import { type JsonRecord, isRecord, objectsOf, wordAt } from '../../conversation/json-scan.ts';
import type { PrivateTools } from '../../conversation/turns.ts';
import type { Leporello } from '../../library/leporello.ts';
import {
  openChunks,
  shownMetadata,
  streamable,
  usageIn,
  withoutCalls,
  withoutOutput,
} from './langchain-chunks.ts';
import {
  isCallPart,
  langchainForm,
  replyBlocks,
  replyWith,
  toolDefinition,
  usageFields,
} from './langchain-messages.ts';
import { type AdapterOptions, type ModelRound, type OpenModelCall, openModelCall } from './model-call.ts';

type InnerModel = Runnable<BaseLanguageModelInput, AIMessageChunk> & Pick<BaseChatModel, 'bindTools'>;

type FoldingFields = {
  readonly inner: InnerModel;
  readonly leporello: Leporello;
  readonly options: AdapterOptions;
  readonly tools?: readonly BindToolsInput[];
  readonly settings?: object;
};

/** Folds and recalls for another chat model. It has the same interface. */
export class FoldingChatModel extends BaseChatModel<BaseChatModelCallOptions, AIMessageChunk> {
  readonly #fields: FoldingFields;

  constructor(fields: FoldingFields) {
    super({});
    this.#fields = fields;
  }

  override _llmType(): string {
    return 'leporello';
  }

  /** The capabilities of the inner model, by which agents choose how to ask for structured output. */
  override get profile(): BaseChatModel['profile'] {
    return (this.#fields.inner as unknown as Partial<BaseChatModel>).profile ?? {};
  }

  override bindTools(tools: BindToolsInput[], settings: object = {}): FoldingChatModel {
    return new FoldingChatModel({ ...this.#fields, tools, settings });
  }

  /** The inner model knows how to ask for structured output. Its settings for that are bound to this model in place of itself. */
  override withStructuredOutput(...request: unknown[]): never {
    const { inner } = this.#fields;
    const model = new Proxy(inner as unknown as { withStructuredOutput(...request: unknown[]): never }, {
      get: (target, key) => {
        const owner = key === 'withConfig' || key === 'bindTools' ? this : target;
        const value: unknown = Reflect.get(owner, key);
        if (typeof value !== 'function' || key === 'withStructuredOutput') return value;
        return value.bind(owner) as unknown;
      },
    });
    return model.withStructuredOutput(...request);
  }

  override async _generate(messages: BaseMessage[], options: this['ParsedCallOptions']): Promise<ChatResult> {
    const call = await this.#open(messages, options, (model, folded) =>
      model.invoke(folded, innerOptions(options)),
    );
    const { privateTools } = call;
    const isJson = this.#wantsJson(options);
    const rounds: AIMessage[] = [];
    for (let reply: AIMessage | undefined = call.reply; reply; ) {
      const round = roundOf(reply, privateTools, isJson);
      rounds.push(round.message);
      reply = await call.next(round);
    }
    const message = joined(rounds, privateTools, isJson);
    return { generations: [{ message, text: message.text }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const call = await this.#open(messages, options, (model, folded) =>
      model.stream(folded, innerOptions(options)),
    );
    let isEnded = false;
    try {
      const { privateTools } = call;
      const show = openChunks(privateTools, privateTools.size > 0 && this.#wantsJson(options));
      for (let reply: AsyncIterable<AIMessageChunk> | undefined = call.reply; reply; ) {
        let whole: AIMessageChunk | undefined;
        for await (const part of reply) {
          const chunk = streamable(part);
          whole = whole?.concat(chunk) ?? chunk;
          const visible = show.take(chunk);
          yield visible;
          await runManager?.handleLLMNewToken(visible.text, undefined, undefined, undefined, undefined, {
            chunk: visible,
          });
        }
        reply = whole && (await call.next(roundOf(whole, privateTools, show.isHolding())));
        show.endRound(whole, reply !== undefined);
      }
      isEnded = true;
      yield show.end();
    } finally {
      if (!isEnded) await call.left();
    }
  }

  /** True for a request of an object that the provider writes as text. All text of its reply is read as JSON, so a text ahead of a recall would break it. */
  #wantsJson(callOptions: object): boolean {
    const settings = { ...this.#fields.settings, ...callOptions } as JsonRecord;
    const format = isRecord(settings['response_format']) ? settings['response_format']['type'] : undefined;
    return (
      (format !== undefined && format !== 'text') ||
      settings['outputConfig'] !== undefined ||
      settings['ls_structured_output_format'] !== undefined
    );
  }

  #open<Reply>(
    messages: readonly BaseMessage[],
    callOptions: BaseChatModelCallOptions,
    send: (model: InnerModel, folded: BaseMessage[]) => Promise<Reply>,
  ): Promise<OpenModelCall<Reply>> {
    const { inner, leporello, options } = this.#fields;
    // Tools of this very call replace those that were bound.
    const { tools: given, tool_choice: choice } = callOptions as JsonRecord;
    const isGiven = Array.isArray(given);
    const tools = isGiven ? (given as readonly BindToolsInput[]) : (this.#fields.tools ?? []);
    const settings: object = {
      ...this.#fields.settings,
      ...(choice !== undefined && { tool_choice: choice }),
    };
    // Settings are bound with the tools, even if there are none.
    const isBound = isGiven || this.#fields.tools !== undefined || choice !== undefined;
    const { maxTokens } = inner as unknown as JsonRecord;
    return openModelCall<BaseMessage, Reply>(
      leporello,
      {
        request: {
          model: nameOfModel(inner),
          messages,
          tools: objectsOf(tools).map(toolDefinition),
          ...(typeof maxTokens === 'number' && maxTokens > 0 && { maxOutputTokens: maxTokens }),
        },
        form: langchainForm,
        upstream: inner.getName(),
        send({ messages: folded, addedTools }) {
          const offered = [...tools, ...addedTools.map(definitionFor)];
          const bound = isBound && inner.bindTools ? inner.bindTools(offered, settings) : inner;
          return send(bound as InnerModel, [...folded]);
        },
      },
      options,
    );
  }
}

/** Returns the name of a chat model. */
export function nameOfModel(chatModel: object): string | undefined {
  return wordAt(chatModel as JsonRecord, 'model') ?? wordAt(chatModel as JsonRecord, 'modelName');
}

/** Returns the options of a call for the inner model. It has no callbacks of its own, or traces and streams would show the recalls. */
function innerOptions({
  signal,
  timeout,
  stop,
  ...others
}: BaseChatModelCallOptions): Partial<BaseChatModelCallOptions> {
  const { tools: _, tool_choice: __, ...rest } = others as JsonRecord;
  return {
    ...rest,
    ...(signal && { signal }),
    ...(timeout !== undefined && { timeout }),
    ...(stop && { stop }),
    callbacks: [],
  };
}

/** Every chat model reads this form of a definition. */
function definitionFor({ name, description, parameters }: RecallTool): BindToolsInput {
  return { type: 'function', function: { name, description, parameters } };
}

/**
 * Reads a reply. `message` is the reply with its recalls among the calls, also those whose arguments are no JSON. `hidesText`: the program does not
 * see its text if the reply goes on after a recall.
 */
function roundOf(
  reply: AIMessage,
  privateTools: PrivateTools,
  hidesText: boolean,
): ModelRound & { readonly message: AIMessage } {
  const isRecall = ({ name }: { readonly name?: string }) => privateTools.has(name ?? '');
  const broken = (reply.invalid_tool_calls ?? []).filter(isRecall);
  const message = broken.length === 0 ? reply : repaired(reply, broken);
  const asSent = new Map(broken.map(({ id, name, args }) => [id ?? name, args]));
  const calls = (message.tool_calls ?? []).map(({ id, name, args }) => ({
    id: id ?? name,
    name,
    argumentsJson: asSent.get(id ?? name) ?? JSON.stringify(args),
  }));
  const {
    finish_reason: finish,
    stop_reason: stop,
    incomplete_details: incomplete,
  } = message.response_metadata;
  const isCut = [finish, stop].some(
    (reason) => typeof reason === 'string' && /length|max_tokens|content_filter|refusal/i.test(reason),
  );
  // In streams of Anthropic's models, the arguments of a call that the provider ran come as a broken call without a name.
  const isBroken = (message.invalid_tool_calls ?? []).some(({ name }) => Boolean(name));
  return {
    message,
    content: replyBlocks(message),
    hidesText,
    calls,
    isComplete: !isCut && !incomplete && !isBroken,
    promptTokens: usageIn(message)?.input_tokens,
  };
}

/** Returns a reply whose broken recalls are calls, so that their answers have a call. */
function repaired(reply: AIMessage, broken: readonly InvalidToolCall[]): AIMessage {
  const { tool_calls: calls = [], invalid_tool_calls: invalid = [] } = reply;
  return replyWith(reply, {
    tool_calls: [
      ...calls,
      ...broken.map((call) => ({ id: call.id ?? call.name ?? '', name: call.name ?? '', args: {} })),
    ],
    invalid_tool_calls: invalid.filter((call) => !broken.includes(call)),
    additional_kwargs: withoutCalls(reply.additional_kwargs),
  });
}

// Plain replies

/** Joins the rounds of a reply: the program sees one message, without the recalls. `inLast`: with the text of the last round only. */
function joined(rounds: readonly AIMessage[], privateTools: PrivateTools, inLast: boolean): AIMessage {
  const last = rounds.at(-1)!;
  const isHidden = (round: AIMessage) => inLast && round !== last;
  const isRecall = ({ name }: { readonly name: string }) => privateTools.has(name);
  const hasRecalls = rounds.some(({ tool_calls: calls = [] }) => calls.some(isRecall));
  if (!hasRecalls) return last;
  const metadata = withoutOutput(shownMetadata(last.response_metadata, privateTools));
  const calls = rounds.flatMap(({ tool_calls: called = [] }) => called);
  const recalls = new Set(calls.filter(isRecall).map(({ id }) => id));
  const isText = rounds.every(({ content }) => typeof content === 'string');
  const content = isText
    ? rounds.map((round) => (isHidden(round) ? '' : round.text)).join('')
    : rounds.flatMap((round) =>
        partsIn(round).filter((part) =>
          part['type'] === 'text' ? !isHidden(round) : !isCallPart(part) || !recalls.has(wordAt(part, 'id')),
        ),
      );
  const usages = rounds.flatMap((round) => usageIn(round) ?? []);
  return replyWith(last, {
    content: content as AIMessage['content'],
    tool_calls: calls.filter((one) => !isRecall(one)),
    additional_kwargs: { ...withoutCalls(last.additional_kwargs), ...outputsOf(rounds) },
    response_metadata: metadata,
    ...usageFields(usages.length > 0 ? usages.reduce(addedTokens) : undefined),
  });
}

/** Returns what the provider ran in all rounds, in the member in which models of OpenAI have it. */
function outputsOf(rounds: readonly AIMessage[]): AIMessage['additional_kwargs'] {
  const outputs = rounds.flatMap(({ additional_kwargs: { tool_outputs: own } }) => objectsOf(own));
  return outputs.length > 0 ? { tool_outputs: outputs } : {};
}

function partsIn({ content }: AIMessage): readonly JsonRecord[] {
  if (typeof content !== 'string') return objectsOf(content);
  return content === '' ? [] : [{ type: 'text', text: content }];
}

function addedTokens(one: UsageMetadata, other: UsageMetadata): UsageMetadata {
  return {
    ...other,
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    total_tokens: one.total_tokens + other.total_tokens,
  };
}
