/**
 * Writes the messages of the AI SDK for the engine, and reads folded ones back. It serves the prompts that models get and the messages that
 * programs keep: both have the same parts. Parts that the engine does not know, such as approvals and calls that the provider ran itself,
 * become blocks that no fold touches. Pure.
 */
import { type JsonRecord, isRecord, objectsOf, wordAt } from '../../conversation/json-scan.ts';
import { originOf, sealedIn, sourceOfBytes, unknownBlock, withOrigin, withoutBytes } from './media-blocks.ts';
import {
  type FoldedBlock,
  type FoldedMessage,
  type MessageForm,
  type WrittenMessage,
  withoutRepeats,
} from './wire-body.ts';
import { recalledMediaNote } from '../../conversation/turns.ts';

/** A message of a prompt or of a program. */
export type SdkMessage = { readonly role: string; readonly content: string | readonly object[] };

export const sdkForm: MessageForm<SdkMessage> = {
  write({ role, content }): WrittenMessage {
    const side = role === 'system' || role === 'assistant' ? role : 'user';
    const parts = partsOf(content);
    const blocks = parts.map((part) => blockOf(part, side));
    // A message must have a block.
    return { role: side, content: blocks.some(Boolean) ? blocks : parts.map(keptBlock) };
  },
  read(folded) {
    const { source, blocks, role } = folded;
    const parts = source ? withUnread(source, folded) : blocks.map((block) => partOf(block, folded));
    if (source && source.role !== 'tool')
      return isOnlyReasoning(parts)
        ? []
        : [{ ...source, content: contentLike(source, withFollowers(parts)) }];
    if (role !== 'user') return [{ role, content: parts }];
    const { left, media } = withoutMedia(parts, source);
    if (source) return [{ ...source, content: left }, ...media];
    const results = left.filter(({ type }) => type === 'tool-result');
    const others = left.filter(({ type }) => type !== 'tool-result');
    return [
      ...(results.length > 0 ? [{ role: 'tool', content: results }] : []),
      ...(others.length > 0 ? [{ role: 'user', content: others }] : []),
      ...media,
    ];
  },
  order(messages, putBack) {
    const fresh = withoutRepeats(keyOfRun);
    return messages.flatMap((message) => {
      if (message.role !== 'assistant') return message;
      const parts = partsOf(message.content);
      const left = fresh(parts, putBack.has(message));
      if (left === parts) return message;
      return left.length > 0 ? { ...message, content: left } : [];
    });
  },
};

/** Identifies a call that the provider ran, or its result, which is in the message of a model only then. */
function keyOfRun({ type, toolCallId, providerExecuted }: JsonRecord): string | undefined {
  const isRun = type === 'tool-result' || (type === 'tool-call' && providerExecuted === true);
  return isRun && typeof toolCallId === 'string' ? `${type} ${toolCallId}` : undefined;
}

/**
 * Returns the parts without the images and documents of recalls, which a message of the user holds instead: some providers write those in a
 * result as text. The results of the program stay as they are.
 */
function withoutMedia(parts: readonly JsonRecord[], source: SdkMessage | undefined) {
  const own = new Set(source && objectsOf(source.content).map(({ toolCallId }) => toolCallId));
  const media: JsonRecord[] = [];
  const left = parts.map((part) => {
    const { type, toolCallId, output } = part;
    const value = isRecord(output) && output['type'] === 'content' ? objectsOf(output['value']) : [];
    const shown = value.filter((item) => item['type'] === 'file');
    if (type !== 'tool-result' || own.has(toolCallId) || shown.length === 0) return part;
    media.push(...shown);
    const said = value.flatMap((item) => (item['type'] === 'text' ? [spelled(item['text'])] : []));
    return { ...part, output: { type: 'text', value: said.join('\n') } };
  });
  const content = [{ type: 'text', text: recalledMediaNote }, ...media];
  return { left, media: media.length > 0 ? [{ role: 'user', content }] : [] };
}

function partsOf(content: SdkMessage['content']): readonly JsonRecord[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
}

/** A message whose content was a text keeps it as a text. */
function contentLike({ content }: SdkMessage, parts: readonly JsonRecord[]): SdkMessage['content'] {
  const [only] = parts;
  return typeof content === 'string' && parts.length === 1 && only?.['type'] === 'text'
    ? spelled(only['text'])
    : parts;
}

/** Returns the parts of a changed message. Parts that the model does not read stay ahead of the part that they came before. */
function withUnread(source: SdkMessage, folded: FoldedMessage<SdkMessage>): readonly JsonRecord[] {
  const parts: JsonRecord[] = [];
  const all = partsOf(source.content);
  let next = 0;
  for (const block of folded.blocks) {
    if (block.at !== undefined) {
      parts.push(...all.slice(next, block.at).filter(isUnread));
      next = block.at + 1;
    }
    parts.push(partOf(block, folded));
  }
  return [...parts, ...all.slice(next).filter(isUnread)];
}

