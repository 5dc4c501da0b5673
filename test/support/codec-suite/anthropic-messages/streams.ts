/** Streams of Anthropic Messages for the codec suite: written in the provider's shape, and read as a strict client would. */
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must, sseEvents, sseText } from '../sse.ts';
import { type Block, isJson, messageOf, saidIn, stops, usageOf, viewOf } from './responses.ts';

type Typed = { readonly type: string } & Readonly<Record<string, unknown>>;

function send(data: Typed): string {
  return sseText(data, data.type);
}

export function stream(turn: ScriptedTurn, number: number): string {
  const said = usageOf(turn.usage);
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = said;
  const last = { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens };
  return streamSaying(turn, number, { ...said, output_tokens: 1 }, [last]);
}

/** Returns the message with one usage object at its start, and one after its content for each `message_delta`. */
export function streamSaying(
  turn: ScriptedTurn,
  number: number,
  start: unknown,
  ends: readonly unknown[],
): string {
  const begun = { ...messageOf(turn, number), stop_reason: null, usage: start };
  return [
    send({ type: 'message_start', message: begun }),
    ...turn.parts.flatMap((part, index) => [
      ...(index === 1 ? [send({ type: 'ping' })] : []),
      send({ type: 'content_block_start', index, content_block: startOf(part) }),
      ...deltasOf(part).map((delta) => send({ type: 'content_block_delta', index, delta })),
      send({ type: 'content_block_stop', index }),
    ]),
    ...ends.map((usage, at) => {
      const stop_reason = at === ends.length - 1 ? stops[turn.finish] : null;
      return send({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage });
    }),
    send({ type: 'message_stop' }),
  ].join('');
}

function startOf(part: ScriptedPart): Typed {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: '' };
    case 'reasoning':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'call':
      return { type: 'tool_use', id: part.id, name: part.name, input: {} };
  }
}

function deltasOf(part: ScriptedPart): readonly Typed[] {
  switch (part.type) {
    case 'text':
      return part.pieces.map((text) => ({ type: 'text_delta', text }));
    case 'reasoning':
      return [
        ...part.pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: 'EqQBCkYIBxgC' },
      ];
    case 'call':
      return ['', ...part.pieces].map((partial_json) => ({ type: 'input_json_delta', partial_json }));
  }
}

export const streamError = send({
  type: 'error',
  error: { type: 'overloaded_error', message: 'Overloaded' },
});

type Data = Typed & {
  readonly index: number;
  readonly message: Readonly<Record<string, unknown>>;
  readonly content_block: Block;
  readonly delta: Readonly<Record<string, string>>;
  readonly usage: Readonly<Record<string, unknown>>;
  readonly error: { readonly message: string };
};

/** A message as it grows; `open` is the block whose deltas may come. */
type Growing = {
  begun: boolean;
  readonly blocks: Block[];
  open: Block | undefined;
  usage: Readonly<Record<string, unknown>>;
  stop: string | undefined;
  ended: boolean;
};

export function client(sse: string): ClientView {
  const message: Growing = {
    begun: false,
    blocks: [],
    open: undefined,
    usage: {},
    stop: undefined,
    ended: false,
  };
  for (const { event, data } of sseEvents(sse)) {
    const value = JSON.parse(data) as Data;
    must(event === value.type, 'the name of the event is not its type');
    if (value.type === 'error')
      return {
        ...saidIn(message.blocks),
        calls: [],
        finish: undefined,
        usage: undefined,
        error: value.error.message,
      };
    take(message, value);
  }
  must(message.ended && message.stop !== undefined, 'the stream does not end');
  const blocks = message.blocks.map((block) =>
    // No client keeps an input that was cut off.
    block.type === 'tool_use' ? { ...block, input: block.input || '{}' } : block,
  );
  return viewOf(blocks, message.stop, message.usage);
}

function take(message: Growing, data: Data): void {
  must(!message.ended, 'something follows message_stop');
  must(
    message.begun !== (data.type === 'message_start') || data.type === 'ping',
    'message_start does not come once, first',
  );
  switch (data.type) {
    case 'message_start':
      message.begun = true;
      message.usage = data.message['usage'] as typeof message.usage;
      break;
    case 'content_block_start':
      must(
        message.open === undefined && message.stop === undefined,
        'a block starts in another or after the end',
      );
      must(data.index === message.blocks.length, 'a block index leaves a gap');
      message.open =
        'input' in data.content_block ? { ...data.content_block, input: '' } : { ...data.content_block };
      message.blocks.push(message.open);
      break;
    case 'content_block_delta':
      must(
        message.open !== undefined && data.index === message.blocks.length - 1,
        'a delta belongs to no open block',
      );
      grow(message.open, data.delta);
      break;
    case 'content_block_stop':
      must(
        message.open !== undefined && data.index === message.blocks.length - 1,
        'a stop belongs to no open block',
      );
      message.open = undefined;
      break;
    case 'message_delta':
      must(message.open === undefined && message.stop === undefined, 'the message ends twice or in a block');
      message.stop = data.delta['stop_reason'];
      message.usage = { ...message.usage, ...data.usage };
      break;
    case 'message_stop':
      must(message.stop !== undefined, 'message_stop comes before message_delta');
      message.ended = true;
      break;
    case 'ping':
      break;
    default:
      throw new Error(`unknown event ${data.type}`);
  }
}

function grow(block: Block, delta: Readonly<Record<string, string>>): void {
  switch (delta['type']) {
    case 'text_delta':
      must(block.type === 'text', 'a text delta for another block');
      block.text += delta['text']!;
      break;
    case 'thinking_delta':
      must(block.type === 'thinking', 'a thinking delta for another block');
      block.thinking += delta['thinking']!;
      break;
    case 'signature_delta':
      must(block.type === 'thinking', 'a signature for another block');
      block.signature = delta['signature']!;
      break;
    case 'input_json_delta':
      must('input' in block, 'an input delta for another block');
      block.input += delta['partial_json']!;
      break;
    case 'citations_delta':
      must(block.type === 'text', 'a citation for another block');
      break;
    case undefined:
    default:
      throw new Error(`unknown delta ${String(delta['type'])}`);
  }
}

export function heard(sse: string, except: string): readonly string[] {
  const hidden = new Set<number>();
  return sseEvents(sse).flatMap(({ data }) => {
    if (!isJson(data)) return [];
    const { type, index, content_block: block, delta } = JSON.parse(data) as Data;
    if (type === 'content_block_start') {
      if (block.type !== 'tool_use') hidden.delete(index);
      else if (block.name === except) hidden.add(index);
      else hidden.delete(index);
    }
    if (hidden.has(index)) return [];
    const call = type === 'content_block_start' && block.type === 'tool_use' ? [block.id, block.name] : [];
    const said =
      type === 'content_block_delta'
        ? Object.entries(delta).map(([key, value]) => (key === 'type' ? '' : value))
        : [];
    return [...call, ...said].filter((piece) => typeof piece === 'string' && piece !== '');
  });
}
