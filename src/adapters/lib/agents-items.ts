/**
 * Writes the items of OpenAI Agents for the engine, and reads folded ones back. Each item is one message, because neighboring messages of one
 * side are one turn in the wire format. Items of other kinds than messages, reasoning and function calls are never edited or removed. Pure.
 */
import type { AgentInputItem } from '@openai/agents';
import { type JsonRecord, isRecord, objectsOf, wordAt } from '../../conversation/json-scan.ts';
import type { FoldedBlock, FoldedMessage, MessageForm, WrittenMessage } from './wire-body.ts';
import {
  addressOf,
  originOf,
  sealedIn,
  sourceAt,
  sourceOfBytes,
  unknownBlock,
  withOrigin,
} from './media-blocks.ts';

export const itemForm: MessageForm<AgentInputItem> = {
  write: (item) => writeItem(item),
  read(folded) {
    const { source, blocks, role } = folded;
    if (source) return changedItems(source, folded) as unknown as readonly AgentInputItem[];
    const items = blocks.flatMap(({ block }): readonly JsonRecord[] => {
      const origin = originOf(block);
      if (origin !== undefined) return isRecord(origin) ? [kept(origin, block)] : [];
      if (block['type'] === 'tool_result')
        return [resultItem(block, folded.toolOf(wordAt(block, 'tool_use_id') ?? ''))];
      return [{ type: 'message', role, content: [contentPart(block)] }];
    });
    return items as unknown as readonly AgentInputItem[];
  },
  order: withFollowers,
};

// Items to blocks

function writeItem(item: JsonRecord): WrittenMessage {
  switch (item['type']) {
    case undefined:
    case 'message':
      return writeMessage(item);
    case 'reasoning':
      return { role: 'assistant', content: [reasoningBlock(item)] };
    case 'function_call': {
      // The model reads its arguments as they are spelled.
      const input = wordAt(item, 'arguments') ?? '';
      return {
        role: 'assistant',
        content: [{ type: 'tool_use', id: item['callId'], name: item['name'], input }],
      };
    }
    case 'function_call_result':
      return {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: item['callId'], content: outputOf(item['output']) }],
      };
    default: {
      const isResult = /result|output/.test(wordAt(item, 'type') ?? '');
      return { role: isResult ? 'user' : 'assistant', content: [keptBlock(item)] };
    }
  }
}

/** It has the members that are sent to the provider, because all of them are counted. */
function reasoningBlock({ id, content, providerData }: JsonRecord): JsonRecord {
  const { signature } = sealedIn(providerData);
  const summary = [{ type: 'summary_text' }];
  return { type: 'thinking', thinking: textsIn(content), signature, id, summary };
}

/** A block that the wire format keeps in its place. For a tool that the provider ran, it has the members that are sent, because they are counted. */
function keptBlock(item: JsonRecord): JsonRecord {
  const { id, status, providerData } = item;
  const isRun = item['type'] === 'hosted_tool_call' && isRecord(providerData);
  if (!isRun) return unknownBlock('compaction', item);
  const kind = wordAt(providerData, 'type') ?? '';
  return unknownBlock(goesWithStep.test(kind) ? kind : 'compaction', { id, status, ...providerData });
}

/** Calls that the provider ran itself, each with its result in one item: a fold may remove them with their step. */
const goesWithStep = /^(?:web_search|file_search|code_interpreter)_call$/;

function writeMessage({ role, content }: JsonRecord): WrittenMessage {
  const side = role === 'assistant' || role === 'system' ? role : 'user';
  if (typeof content === 'string') return { role: side, content: [{ type: 'text', text: content }] };
  const blocks = objectsOf(content).map(partBlock);
  return { role: side, content: blocks.length > 0 ? blocks : [{ type: 'agents-empty' }] };
}

function partBlock(part: JsonRecord): JsonRecord {
  const text = part['type'] === 'refusal' ? undefined : wordAt(part, 'text');
  if (text !== undefined && text !== '') return { type: 'text', text };
  return (
    imageBlock(part) ?? fileBlock(part) ?? unknownBlock(`agents-${wordAt(part, 'type') ?? 'part'}`, part)
  );
}

function imageBlock({ type, image }: JsonRecord): JsonRecord | undefined {
  if (type !== 'input_image' && type !== 'image') return undefined;
  const source = isRecord(image) ? sourceOfBytes(image['data'], image['mediaType'] ?? 'image/*') : undefined;
  if (source) return { type: 'image', source };
  const address = isRecord(image) ? wordAt(image, 'url') : typeof image === 'string' ? image : undefined;
  return address === undefined ? undefined : { type: 'image', source: sourceAt(address) };
}