function isUnread({ type }: JsonRecord): boolean {
  return type === 'custom';
}

function isOnlyReasoning(parts: readonly JsonRecord[]): boolean {
  return parts.every(({ type }) => type === 'reasoning' || type === 'custom');
}

/** Some providers refuse reasoning at the end of a message: it needs the part that it led to. */
function withFollowers(parts: readonly JsonRecord[]): readonly JsonRecord[] {
  const end = parts.findLastIndex(({ type }) => type !== 'reasoning');
  return end < 0 ? parts : parts.slice(0, end + 1);
}

// Parts to blocks

function blockOf(part: JsonRecord, side: WrittenMessage['role']): JsonRecord | undefined {
  switch (part['type']) {
    case 'text':
      return { type: 'text', text: part['text'] };
    case 'reasoning':
      return { type: 'thinking', thinking: part['text'], ...sealedIn(part['providerOptions']) };
    case 'file':
    case 'image':
      return mediaBlock(part) ?? keptBlock(part);
    case 'tool-call':
      if (part['providerExecuted'] === true) return keptBlock(part);
      return {
        type: 'tool_use',
        id: part['toolCallId'],
        name: part['toolName'],
        input: part['input'] ?? {},
      };
    case 'tool-result':
      return side === 'user' ? resultBlock(part) : keptBlock(part);
    case 'custom':
      // Most carry data of the provider, such as the usage of an earlier reply. A compaction stands for the beginning of the conversation.
      return /compaction/.test(spelled(part['kind'])) ? { type: 'compaction', part } : undefined;
    default:
      return keptBlock(part);
  }
}

/** A block that is never edited. For a call that the provider ran, and its result, it has what is sent to the provider, because that is counted. */
function keptBlock(part: JsonRecord): JsonRecord {
  const { type, toolCallId, toolName, input, output } = part;
  const sent =
    type === 'tool-call'
      ? { id: toolCallId, name: toolName, input }
      : type === 'tool-result'
        ? { id: toolCallId, content: isRecord(output) ? output['value'] : output }
        : part;
  return unknownBlock(`ai-sdk-${spelled(type)}`, sent);
}

function resultBlock(part: JsonRecord): JsonRecord {
  const output = isRecord(part['output']) ? part['output'] : {};
  const isError = /^(?:error-|execution-denied)/.test(spelled(output['type']));
  return {
    type: 'tool_result',
    tool_use_id: part['toolCallId'],
    content: resultContent(output),
    ...(isError && { is_error: true }),
  };
}

function resultContent(output: JsonRecord): string | readonly JsonRecord[] {
  const { type, value } = output;
  if (type === 'content') return objectsOf(value).map(itemBlock);
  if (type === 'execution-denied') return spelled(output['reason'] ?? 'The user denied the call.');
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
}

function itemBlock(item: JsonRecord): JsonRecord {
  if (item['type'] === 'text') return { type: 'text', text: item['text'] };
  return mediaBlock(item) ?? keptBlock(item);
}

/** Writes a file or an image. Undefined for kinds that have no stub, and for files that only the provider has. */
function mediaBlock(part: JsonRecord): JsonRecord | undefined {
  const { data, image, mediaType } = part;
  const media = spelled(mediaType ?? (part['type'] === 'image' ? 'image/*' : ''));
  const type = media.startsWith('image') ? 'image' : media === 'application/pdf' ? 'document' : undefined;
  const source = sourceOf(data ?? image, media);
  return type && source && { type, source };
}

function sourceOf(data: unknown, mediaType: string): JsonRecord | undefined {
  if (data instanceof Uint8Array) return sourceOfBytes(data, mediaType);
  if (data instanceof URL) return { type: 'url', url: data.href };
  if (typeof data === 'string')
    return /^https?:/.test(data)
      ? { type: 'url', url: data }
      : { type: 'base64', media_type: mediaType, data };
  if (!isRecord(data)) return undefined;
  if (data['type'] === 'data') return sourceOf(data['data'], mediaType);
  if (data['type'] === 'url') return { type: 'url', url: spelled(data['url']) };
  return undefined;
}

// Blocks to parts

