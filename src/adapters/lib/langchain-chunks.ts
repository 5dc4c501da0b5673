/**
 * Reads the chunks of a streamed reply of LangChain, and decides what of each the program sees. Also leaves out of a reply what providers repeat of
 * it. Pure except for the state of a stream.
 */
import { type AIMessage, AIMessageChunk, type UsageMetadata } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { type JsonRecord, objectsOf, wordAt } from '../../conversation/json-scan.ts';
import type { PrivateTools } from '../../conversation/turns.ts';
import { usageFields } from './langchain-messages.ts';
import { beginsLikeJson } from './model-call.ts';

/** Returns a reply of a model that does not stream as a chunk, which has its calls in another member. */
export function streamable(part: AIMessage | AIMessageChunk): AIMessageChunk {
  const { tool_calls: calls = [], invalid_tool_calls: invalid = [], id } = part;
  if ('tool_call_chunks' in part && (part.tool_call_chunks.length > 0 || calls.length === 0)) return part;
  const spelled = [...calls.map((call) => ({ ...call, args: JSON.stringify(call.args) })), ...invalid];
  return new AIMessageChunk({
    ...(id !== undefined && { id }),
    content: part.content,
    tool_call_chunks: spelled.map(({ id: callId, name, args }, index) => ({
      index,
      type: 'tool_call_chunk',
      ...(callId !== undefined && { id: callId }),
      ...(name !== undefined && { name }),
      ...(args !== undefined && { args }),
    })),
    additional_kwargs: part.additional_kwargs,
    response_metadata: part.response_metadata,
    ...usageFields(usageIn(part)),
  });
}

/**
 * Decides what of each chunk the program sees. All rounds are one message: the same id, and parts that go on counting. `holdsText`: text that does not begin
 * like JSON is held back until a call of the program follows, or the end of the round tells that the reply does not go on after a recall.
 */
export function openChunks(privateTools: PrivateTools, holdsText: boolean) {
  let id: string | undefined;
  let metadata: Record<string, unknown> = {};
  /** Parts and calls of one message are told apart by their index. Later rounds begin behind those of the earlier ones. */
  let offset = 0;
  let next = 0;
  const hidden = new Set<unknown>();
  let hasRecalls = false;
  /** The reasoning of models of OpenAI: that of the last round. Chunks of several rounds would join sealed copies, which the provider refuses. */
  let reasoning: unknown;

  function shown(part: JsonRecord): JsonRecord {
    const { index } = part;
    if (typeof index !== 'number') return part;
    next = Math.max(next, offset + index + 1);
    return { ...part, index: offset + index };
  }

  const hold = openHold(holdsText);

  function take(chunk: AIMessageChunk): ChatGenerationChunk {
    id ??= chunk.id;
    metadata = { ...metadata, ...chunk.response_metadata };
    const calls = (chunk.tool_call_chunks ?? []).filter(({ name, index, id: callId }) => {
      const key = index ?? callId;
      // A name begins a call. Some models give all calls of a message the same index, or none.
      if (privateTools.has(name ?? '')) {
        hidden.add(key);
        hasRecalls = true;
      } else if (name !== undefined && name !== '') hidden.delete(key);
      return !hidden.has(key);
    });
    const { content } = chunk;
    const { reasoning: _, ...kwargs } = withoutCalls(chunk.additional_kwargs);
    const parts = typeof content === 'string' ? [] : objectsOf(content);
    const visible = parts.filter(
      ({ type, index }) => !/^(?:tool_use|input_json_delta)$/.test(String(type)) || !hidden.has(index),
    );
    const message = new AIMessageChunk({
      ...(id !== undefined && { id }),
      content: hold.take(typeof content === 'string' ? content : visible.map(shown), calls.length > 0),
      tool_call_chunks: calls.map((call) => ({ ...call, ...shown({ index: call.index }) })),
      additional_kwargs: kwargs,
      ...usageFields(usageIn(chunk)),
    });
    return new ChatGenerationChunk({ message, text: message.text });
  }

  return {
    take,
    /** True if the program has seen no text of this round. */
    isHolding: hold.isHolding,
    endRound(whole: AIMessageChunk | undefined, goesOn: boolean): void {
      offset = next;
      hidden.clear();
      if (goesOn) hold.begin();
      reasoning = whole?.additional_kwargs['reasoning'];
    },
    /** Returns the end of the message, with the metadata of the last round. */
    end(): ChatGenerationChunk {
      const own = shownMetadata(metadata, privateTools);
      const message = new AIMessageChunk({
        ...(id !== undefined && { id }),
        content: hold.release([]),
        ...(reasoning !== undefined && { additional_kwargs: { reasoning } }),
        response_metadata: hasRecalls ? withoutOutput(own) : own,
      });
      const { content } = message;
      return new ChatGenerationChunk({ message, text: typeof content === 'string' ? content : '' });
    },
  };
}

type Content = AIMessageChunk['content'];

/** Holds back the texts of a round as long as they may stand ahead of JSON: see `openChunks`. */
function openHold(holdsText: boolean) {
  let isHolding = holdsText;
  let heard = '';
  /** Texts that are held back: as a text, or as parts. */
  let held: readonly [text: string, parts: readonly JsonRecord[]] = ['', []];

  /** Returns the texts that were held back, with other parts. */
  function release(others: readonly JsonRecord[]): Content {
    const [text, parts] = held;
    held = ['', []];
    if (parts.length === 0 && others.length === 0) return text;
    return [...(text === '' ? [] : [{ type: 'text', text }]), ...parts, ...others] as Content;
  }

  return {
    isHolding: () => isHolding,
    release,
    /** Begins another round, whose texts take the place of those that were held back. */
    begin(): void {
      [isHolding, heard, held] = [holdsText, '', ['', []]];
    },
    /** Takes the content of a chunk, and returns what to show now. */
    take(content: string | readonly JsonRecord[], isCalling: boolean): Content {
      if (!isHolding) return content as Content;
      const isString = typeof content === 'string';
      const texts = isString ? [] : content.filter(({ type }) => type === 'text');
      const others = isString ? [] : content.filter((part) => !texts.includes(part));
      const [text, parts] = held;
      held = isString ? [text + content, parts] : [text, [...parts, ...texts]];
      heard += isString ? content : texts.map((part) => wordAt(part, 'text') ?? '').join('');
      isHolding = !isCalling && !beginsLikeJson(heard);
      if (!isHolding) return release(others);
      return isString ? '' : (others as Content);
    },
  };
}

// Repeated content

/** Leaves out the private tools: some providers repeat the tools of the request. */
export function shownMetadata(
  metadata: AIMessage['response_metadata'],
  privateTools: PrivateTools,
): JsonRecord {
  const { tools }: JsonRecord = metadata;
  if (!Array.isArray(tools)) return metadata;
  return {
    ...metadata,
    tools: objectsOf(tools).filter((tool) => !privateTools.has(wordAt(tool, 'name') ?? '')),
  };
}

/** Leaves out the reply: some providers repeat it, and the model would send that copy of one round instead of the message. */
export function withoutOutput(metadata: JsonRecord): JsonRecord {
  const { output: _, ...others } = metadata;
  return others;
}

/** Leaves out the calls: some models repeat them in the provider's spelling. */
export function withoutCalls(fields: AIMessage['additional_kwargs']): AIMessage['additional_kwargs'] {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== 'tool_calls'));
}

export function usageIn(message: {
  readonly usage_metadata?: UsageMetadata | undefined;
}): UsageMetadata | undefined {
  return message.usage_metadata;
}
