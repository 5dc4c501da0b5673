/**
 * Rebuilds the content blocks of one streamed message, so that the turn can be sent back verbatim: blocks that arrived whole keep
 * their bytes, blocks that arrived in deltas are joined. https://docs.anthropic.com/en/docs/build-with-claude/streaming
 */
import { jsonBytes } from '../../conversation/splice.ts';
import { isRecord } from '../../conversation/json-record.ts';
import { jsonList, stringIn, withMembers } from '../event-json.ts';

type BlockState = {
  /** The block as its start event gave it. */
  readonly start: Uint8Array;
  /** Members that arrive in deltas, with their value so far. */
  readonly members: Map<string, unknown>;
  readonly citations: unknown[];
  /** The input as JSON text: its numbers must keep their spelling. */
  input: string;
};

export interface BlockRecorder {
  /** Starts a block. `block` is the JSON of the content block in the start event. */
  start(index: number, block: Uint8Array): void;
  delta(index: number, delta: unknown): void;
  /** Returns the content array as JSON bytes, blocks in order of their index. */
  turn(): Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function recordBlocks(): BlockRecorder {
  const states = new Map<number, BlockState>();
  return {
    start(index, block) {
      states.set(index, { start: block, members: new Map(), citations: [], input: '' });
    },
    delta(index, delta) {
      const state = states.get(index);
      if (state) applyDelta(state, delta);
    },
    turn() {
      const ordered = [...states].toSorted(([a], [b]) => a - b).map(([, state]) => blockBytes(state));
      return jsonList(ordered);
    },
  };
}

function applyDelta(state: BlockState, delta: unknown): void {
  const kind = stringIn(delta, 'type');
  const { members } = state;
  switch (kind) {
    case 'text_delta':
      members.set('text', `${textOf(state, 'text')}${stringIn(delta, 'text') ?? ''}`);
      break;
    case 'thinking_delta':
      members.set('thinking', `${textOf(state, 'thinking')}${stringIn(delta, 'thinking') ?? ''}`);
      break;
    case 'input_json_delta':
      state.input += stringIn(delta, 'partial_json') ?? '';
      break;
    case 'citations_delta':
      state.citations.push(isRecord(delta) ? delta['citation'] : undefined);
      break;
    case 'signature_delta':
    case 'compaction_delta':
      // These carry the final value of each member they name, null included.
      for (const [key, value] of Object.entries(isRecord(delta) ? delta : {}))
        if (key !== 'type') members.set(key, value);
      break;
    case undefined:
    default:
      // A delta of an unknown kind: the client gets it, but the rebuilt turn lacks it.
      break;
  }
}

function textOf({ members, start }: BlockState, key: string): string {
  const text = members.get(key) ?? stringIn(JSON.parse(decoder.decode(start)), key);
  return typeof text === 'string' ? text : '';
}

function blockBytes({ start, members, citations, input }: BlockState): Uint8Array {
  const values = [...members].map(([key, value]): [string, Uint8Array] => [key, jsonBytes(value)]);
  return withMembers(start, {
    ...Object.fromEntries(values),
    ...(citations.length > 0 ? { citations: jsonBytes(citations) } : {}),
    ...(isObject(input) ? { input: encoder.encode(input) } : {}),
  });
}

/**
 * True for the JSON of an object. A message that stopped at its token limit leaves half an input; then the `{}` of the start
 * event is used.
 */
function isObject(json: string): boolean {
  try {
    return isRecord(JSON.parse(json));
  } catch {
    return false;
  }
}
