/**
 * Writes the messages of LangChain for the engine, and reads folded ones back. A message that was folded comes back as a new one with the same
 * fields; the message of the state stays as it is. Pure.
 */
import {
  AIMessage,
  type AIMessageFields,
  type BaseMessage,
  HumanMessage,
  type MessageContent,
  SystemMessage,
  ToolMessage,
  mapChatMessagesToStoredMessages,
  mapStoredMessagesToChatMessages,
  type StoredMessage,
  type UsageMetadata,
} from '@langchain/core/messages';
import { toJsonSchema } from '@langchain/core/utils/json_schema';
import { type JsonRecord, isRecord, objectsOf, parseRecord, wordAt } from '../../conversation/json-scan.ts';
import {
  type FoldedBlock,
  type FoldedMessage,
  type MessageForm,
  type WrittenMessage,
  definitionOf,
  withoutRepeats,
} from './wire-body.ts';
import { recalledMediaNote } from '../../conversation/turns.ts';
import { addressOf, langchainMedia, originOf, unknownBlock, withOrigin } from './media-blocks.ts';

export const langchainForm: MessageForm<BaseMessage> = {
  write: writeMessage,
  read(folded) {
    const { source, blocks, role } = folded;
    if (source) return changed(source, folded);
    const origin = originOf(blocks.at(-1)?.block ?? {});
    const kept = isRecord(origin) ? revived(origin as unknown as StoredMessage, blocks) : undefined;
    if (kept) return [kept];
    if (role === 'system') return [new SystemMessage(textIn(blocks))];
    if (role === 'assistant') return [assistantOf(blocks)];
    const others = blocks.filter((block) => !isResult(block));
    const results = blocks.filter(isResult);
    return [
      ...results.map((block) => resultOf(block, folded)),
      ...(others.length > 0 ? [new HumanMessage({ content: contentOf(others) })] : []),
      ...mediaOf(results),
    ];
  },
  order(messages, putBack) {
    // A result of another call must follow at once.
    for (let at = messages.length - 2; at >= 0; at--) {
      if (!isMediaMessage(messages[at]!)) continue;
      const after = messages.findIndex((message, index) => index > at && !ToolMessage.isInstance(message));
      const [media] = messages.splice(at, 1);
      messages.splice(after < 0 ? messages.length : after - 1, 0, media!);
    }
    const fresh = withoutRepeats<JsonRecord>((output) => wordAt(output, 'id'));
    return messages.map((message) => {
      const { tool_outputs: outputs, ...others } = message.additional_kwargs;
      if (!AIMessage.isInstance(message) || !Array.isArray(outputs)) return message;
      const all = objectsOf(outputs);
      const left = fresh(all, putBack.has(message));
      const kept = left.length > 0 ? { ...others, tool_outputs: left } : others;
      return left === all ? message : replyWith(message, { additional_kwargs: kept });
    });
  },
};

/** Returns the message with the images and documents of recalls: some providers refuse them in a result. */
function mediaOf(results: readonly FoldedBlock[]): readonly HumanMessage[] {
  const media = results.flatMap(({ block }) => mediaIn(block));
  if (media.length === 0) return [];
  const note = { type: 'text', text: recalledMediaNote };
  return [new HumanMessage({ content: [note, ...media.map(partOf)] as MessageContent })];
}

function isMediaMessage(message: BaseMessage): boolean {
  if (!HumanMessage.isInstance(message) || typeof message.content === 'string') return false;
  return wordAt(objectsOf(message.content)[0] ?? {}, 'text') === recalledMediaNote;
}

function mediaIn({ content }: JsonRecord): readonly JsonRecord[] {
  return Array.isArray(content) ? objectsOf(content).filter(({ type }) => type !== 'text') : [];
}

/** Returns a result with its texts only. */
function withoutMedia(result: JsonRecord): JsonRecord {
  if (mediaIn(result).length === 0) return result;
  const texts = objectsOf(result['content']).flatMap((item) => wordAt(item, 'text') ?? []);
  return { ...result, content: texts.join('\n') };
}

function isResult({ block }: FoldedBlock): boolean {
  return block['type'] === 'tool_result';
}

// Messages to blocks

