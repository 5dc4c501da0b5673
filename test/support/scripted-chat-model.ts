/** A chat model of LangChain that answers from a script, plain and streamed, and keeps what it was asked. */
import { BaseChatModel, type BindToolsInput } from '@langchain/core/language_models/chat_models';
import { AIMessage, AIMessageChunk, type BaseMessage } from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';

export type ScriptedReply = {
  readonly text: string;
  readonly calls?: readonly {
    readonly id: string;
    readonly name: string;
    readonly args: Record<string, unknown>;
  }[];
};

/** Returns the reply to these messages; `index` counts the requests before this one. May throw an error of a provider. */
export type ChatScript = (messages: readonly BaseMessage[], index: number) => ScriptedReply;

export class ScriptedChatModel extends BaseChatModel {
  readonly model = 'gpt-4o';
  readonly script: ChatScript;
  readonly asked: BaseMessage[][] = [];
  readonly offered: string[][] = [];

  constructor(script: ChatScript) {
    super({});
    this.script = script;
  }

  override _llmType(): string {
    return 'scripted';
  }

  override bindTools(tools: BindToolsInput[]): this {
    const names = tools.map((tool) => {
      const { name, function: inner } = tool as { name?: string; function?: { name: string } };
      return inner?.name ?? name ?? '';
    });
    this.offered.push(names);
    return this;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const { text, calls = [] } = this.#next(messages);
    const message = new AIMessage({
      content: text,
      tool_calls: [...calls],
      ...usage,
      response_metadata: { round: this.asked.length },
    });
    return { generations: [{ message, text }] };
  }

  override async *_streamResponseChunks(messages: BaseMessage[]): AsyncGenerator<ChatGenerationChunk> {
    const { text, calls = [] } = this.#next(messages);
    const id = `reply-${this.asked.length}`;
    for (const piece of text.match(/.{1,6}/gs) ?? [])
      yield new ChatGenerationChunk({ text: piece, message: new AIMessageChunk({ id, content: piece }) });
    for (const [index, { id: callId, name, args }] of calls.entries()) {
      const chunks = [
        { index, id: callId, name, args: '' },
        { index, args: JSON.stringify(args) },
      ];
      for (const chunk of chunks)
        yield new ChatGenerationChunk({
          text: '',
          message: new AIMessageChunk({ id, content: '', tool_call_chunks: [chunk] }),
        });
    }
    const message = new AIMessageChunk({
      id,
      content: '',
      ...usage,
      response_metadata: { round: this.asked.length },
    });
    yield new ChatGenerationChunk({ text: '', message });
  }

  #next(messages: BaseMessage[]): ScriptedReply {
    this.asked.push(messages);
    return this.script(messages, this.asked.length - 1);
  }
}

/** The type of this field depends on type parameters of the message. */
const usage: object = { usage_metadata: { input_tokens: 100, output_tokens: 5, total_tokens: 105 } };
