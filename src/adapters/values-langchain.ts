/** Public entry `leporello/codecs/values/langchain`: the codec over values for LangChain. It needs `@langchain/core`, so it is an entry of its own. */
import { langchainForm, toolDefinition } from './lib/langchain-messages.ts';
import { type MessagesRequest, type ValuesCodec, valuesCodec } from './lib/wire-body.ts';

export type { MessagesRequest, ValuesCodec, WrittenValues } from './lib/wire-body.ts';

/**
 * Reads and writes messages of LangChain. A folded message is a copy; the message of the program stays as it is.
 *
 * @example
 * const { codec, body, read } = langchainMessages.write({ model: 'gpt-5', messages, tools });
 * const prepared = await leporello.prepare({ codec, body });
 * const reply = await chatModel.invoke([...read(prepared.body).messages]);
 */
export const langchainMessages: ValuesCodec<MessagesRequest> = valuesCodec(langchainForm, toolDefinition);
