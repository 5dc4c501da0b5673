/**
 * Public entry `leporello/langchain`: Leporello for LangChain.js, in process. A middleware of agents folds what is sent and answers recalls for any
 * chat model. The state of the agent, its checkpoints and its streams have the complete messages and none of the recalls.
 */
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { type BaseMessage, ToolMessage } from '@langchain/core/messages';
import { type AgentMiddleware, createMiddleware, tool } from 'langchain';
import { objectsOf } from '../conversation/json-scan.ts';
import { type Leporello, partsOf } from '../library/leporello.ts';
import { langchainForm, toolDefinition, withContent } from './lib/langchain-messages.ts';
import { FoldingChatModel, nameOfModel } from './lib/langchain-model.ts';
import { type AdapterOptions, foldedMessages, memoryReader } from './lib/model-call.ts';
import { checkAdapterOptions, checkShrinkingOptions } from './lib/options.ts';
import { type ResultShrinkOptions, resultShrinker } from './lib/shrink-results.ts';
import { wireRequest } from './lib/wire-body.ts';

export type { AdapterOptions } from './lib/model-call.ts';
export type { ResultShrinkOptions } from './lib/shrink-results.ts';

export type LangchainOptions = AdapterOptions & {
  /** Shortens results that would fill the window when they arrive; `false` leaves them as they are. Default: from 85 % of the window to 80 %. */
  readonly shrinkResults?: ResultShrinkOptions | false;
  /**
   * `hidden`: recalls are answered inside the reply. `tool`: `read_memory` is a tool of the agent, whose calls and answers are in the state; a refusal
   * of the provider then does not lead to a harder fold. Default: hidden.
   */
  readonly recall?: 'hidden' | 'tool';
};

/**
 * Folds the messages of an agent before each call of its model, and answers recalls inside the reply. Put it last in the list, so that it folds
 * what the other middlewares made.
 *
 * @example
 * const agent = createAgent({ model: 'openai:gpt-5', tools, middleware: [leporelloMiddleware(createLeporello())] });
 */
export function leporelloMiddleware(leporello: Leporello, options: LangchainOptions = {}): AgentMiddleware {
  partsOf(leporello);
  checkShrinkingOptions(options);
  const { shrinkResults = {}, recall = 'hidden', ...modelOptions } = options;
  const { tenant } = modelOptions;
  const shrink =
    shrinkResults === false
      ? undefined
      : resultShrinker(leporello, { ...(tenant !== undefined && { tenant }), ...shrinkResults });
  const recallTool = leporello.recallTool.name;
  return createMiddleware({
    name: 'leporello',
    ...(recall === 'tool' && { tools: [visibleRecallTool(leporello, modelOptions)] }),
    async wrapModelCall(request, handler) {
      const model = await instanceOf(request.model);
      if (recall === 'hidden')
        return handler({ ...request, model: leporelloModel(model, leporello, modelOptions) });
      // The engine offers the tool itself, under the same name, so that its stubs name it.
      const tools = objectsOf(request.tools)
        .map(toolDefinition)
        .filter(({ name }) => name !== recallTool);
      const messages = await foldedMessages<BaseMessage>(
        leporello,
        {
          request: {
            model: nameOfModel(model),
            messages: request.messages,
            tools,
            system: request.systemMessage.text,
          },
          form: langchainForm,
          upstream: model.getName(),
        },
        modelOptions,
      );
      return handler({ ...request, messages: [...messages] });
    },
    async wrapToolCall(request, handler) {
      const result = await handler(request);
      const { toolCall, state } = request;
      if (toolCall.name === recallTool) return result;
      if (!shrink || !ToolMessage.isInstance(result) || typeof result.content !== 'string') return result;
      const body = () =>
        wireRequest({ model: undefined, messages: state.messages, tools: [] }, langchainForm).body;
      const content = await shrink({
        callId: toolCall.id ?? '',
        tool: toolCall.name,
        result: result.content,
        body,
      });
      return content === result.content ? result : withContent(result, content as string);
    },
  }) as AgentMiddleware;
}

/**
 * Returns a chat model that folds and recalls, for chains and graphs without `createAgent`. Bind tools to it as to the model itself.
 *
 * @example
 * const model = leporelloModel(new ChatOpenAI({ model: 'gpt-5' }), createLeporello()).bindTools(tools);
 */
export function leporelloModel(
  model: BaseChatModel,
  leporello: Leporello,
  options: AdapterOptions = {},
): BaseChatModel {
  partsOf(leporello);
  checkAdapterOptions(options);
  return new FoldingChatModel({ inner: model as never, leporello, options });
}

/** Returns the tool with which the model of an agent reads what was folded. */
function visibleRecallTool(leporello: Leporello, options: AdapterOptions) {
  const { name, description, parameters } = leporello.recallTool;
  return tool(memoryReader(leporello, options), {
    name,
    description,
    schema: parameters,
  });
}

/** A model that was named by a text is created when it is first used. */
async function instanceOf(model: unknown): Promise<BaseChatModel> {
  const { _getModelInstance: create } = model as {
    readonly _getModelInstance?: () => Promise<BaseChatModel>;
  };
  return create ? create.call(model) : (model as BaseChatModel);
}
