/** Complete responses of OpenAI Responses for the codec suite: written in the provider's shape, and read as a strict client would. */
import type { ToolCall } from '../../../../src/codecs/codec.ts';
import type { Usage } from '../../../../src/conversation/conversation.ts';
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must } from '../sse.ts';
import { bytes, messageItem, reasoningItem } from './bodies.ts';

/** An output item as a client reads it. */
export type Item = {
  readonly id: string;
  readonly type: string;
  readonly status?: string;
  readonly content?: readonly { readonly type: string; readonly text: string }[];
  readonly summary?: readonly { readonly type: string; readonly text: string }[];
  readonly call_id?: string;
  readonly name?: string;
  readonly arguments?: string;
};

export function response(turn: ScriptedTurn): Uint8Array {
  return responseSaying(turn, usageOf(turn.usage));
}

export function responseSaying(turn: ScriptedTurn, usage: unknown): Uint8Array {
  return bytes(responseOf(turn, 1, usage));
}

/** The finished response object; `number` distinguishes several. */
export function responseOf(turn: ScriptedTurn, number: number, usage: unknown) {
  return {
    ...responseHead(number),
    status: turn.finish === 'length' ? 'incomplete' : 'completed',
    incomplete_details: turn.finish === 'length' ? { reason: 'max_output_tokens' } : null,
    output: turn.parts.map((part, at) => itemOf(part, `${number}_${at}`, isCutOff(turn, at))),
    usage: usage ?? null,
  };
}

/** The fields of a response before it has any output. */
export function responseHead(number: number) {
  return {
    id: `resp_${number}`,
    object: 'response',
    created_at: 1_790_000_000 + number,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    model: 'responses-large-2026',
    output: [] as readonly Item[],
    parallel_tool_calls: true,
    tools: [{ type: 'function', name: 'run', parameters: {}, strict: false }],
    usage: null as unknown,
  };
}

export function isCutOff({ finish, parts }: ScriptedTurn, at: number): boolean {
  return finish === 'length' && at === parts.length - 1;
}

export function itemOf(part: ScriptedPart, id: string, isOpen: boolean): Item {
  const said = part.pieces.join('');
  const status = isOpen ? 'incomplete' : 'completed';
  switch (part.type) {
    case 'text':
      return { ...messageItem(said, `msg_${id}`), status };
    case 'reasoning':
      return reasoningItem(said, `rs_${id}`);
    case 'call':
      return {
        id: `fc_${id}`,
        type: 'function_call',
        status,
        arguments: said,
        call_id: part.id,
        name: part.name,
      };
  }
}

export function usageOf(usage: Usage) {
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  };
}

export type ResponseView = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Item[];
};

export function clientResponse(body: Uint8Array): ClientView {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  const read = JSON.parse(text) as ResponseView;
  return { ...viewOf(read), ...saidIn(read.output) };
}

/** Everything except texts and reasoning, which streams send piece by piece. */
export function viewOf(read: ResponseView): Omit<ClientView, 'text' | 'reasoning'> {
  must(read['object'] === 'response', 'it is no response');
  const calls = read.output.flatMap((item): readonly ToolCall[] =>
    item.type === 'function_call'
      ? [{ id: item.call_id!, name: item.name!, argumentsJson: item.arguments! }]
      : [],
  );
  const { reason } = (read['incomplete_details'] ?? {}) as { readonly reason?: string };
  must((read.status === 'incomplete') === (reason !== undefined), 'the status and its reason do not fit');
  must(read.status === 'completed' || reason === 'max_output_tokens', `unknown status ${read.status}`);
  const waits = calls.length > 0 ? 'calls' : 'stop';
  return {
    calls,
    finish: read.status === 'incomplete' ? 'length' : waits,
    usage: toUsage(read['usage']),
    error: undefined,
  };
}

export function saidIn(items: readonly Item[]): { readonly text: string; readonly reasoning: string } {
  const joined = (list: Item['content']) => (list ?? []).map(({ text }) => text).join('');
  return {
    text: items.map((item) => (item.type === 'message' ? joined(item.content) : '')).join(''),
    reasoning: items.map((item) => joined(item.summary)).join(''),
  };
}

function toUsage(raw: unknown): Usage {
  const numbers = raw as Readonly<Record<string, number>>;
  const { cached_tokens, cache_write_tokens } = (raw as Readonly<Record<string, Record<string, number>>>)[
    'input_tokens_details'
  ]!;
  const [input, output] = [numbers['input_tokens']!, numbers['output_tokens']!];
  must(numbers['total_tokens'] === input + output, 'the total is not the sum');
  return { input, cacheRead: cached_tokens!, cacheWrite: cache_write_tokens!, output };
}