function writeMessage(message: BaseMessage): WrittenMessage {
  if (ToolMessage.isInstance(message)) return { role: 'user', content: [resultBlock(message)] };
  const role = SystemMessage.isInstance(message) ? 'system' : 'user';
  if (!AIMessage.isInstance(message)) return { role, content: filled(blocksOf(message.content)) };
  const { tool_outputs: outputs } = message.additional_kwargs;
  // Outputs of tools that the provider ran are sent, so they are counted.
  const run = objectsOf(outputs).map((item) =>
    unknownBlock(`langchain-${wordAt(item, 'type') ?? 'item'}`, item),
  );
  const reasoning = reasoningBlocks(message);
  const said = blocksOf(message.content).map((block) =>
    // A reply may have its reasoning in the content, too. It is sent once.
    reasoning.length > 0 && block?.['type'] === 'thinking' ? undefined : block,
  );
  const blocks = [...reasoning, ...said, ...callBlocks(message), ...run];
  return { role: 'assistant', content: filled(blocks) };
}

/** Messages of OpenAI's models have reasoning apart from the content. Its block has the members that are sent, because all of them are counted. */
function reasoningBlocks({ additional_kwargs: { reasoning } }: AIMessage): readonly JsonRecord[] {
  if (!isRecord(reasoning)) return [];
  const { id, summary, encrypted_content: signature } = reasoning;
  const texts = objectsOf(summary).map((part) => wordAt(part, 'text') ?? '');
  const kinds = objectsOf(summary).map(({ type }) => ({ type }));
  return [{ type: 'thinking', thinking: texts.join(''), signature, id, summary: kinds }];
}

/** A message must have a block. */
function filled(blocks: WrittenMessage['content']): WrittenMessage['content'] {
  return blocks.some(Boolean) ? blocks : [{ type: 'langchain-empty' }];
}

function blocksOf(content: MessageContent): WrittenMessage['content'] {
  if (typeof content === 'string') return [content === '' ? undefined : { type: 'text', text: content }];
  return objectsOf(content).map(blockOf);
}

function callBlocks({ tool_calls: calls = [] }: AIMessage): readonly JsonRecord[] {
  return calls.map(({ id, name, args }) => ({ type: 'tool_use', id: id ?? name, name, input: args }));
}

function blockOf(block: JsonRecord): JsonRecord | undefined {
  switch (block['type']) {
    case 'text':
      return block['text'] === '' ? undefined : { type: 'text', text: block['text'] };
    case 'thinking':
      return {
        type: 'thinking',
        thinking: block['thinking'],
        ...(block['signature'] !== undefined && { signature: block['signature'] }),
      };
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: block['data'] };
    case 'reasoning':
      return { type: 'thinking', thinking: wordAt(block, 'reasoning') ?? '' };
    // These repeat the calls of the message.
    case 'tool_use':
    case 'tool_call':
    case 'functionCall':
    case 'function_call':
    case 'input_json_delta':
      return undefined;
    default:
      return (
        langchainMedia(block) ?? unknownBlock(`langchain-${wordAt(block, 'type') ?? 'part'}`, sentPart(block))
      );
  }
}

/** Returns a part as it is sent, because that is counted: parts of streams have an index, and LangChain sends only arguments that are an object. */
function sentPart(block: JsonRecord): JsonRecord {
  const { index: _, ...part } = block;
  return typeof part['input'] === 'string' ? { ...part, input: parseRecord(part['input']) ?? {} } : part;
}

function resultBlock(message: ToolMessage): JsonRecord {
  const { content, tool_call_id: id, status } = message;
  const items =
    typeof content === 'string'
      ? content
      : objectsOf(content).map((item) => blockOf(item) ?? unknownBlock('langchain-part', item));
  return {
    type: 'tool_result',
    tool_use_id: id,
    content: items,
    ...(status === 'error' && { is_error: true }),
  };
}

/** Writes a definition for the engine. LangChain's own tools have a schema of Zod. */
export function toolDefinition(tool: JsonRecord): JsonRecord {
  const { name, description, schema } = tool;
  if (schema === undefined) return definitionOf(tool);
  return { name, description, input_schema: toJsonSchema(schema as Parameters<typeof toJsonSchema>[0]) };
}

