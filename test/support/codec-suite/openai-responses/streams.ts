/** Streams of OpenAI Responses for the codec suite: written in the provider's shape, and read as a strict client would. */
import type { ClientView, ScriptedPart, ScriptedTurn } from '../fixture.ts';
import { must, sseEvents, sseText } from '../sse.ts';
import {
  isCutOff,
  type Item,
  itemOf,
  type ResponseView,
  responseHead,
  responseOf,
  saidIn,
  usageOf,
  viewOf,
} from './responses.ts';

type Typed = { readonly type: string } & Readonly<Record<string, unknown>>;

export function stream(turn: ScriptedTurn, number: number): string {
  return streamSaying(turn, number, usageOf(turn.usage));
}

/** Only the last event reports usage. */
export function streamSaying(turn: ScriptedTurn, number: number, usage: unknown): string {
  const end = turn.finish === 'length' ? 'response.incomplete' : 'response.completed';
  const events: readonly Typed[] = [
    { type: 'response.created', response: responseHead(number) },
    { type: 'response.in_progress', response: responseHead(number) },
    ...turn.parts.flatMap((part, at) =>
      eventsOf(part, at, itemOf(part, `${number}_${at}`, isCutOff(turn, at))),
    ),
    { type: end, response: responseOf(turn, number, usage) },
  ];
  return events.map((event, at) => sseText({ ...event, sequence_number: at }, event.type)).join('');
}

function eventsOf(part: ScriptedPart, output_index: number, item: Item): readonly Typed[] {
  const inside = (type: string, more: object): Typed => ({
    type: `response.${type}`,
    item_id: item.id,
    output_index,
    ...more,
  });
  const said = part.pieces.join('');
  return [
    { type: 'response.output_item.added', output_index, item: startOf(item) },
    ...insideEvents(part, said, inside),
    { type: 'response.output_item.done', output_index, item },
  ];
}

function startOf(item: Item): Item {
  switch (item.type) {
    case 'message':
      return { ...item, status: 'in_progress', content: [] };
    case 'reasoning':
      return { ...item, summary: [] };
    default:
      return { ...item, status: 'in_progress', arguments: '' };
  }
}

function insideEvents(
  part: ScriptedPart,
  said: string,
  inside: (type: string, more: object) => Typed,
): readonly Typed[] {
  switch (part.type) {
    case 'text': {
      const at = { content_index: 0 };
      const whole = (text: string) => ({ type: 'output_text', annotations: [], logprobs: [], text });
      return [
        inside('content_part.added', { ...at, part: whole('') }),
        ...part.pieces.map((delta) => inside('output_text.delta', { ...at, delta, logprobs: [] })),
        inside('output_text.done', { ...at, text: said, logprobs: [] }),
        inside('content_part.done', { ...at, part: whole(said) }),
      ];
    }
    case 'reasoning': {
      const at = { summary_index: 0 };
      const whole = (text: string) => ({ type: 'summary_text', text });
      return [
        inside('reasoning_summary_part.added', { ...at, part: whole('') }),
        ...part.pieces.map((delta) => inside('reasoning_summary_text.delta', { ...at, delta })),
        inside('reasoning_summary_text.done', { ...at, text: said }),
        inside('reasoning_summary_part.done', { ...at, part: whole(said) }),
      ];
    }
    case 'call':
      return [
        ...part.pieces.map((delta) => inside('function_call_arguments.delta', { delta })),
        inside('function_call_arguments.done', { arguments: said }),
      ];
  }
}

export const streamError = sseText(
  {
    type: 'error',
    code: 'server_error',
    message: 'The server had an error.',
    param: null,
    sequence_number: 9,
  },
  'error',
);

type Data = Typed & {
  readonly sequence_number: number;
  readonly output_index: number;
  readonly item_id: string;
  readonly item: Item;
  readonly delta: string;
  readonly message: string;
  readonly response: ResponseView;
};