/** Writes a PDF. Other files are kept as they are. */
function fileBlock({ type, file }: JsonRecord): JsonRecord | undefined {
  const isPdf = typeof file === 'string' && file.startsWith('data:application/pdf;base64,');
  return type === 'input_file' && isPdf ? { type: 'document', source: sourceAt(file) } : undefined;
}

function outputOf(output: unknown): string | readonly JsonRecord[] {
  if (typeof output === 'string') return output;
  if (isRecord(output))
    return output['type'] === 'text' ? (wordAt(output, 'text') ?? '') : [partBlock(output)];
  return objectsOf(output).map(partBlock);
}

function textsIn(content: unknown): string {
  return objectsOf(content)
    .map((part) => wordAt(part, 'text') ?? '')
    .join('');
}

// Blocks to items

function changedItems(source: JsonRecord, folded: FoldedMessage<AgentInputItem>): readonly JsonRecord[] {
  return source['type'] === undefined || source['type'] === 'message'
    ? [{ ...source, content: changedContent(source['content'], folded.blocks) }]
    : folded.blocks.map((block) => changedItem(source, block, folded));
}

function changedContent(content: unknown, blocks: readonly FoldedBlock[]): unknown {
  if (typeof content === 'string')
    return blocks.length === 1
      ? (wordAt(blocks[0]!.block, 'text') ?? '')
      : blocks.map(({ block }) => contentPart(block));
  const parts = objectsOf(content);
  return blocks.flatMap(({ block, at, isChanged }) => {
    const part = at === undefined ? undefined : parts[at];
    if (!part) return block['type'] === 'agents-empty' ? [] : [contentPart(block)];
    return [isChanged ? { ...part, text: block['text'] } : part];
  });
}

function changedItem(
  source: JsonRecord,
  { block, at, isChanged }: FoldedBlock,
  folded: FoldedMessage<AgentInputItem>,
): JsonRecord {
  // The answer to a recall may stand beside the result.
  if (at === undefined) return resultItem(block, folded.toolOf(wordAt(block, 'tool_use_id') ?? ''));
  if (!isChanged) return source;
  if (block['type'] === 'tool_use') return { ...source, arguments: argumentsOf(block) };
  const { content } = block;
  const { output } = source;
  if (typeof content === 'string')
    return { ...source, output: typeof output === 'string' ? content : { type: 'text', text: content } };
  const parts = Array.isArray(output) ? objectsOf(output) : [output as JsonRecord];
  return {
    ...source,
    output: objectsOf(content).map((item) => {
      const part = typeof item['at'] === 'number' ? parts[item['at']] : undefined;
      const { at: _, ...plain } = item;
      return part && JSON.stringify(partBlock(part)) === JSON.stringify(plain) ? part : contentPart(item);
    }),
  };
}

function resultItem({ tool_use_id: callId, content }: JsonRecord, name: string): JsonRecord {
  const output =
    typeof content === 'string' ? { type: 'text', text: content } : objectsOf(content).map(contentPart);
  return { type: 'function_call_result', callId, name, status: 'completed', output };
}

function contentPart(block: JsonRecord): JsonRecord {
  const { source } = block;
  if (block['type'] === 'document' && isRecord(source))
    return { type: 'input_file', file: addressOf(source) };
  if (block['type'] !== 'image' || !isRecord(source))
    return { type: 'input_text', text: wordAt(block, 'text') ?? '' };
  return { type: 'input_image', image: addressOf(source) };
}

/** Returns an item of a reply. Only its arguments may have been folded since. */
function kept(origin: JsonRecord, block: JsonRecord): JsonRecord {
  if (origin['type'] !== 'function_call') return origin;
  const written = writeItem(origin).content[0]?.['input'];
  return JSON.stringify(written) === JSON.stringify(block['input'])
    ? origin
    : { ...origin, arguments: argumentsOf(block) };
}

/** Returns the arguments as JSON. They are a text already if the program's own item had a text. */
function argumentsOf({ input }: JsonRecord): string {
  return typeof input === 'string' ? input : JSON.stringify(input);
}

// Replies

/** Returns the items of a reply as blocks. The first block of each keeps the item: a later request needs it, in any process. */
export function itemBlocks(output: readonly object[]): readonly JsonRecord[] {
  return objectsOf(output).flatMap((item) =>
    writeItem(item).content.flatMap((block, at): readonly JsonRecord[] =>
      block ? [withOrigin(block, at === 0 ? item : null)] : [],
    ),
  );
}

/** Leaves out reasoning that has lost the item that it led to: providers refuse it. */
function withFollowers(items: readonly AgentInputItem[]): AgentInputItem[] {
  let isFollowed = false;
  return items
    .toReversed()
    .filter((item) => {
      const { type, role } = item as JsonRecord;
      if (type === 'reasoning') return isFollowed;
      isFollowed = type !== 'function_call_result' && role !== 'user' && role !== 'system';
      return true;
    })
    .toReversed();
}