// Blocks to messages

function changed(source: BaseMessage, folded: FoldedMessage<BaseMessage>): readonly BaseMessage[] {
  const { blocks } = folded;
  if (ToolMessage.isInstance(source))
    // The answer to a recall may stand beside the result.
    return [
      ...blocks.map((block) =>
        block.at === undefined ? resultOf(block, folded) : changedResult(source, block),
      ),
      ...mediaOf(blocks.filter(({ at }) => at === undefined)),
    ];
  const { additional_kwargs } = source;
  if (!AIMessage.isInstance(source)) {
    const Type = SystemMessage.isInstance(source) ? SystemMessage : HumanMessage;
    return [new Type({ ...fieldsOf(source), content: changedContent(source.content, blocks) })];
  }
  const { tool_calls: calls = [] } = source;
  // Numbers from 0 are those of the content. The reasoning beside it has -1.
  const before = reasoningBlocks(source).length;
  const own = blocks.map((one) => (one.at === undefined ? one : { ...one, at: one.at - before }));
  const { reasoning: _, ...others } = additional_kwargs;
  const isReasoningKept = before === 0 || own.some(({ at }) => at === -1);
  const first = typeof source.content === 'string' ? 1 : source.content.length;
  const kept = own.flatMap(({ block, at }) => {
    const call = at === undefined ? undefined : calls[at - first];
    return call ? [{ ...call, args: block['input'] as typeof call.args }] : [];
  });
  const content = changedContent(source.content, own, new Map(kept.map((call) => [call.id, call.args])));
  if (kept.length === 0 && isNothingSaid(content)) return [];
  // Some providers' models send this copy of the reply instead of the message.
  const { output: __, ...response_metadata }: JsonRecord = source.response_metadata;
  const kwargs = isReasoningKept ? additional_kwargs : others;
  return [replyWith(source, { additional_kwargs: kwargs, response_metadata, content, tool_calls: kept })];
}

function fieldsOf({ id, name, additional_kwargs, response_metadata }: BaseMessage) {
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    additional_kwargs,
    response_metadata,
  };
}

/** Returns a copy of a reply with other fields. */
export function replyWith(source: AIMessage, fields: Partial<AIMessageFields>): AIMessage {
  const { content, tool_calls = [], invalid_tool_calls = [], usage_metadata: usage } = source;
  return new AIMessage({
    ...fieldsOf(source),
    content,
    tool_calls,
    invalid_tool_calls,
    ...usageFields(usage),
    ...fields,
  });
}

/** Returns the field of a message with its usage, if there is one. */
export function usageFields(usage: UsageMetadata | undefined): Pick<AIMessageFields, 'usage_metadata'> {
  // The type of the field depends on type parameters that a program chooses.
  return usage ? ({ usage_metadata: usage } as object) : {};
}

/** True for reasoning alone: providers refuse it. */
function isNothingSaid(content: MessageContent): boolean {
  if (typeof content === 'string') return content === '';
  return objectsOf(content).every(({ type }) => /thinking|reasoning/.test(String(type)));
}

/** True for a part that repeats a call of the message, under its id. */
export function isCallPart({ type }: JsonRecord): boolean {
  return type === 'tool_use' || type === 'tool_call';
}

/** Returns content with the changed texts. `args` are those of the calls that are left. */
function changedContent(
  content: MessageContent,
  blocks: readonly FoldedBlock[],
  args: ReadonlyMap<string | undefined, object> = new Map(),
): MessageContent {
  const at = new Map(blocks.map((block) => [block.at, block]));
  const added = blocks.filter((block) => block.at === undefined);
  if (typeof content === 'string') {
    const text = wordAt(at.get(0)?.block ?? {}, 'text') ?? '';
    return added.length === 0 ? text : contentOf([...(text === '' ? [] : [at.get(0)!]), ...added]);
  }
  const parts = objectsOf(content).flatMap((part, index): readonly JsonRecord[] => {
    const written = blockOf(part);
    if (!written) {
      const id = wordAt(part, 'id');
      if (!isCallPart(part) || id === undefined) return [part];
      const member = part['type'] === 'tool_use' ? 'input' : 'args';
      return args.has(id) ? [{ ...part, [member]: args.get(id) }] : [];
    }
    const block = at.get(index);
    if (!block) return [];
    return [block.isChanged ? { ...part, ...plain(block.block) } : part];
  });
  return [...parts, ...added.map(({ block }) => partOf(block))] as MessageContent;
}