/** A response as it grows: the finished items, and the open one. */
type Growing = {
  id: string | undefined;
  readonly items: Item[];
  open: { readonly item: Item; said: string } | undefined;
  text: string;
  reasoning: string;
  end: ResponseView | undefined;
};

export function client(sse: string): ClientView {
  const growing: Growing = {
    id: undefined,
    items: [],
    open: undefined,
    text: '',
    reasoning: '',
    end: undefined,
  };
  let next = 0;
  for (const { event, data } of sseEvents(sse)) {
    const value = JSON.parse(data) as Data;
    const { text, reasoning } = growing;
    must(event === value.type, 'the name of the event is not its type');
    must(growing.end === undefined, 'something follows the end');
    if (value.type === 'error')
      return { text, reasoning, calls: [], finish: undefined, usage: undefined, error: value.message };
    must(value.sequence_number === next++, 'a sequence number leaves a gap');
    take(growing, value);
  }
  const { end, items, text, reasoning } = growing;
  must(end !== undefined, 'the stream does not end');
  must(end.id === growing.id, 'the id changes');
  const kept = new Set(end.output.map(({ id }) => id));
  const missing = items.filter(({ id }) => !kept.has(id));
  // Reasoning that nothing follows must not be sent back, so the last event may leave it out.
  must(
    missing.every(({ type }) => type === 'reasoning'),
    'the end leaves an item out',
  );
  const expected = items.filter(({ id }) => kept.has(id));
  must(JSON.stringify(end.output) === JSON.stringify(expected), 'the end says something else');
  return { ...viewOf(end), text, reasoning };
}

function take(growing: Growing, data: Data): void {
  const { open } = growing;
  must(
    (growing.id === undefined) === (data.type === 'response.created'),
    'the start does not come once, first',
  );
  switch (data.type) {
    case 'response.created':
      growing.id = data.response.id;
      return;
    case 'response.in_progress':
      must(growing.items.length === 0 && !open, 'it begins again');
      return;
    case 'response.completed':
    case 'response.incomplete':
      must(open === undefined, 'an item is open at the end');
      growing.end = data.response;
      return;
    case 'response.output_item.added':
      must(open === undefined, 'an item begins in another');
      must(data.output_index === growing.items.length, 'an output index leaves a gap');
      growing.open = { item: data.item, said: '' };
      return;
    default:
      must(
        open !== undefined && data.output_index === growing.items.length,
        'an event belongs to no open item',
      );
      takeInside(growing, open, data);
  }
}

function takeInside(growing: Growing, open: NonNullable<Growing['open']>, data: Data): void {
  if (data.type === 'response.output_item.done') {
    must(data.item.id === open.item.id, 'an item changes its id');
    const said = saidIn([data.item]);
    must(
      open.said === `${said.text}${said.reasoning}${data.item.arguments ?? ''}`,
      'an item is not its pieces',
    );
    growing.items.push(data.item);
    growing.open = undefined;
    return;
  }
  must(data.item_id === open.item.id, 'an event names another item');
  if (!data.type.endsWith('.delta')) return;
  open.said += data.delta;
  if (data.type === 'response.output_text.delta') growing.text += data.delta;
  if (data.type === 'response.reasoning_summary_text.delta') growing.reasoning += data.delta;
}

export function heard(sse: string, except: string): readonly string[] {
  const hidden = new Set<number>();
  return sseEvents(sse).flatMap(({ data }) => {
    const { type, output_index: index, item, delta } = JSON.parse(data) as Data;
    if (type === 'response.output_item.added') {
      if (item.name === except) hidden.add(index);
      else hidden.delete(index);
    }
    if (hidden.has(index)) return [];
    const call = type === 'response.output_item.added' ? [item.call_id, item.name] : [];
    const said = typeof delta === 'string' ? [delta] : [];
    return [...call, ...said].filter((piece) => piece !== undefined && piece !== '') as string[];
  });
}
