/**
 * Rebuilds the content blocks of one streamed message, so that the turn can be sent back verbatim.
 * https://docs.anthropic.com/en/docs/build-with-claude/streaming
 */
import { concatBytes, jsonBytes } from '../../conversation/splice.ts';
import { isRecord, recordAt, setMembers, stringIn } from '../event-json.ts';

type BlockState = {
  readonly block: Record<string, unknown>;
  /** Pieces of the input JSON, kept as text: its numbers must keep their spelling. */
  readonly input: string[];
};

export interface BlockRecorder {
  start(index: number, block: unknown): void;
  delta(index: number, delta: unknown): void;
  /** The blocks so far as values, in order of their index. */
  blocks(): readonly unknown[];
  /** The content array as JSON bytes. */
  turn(): Uint8Array;
}

export function recordBlocks(): BlockRecorder {
  const states = new Map<number, BlockState>();
  const ordered = () => [...states].toSorted(([a], [b]) => a - b).map(([, state]) => state);
  return {
    start(index, block) {
      if (isRecord(block)) states.set(index, { block: { ...block }, input: [] });
    },
    delta(index, delta) {
      const state = states.get(index);
      if (state) applyDelta(state, delta);
    },
    blocks: () =>
      ordered().map((state) => JSON.parse(new TextDecoder().decode(blockBytes(state))) as unknown),
    turn() {
      const encoder = new TextEncoder();
      const items = ordered().flatMap((state, index) =>
        index > 0 ? [encoder.encode(','), blockBytes(state)] : [blockBytes(state)],
      );
      return concatBytes([encoder.encode('['), ...items, encoder.encode(']')]);
    },
  };
}

function applyDelta({ block, input }: BlockState, delta: unknown): void {
  switch (stringIn(delta, 'type')) {
    case 'text_delta':
      append(block, 'text', stringIn(delta, 'text'));
      break;
    case 'thinking_delta':
      append(block, 'thinking', stringIn(delta, 'thinking'));
      break;
    case 'signature_delta':
      block['signature'] = stringIn(delta, 'signature');
      break;
    case 'input_json_delta':
      input.push(stringIn(delta, 'partial_json') ?? '');
      break;
    case 'citations_delta':
      block['citations'] = [
        ...(Array.isArray(block['citations']) ? (block['citations'] as unknown[]) : []),
        recordAt(delta, 'citation'),
      ];
      break;
    case 'compaction_delta':
      append(block, 'content', stringIn(delta, 'content'));
      break;
    case undefined:
    default:
      // A delta of a kind not known yet: the client gets it; what goes back lacks it.
      break;
  }
}

function append(block: Record<string, unknown>, key: string, text: string | undefined): void {
  const before = block[key];
  block[key] = (typeof before === 'string' ? before : '') + (text ?? '');
}

function blockBytes({ block, input }: BlockState): Uint8Array {
  const bytes = jsonBytes(block);
  const json = input.join('');
  return json.trim() === '' || !isJson(json)
    ? bytes
    : setMembers(bytes, { input: new TextEncoder().encode(json) });
}

/** A message that stopped at its token limit leaves half an input. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