function changedResult(source: ToolMessage, { block, isChanged }: FoldedBlock): ToolMessage {
  if (!isChanged) return source;
  const items = typeof source.content === 'string' ? [] : objectsOf(source.content);
  const content = Array.isArray(block['content'])
    ? objectsOf(block['content']).map((item) => {
        const part = typeof item['at'] === 'number' ? items[item['at']] : undefined;
        if (!part) return partOf(item);
        return item['type'] === 'text' ? { ...part, text: item['text'] } : part;
      })
    : block['content'];
  return withContent(source, content as MessageContent);
}

/** Returns a copy of a result with other content. */
export function withContent(result: ToolMessage, content: MessageContent): ToolMessage {
  const { id, name, status, artifact, metadata, additional_kwargs, response_metadata, tool_call_id } = result;
  return new ToolMessage({
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    ...(status !== undefined && { status }),
    ...(metadata !== undefined && { metadata }),
    artifact: artifact as unknown,
    additional_kwargs,
    response_metadata,
    tool_call_id,
    content,
  });
}

/** Returns the answer to a recall, with its texts only. */
function resultOf({ block }: FoldedBlock, folded: FoldedMessage<BaseMessage>): ToolMessage {
  const id = wordAt(block, 'tool_use_id') ?? '';
  const { content } = withoutMedia(block);
  return new ToolMessage({
    tool_call_id: id,
    name: folded.toolOf(id),
    content: (Array.isArray(content) ? objectsOf(content).map(partOf) : content) as MessageContent,
  });
}

function assistantOf(blocks: readonly FoldedBlock[]): AIMessage {
  const calls = blocks.flatMap(({ block }) =>
    block['type'] === 'tool_use'
      ? [
          {
            type: 'tool_call' as const,
            id: wordAt(block, 'id') ?? '',
            name: wordAt(block, 'name') ?? '',
            args: isRecord(block['input']) ? block['input'] : {},
          },
        ]
      : [],
  );
  return new AIMessage({ content: textIn(blocks), tool_calls: calls });
}

function contentOf(blocks: readonly FoldedBlock[]): MessageContent {
  const isText = blocks.length === 1 && blocks[0]!.block['type'] === 'text';
  return isText ? textIn(blocks) : (blocks.map(({ block }) => partOf(block)) as MessageContent);
}

function textIn(blocks: readonly FoldedBlock[]): string {
  return blocks.map(({ block }) => (block['type'] === 'text' ? (wordAt(block, 'text') ?? '') : '')).join('');
}

function partOf(block: JsonRecord): JsonRecord {
  const { source } = block;
  if (block['type'] !== 'image' || !isRecord(source)) return plain(block);
  return { type: 'image_url', image_url: { url: addressOf(source) } };
}

/** Returns a block without the members that are written here. */
function plain(block: JsonRecord): JsonRecord {
  const { at: _, origin: __, ...others } = block;
  return others;
}

// Replies

/** Returns a reply as blocks. The last one, a call, keeps the whole message: a later request needs it, in any process. */
export function replyBlocks(message: AIMessage): readonly JsonRecord[] {
  const [origin] = mapChatMessagesToStoredMessages([message]);
  const blocks = blocksIn(message);
  return blocks.map((block, at) => (at === blocks.length - 1 ? withOrigin(block, origin) : block));
}

/** Returns the message that a reply was, if nothing of it was folded since. */
function revived(origin: StoredMessage, blocks: readonly FoldedBlock[]): BaseMessage | undefined {
  const [message] = mapStoredMessagesToChatMessages([origin]);
  const written = message && blocksIn(message).map(plain);
  const isSame = JSON.stringify(written) === JSON.stringify(blocks.map(({ block }) => plain(block)));
  return isSame ? message : undefined;
}

function blocksIn(message: BaseMessage): readonly JsonRecord[] {
  return writeMessage(message).content.flatMap((block): readonly JsonRecord[] => (block ? [block] : []));
}
