/** Complete responses of Anthropic Messages for the codec suite: written in the provider's shape, and read as a strict client would. */
import type { ToolCall } from '../../../../src/codecs/codec.ts';
import type { Usage } from '../../../../src/conversation/conversation.ts';
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must } from '../sse.ts';

export const stops = { stop: 'end_turn', calls: 'tool_use', length: 'max_tokens' } as const;

/** A content block as a client reads it. */
export type Block =
  | { type: 'text'; text: string }
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'tool_use' | 'server_tool_use'; id: string; name: string; input: string }
  | { type: 'web_search_tool_result'; tool_use_id: string };

export function response(turn: ScriptedTurn): Uint8Array {
  return responseSaying(turn, usageOf(turn.usage));
}

export function responseSaying(turn: ScriptedTurn, usage: unknown): Uint8Array {
  const text = JSON.stringify({ ...messageOf(turn), content: 'CONTENT', usage });
  const content = turn.parts.map(blockText).join(',');
  return new TextEncoder().encode(text.replace('"CONTENT"', () => `[${content}]`));
}

/** A message without its usage. */
export function messageOf({ finish }: Pick<ScriptedTurn, 'finish'>, number = 1) {
  return {
    id: `msg_${number}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-opus-4-6',
    content: [] as readonly unknown[],
    stop_reason: stops[finish],
    stop_sequence: null,
  };
}

export function usageOf(usage: Usage) {
  return {
    input_tokens: usage.input - usage.cacheRead - usage.cacheWrite,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: usage.cacheWrite, ephemeral_1h_input_tokens: 0 },
    output_tokens: usage.output,
    service_tier: 'standard',
  };
}

/** Returns the block as JSON text, with inputs as the model spelled them. A model that was cut off leaves no input. */
function blockText(part: ScriptedPart): string {
  const said = part.pieces.join('');
  switch (part.type) {
    case 'text':
      return JSON.stringify({ type: 'text', text: said });
    case 'reasoning':
      return JSON.stringify({ type: 'thinking', thinking: said, signature: 'EqQBCkYIBxgC' });
    case 'call': {
      const head = JSON.stringify({ type: 'tool_use', id: part.id, name: part.name });
      return `${head.slice(0, -1)},"input":${isJson(said) ? said : '{}'}}`;
    }
  }
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

type Json = Readonly<Record<string, unknown>>;

export function clientResponse(body: Uint8Array): ClientView {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  const message = JSON.parse(text) as Json & { readonly content: readonly Block[] };
  must(message['type'] === 'message' && message['role'] === 'assistant', 'it is no message of the assistant');
  // The inputs unparsed, because parsing would not keep their spelling.
  const inputs = [...text.matchAll(/"name":"[^"]*","input":(\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})/gs)].map(
    (m) => m[1]!,
  );
  let next = 0;
  const blocks = message.content.map((block) =>
    block.type === 'tool_use' ? { ...block, input: inputs[next++]! } : block,
  );
  return viewOf(blocks, message['stop_reason'] as string, message['usage'] as Json);
}

export function viewOf(blocks: readonly Block[], stop: string, usage: Json): ClientView {
  const calls = blocks.flatMap((block): readonly ToolCall[] =>
    block.type === 'tool_use' ? [{ id: block.id, name: block.name, argumentsJson: block.input }] : [],
  );
  must(stop !== 'tool_use' || calls.length > 0, 'the client is told to run calls that are not there');
  const finish = Object.entries(stops).find(([, word]) => word === stop)?.[0];
  must(finish !== undefined, `unknown stop ${stop}`);
  return {
    ...saidIn(blocks),
    calls,
    finish: finish as ScriptedTurn['finish'],
    usage: toUsage(usage),
    error: undefined,
  };
}

export function saidIn(blocks: readonly Block[]): { readonly text: string; readonly reasoning: string } {
  return {
    text: blocks.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    reasoning: blocks.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
  };
}

function toUsage(raw: Json): Usage {
  const numbers = raw as Readonly<Record<string, number>>;
  const cacheRead = numbers['cache_read_input_tokens']!;
  const cacheWrite = numbers['cache_creation_input_tokens']!;
  return {
    input: numbers['input_tokens']! + cacheRead + cacheWrite,
    cacheRead,
    cacheWrite,
    output: numbers['output_tokens']!,
  };
}