function partOf({ block, at, isChanged }: FoldedBlock, folded: FoldedMessage<SdkMessage>): JsonRecord {
  const origin = at === undefined ? originOf(block) : undefined;
  const kept = isRecord(origin) ? revived(origin, block) : undefined;
  const source = at === undefined || !folded.source ? kept : partsOf(folded.source.content)[at];
  // A part of an earlier reply may have been folded since. No fold changes a block of an unknown type.
  const isFolded = kept
    ? !('part' in block) && JSON.stringify(replyBlock(kept)) !== JSON.stringify(block)
    : isChanged;
  if (source && !isFolded) return source;
  switch (block['type']) {
    case 'thinking':
      return { ...source, type: 'reasoning', text: block['thinking'] };
    case 'tool_use':
      return {
        ...source,
        type: 'tool-call',
        toolCallId: block['id'],
        toolName: block['name'],
        input: block['input'],
      };
    case 'tool_result': {
      const id = spelled(block['tool_use_id']);
      const named = source ?? { type: 'tool-result', toolCallId: id, toolName: folded.toolOf(id) };
      return {
        ...named,
        output: outputOf(block, isRecord(source?.['output']) ? source['output'] : undefined),
      };
    }
    case 'image':
    case 'document':
      return filePart(block);
    default:
      return { ...source, type: 'text', text: wordAt(block, 'text') ?? JSON.stringify(block) };
  }
}

function outputOf({ content, is_error: isError }: JsonRecord, source: JsonRecord | undefined): JsonRecord {
  if (!Array.isArray(content)) return { type: isError === true ? 'error-text' : 'text', value: content };
  const items = source?.['type'] === 'content' ? objectsOf(source['value']) : [];
  const value = objectsOf(content).map((block) => {
    const { at, ...plain } = block;
    const item = typeof at === 'number' ? items[at] : undefined;
    if (item && JSON.stringify(itemBlock(item)) === JSON.stringify(plain)) return item;
    if (block['type'] === 'text')
      return { ...(item?.['type'] === 'text' && item), type: 'text', text: block['text'] };
    return filePart(block);
  });
  return { type: 'content', value };
}

/** Makes a file part of an image or a document that the model recalled. */
function filePart(block: JsonRecord): JsonRecord {
  const source = isRecord(block['source']) ? block['source'] : {};
  const fallback = block['type'] === 'image' ? 'image/*' : 'application/pdf';
  const data =
    source['type'] === 'url'
      ? { type: 'url', url: new URL(spelled(source['url'])) }
      : { type: 'data', data: source['data'] };
  return { type: 'file', mediaType: source['media_type'] ?? fallback, data };
}

/** Restores the URLs of a part that was kept as JSON, and the text of reasoning. */
function revived(part: JsonRecord, { thinking }: JsonRecord): JsonRecord {
  const { data, type } = part;
  if (type === 'reasoning') return { type, text: thinking, ...part };
  if (!isRecord(data) || data['type'] !== 'url') return part;
  return { ...part, data: { ...data, url: new URL(spelled(data['url'])) } };
}

// Replies

/** Returns the content of a reply as blocks that keep the parts they came from: a later request needs these, in any process. */
export function replyBlocks(content: readonly object[]): readonly JsonRecord[] {
  return objectsOf(content).flatMap((part) => {
    const sent = promptPart(part);
    const block = sent && replyBlock(sent);
    return block ? [block] : [];
  });
}

function replyBlock(part: JsonRecord): JsonRecord | undefined {
  const block = blockOf(part, 'assistant');
  if (!block) return undefined;
  if (part['type'] !== 'reasoning') return withOrigin(block, withoutBytes(part));
  // Reasoning is counted with all members of its block, so its text is there once.
  const { text: _, ...others } = part;
  return withOrigin(block, others);
}

/** Returns a part of a reply as the next prompt has it; undefined for parts that only the program sees. */
function promptPart(part: JsonRecord): JsonRecord | undefined {
  const { type, providerMetadata } = part;
  const options = isRecord(providerMetadata) && { providerOptions: providerMetadata };
  switch (type) {
    case 'text':
    case 'reasoning':
      return { type, text: part['text'], ...options };
    case 'file':
    case 'reasoning-file':
      return { type, mediaType: part['mediaType'], data: part['data'], ...options };
    case 'custom':
      return { type, kind: part['kind'], ...options };
    case 'tool-call': {
      const { toolCallId, toolName, providerExecuted } = part;
      const input = parsedInput(part['input']);
      return {
        type,
        toolCallId,
        toolName,
        input,
        ...(providerExecuted === true && { providerExecuted }),
        ...options,
      };
    }
    case 'tool-result': {
      const { toolCallId, toolName, result, isError } = part;
      const output = { type: isError === true ? 'error-json' : 'json', value: result };
      return { type, toolCallId, toolName, output, ...options };
    }
    default:
      return undefined;
  }
}

/** Models may write arguments that are no JSON. */
function parsedInput(input: unknown): unknown {
  if (typeof input !== 'string') return input ?? {};
  try {
    return JSON.parse(input.trim() === '' ? '{}' : input) as unknown;
  } catch {
    return {};
  }
}

/** Returns a value that should be a text as one. */
function spelled(value: unknown): string {
  return typeof value === 'string' ? value : value instanceof URL ? value.href : '';
}
