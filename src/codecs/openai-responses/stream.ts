/**
 * Relays a streamed response: every event is passed on unchanged, except for those of a private recall call. When continuations
 * follow, the client sees one response: one start, output indices and sequence numbers without gaps, one end with all items and
 * the usage of all rounds.
 *
 * Reasoning that leads to a recall is sent on live, because what it leads to is not known while it streams. A request may not
 * hold it alone, so the last event, which has the whole output, leaves it out as a complete response does. A client that collects
 * items from their own events keeps it at the place of the recall; a hidden recall put back there restores the turn, and until
 * then the rule `reasoning-is-followed` reports it.
 *
 * The first id must stay, because clients take another id for another response. The response that the provider keeps under it
 * ends with the private call: a request that continues it by `previous_response_id` must name the last response instead
 * (`continueReply` in request.ts).
 */
import {
  type JsonRecord,
  isRecord,
  jsonBytes,
  objectsOf,
  parseRecord,
} from '../../conversation/json-scan.ts';
import type {
  GatewayProblem,
  ModelReply,
  RelayEnd,
  StreamEvent,
  StreamOptions,
  StreamRelay,
} from '../codec.ts';
import {
  awaitsRecall,
  addUsage,
  eventBytes,
  jsonList,
  memberBytes,
  numberAt,
  objectBytes,
  recordAt,
  setMembers,
  skippingDeltas,
  stringIn,
  withMembers,
  elementsOf,
  type JsonElement,
} from '../shared-json.ts';
import type { PrivateTools } from '../../conversation/turns.ts';
import { providerError } from '../provider-errors.ts';
import { isPrivate, visibleItems, errorEvent, errorOf, replyFrom, usageFrom } from './response.ts';

/** The state of one upstream response. */
type ResponsesRound = {
  readonly number: number;
  readonly recorder: ItemRecorder;
  /** Client-side index of each item that is shown. */
  readonly shown: Map<number, number>;
  /** The response object of the event that ended this round. */
  response: JsonRecord | undefined;
  /** That event and the end mark after it, held back once a call was held; a continuation starts with those of the round before. */
  ending: StreamEvent[];
  end: 'completed' | 'incomplete' | 'other' | undefined;
};

const encoder = new TextEncoder();

export function openStream({ privateTools }: StreamOptions): StreamRelay {
  let round = newRound(0, privateTools);
  const numbers = openNumbers(isPlain);
  let firstId: string | undefined;
  let earlierUsage: unknown;
  const earlierItems: JsonElement[] = [];

  function isPlain(): boolean {
    return round.number === 0 && !round.recorder.anyHeld();
  }

  function takeStart(event: StreamEvent, data: JsonRecord): readonly Uint8Array[] {
    firstId ??= stringIn(data['response'], 'id');
    if (round.number === 0) return [numbers.numbered(event, data, {})];
    round.ending = [];
    return [];
  }

  /** Takes an event of one output item: holds it back, or shows it under the client's own index. */
  function takeOfItem(event: StreamEvent, data: JsonRecord, type: string): readonly Uint8Array[] {
    const index = numberAt(data, 'output_index');
    if (round.number > 0) round.ending = [];
    if (type === 'response.output_item.added') round.recorder.begin(index, data['item']);
    if (type === 'response.output_item.done' && isRecord(data['item']))
      round.recorder.finish(index, {
        bytes: objectBytes(encoder.encode(event.data), 'item'),
        value: data['item'],
      });
    if (round.recorder.isHeld(index)) return [];
    const own = numbers.indexOf(index, round.shown);
    return [numbers.numbered(event, data, own === index ? {} : { output_index: jsonBytes(own) })];
  }

  function takeEnd(event: StreamEvent, data: JsonRecord, type: string): readonly Uint8Array[] {
    round.response = recordAt(data, 'response');
    round.end = endOf(type, round.response);
    firstId ??= stringIn(round.response, 'id');
    // Some servers stream no items and send them all here; an item that was cut off may only be complete here.
    if (!isPlain() || round.recorder.items().length === 0)
      outputOf(event).forEach((item, index) => {
        if (!round.recorder.isFinished(index)) round.recorder.finish(index, item);
      });
    if (isPlain()) return [numbers.numbered(event, data, {})];
    round.ending = [event];
    return [];
  }

  function currentReply(): ModelReply {
    const turn = jsonList(round.recorder.items().map(({ bytes }) => bytes));
    return replyFrom({ turn, response: round.response, privateTools });
  }

  /** Returns the last event, with all items of all rounds that the client may keep. */
  function ending(reply: ModelReply): readonly Uint8Array[] {
    const items = [...earlierItems, ...visibleItems(reply)];
    const usage = addUsage(earlierUsage, reply.rawUsage);
    return round.ending.map((event) => {
      const data = parseRecord(event.data);
      if (!data) return event.raw;
      const response = objectBytes(encoder.encode(event.data), 'response');
      const whole = withMembers(response, {
        ...(firstId === undefined ? {} : { id: jsonBytes(firstId) }),
        output: jsonList(items.map(({ bytes }) => bytes)),
        ...(usage === undefined ? {} : { usage: jsonBytes(usage) }),
      });
      return numbers.numbered(event, data, { response: whole });
    });
  }

  return skippingDeltas({
    take(event, data) {
      const type = stringIn(data, 'type');
      if (event.data === '[DONE]' && !isPlain()) {
        // Some servers end with this mark; clients read nothing after it.
        round.ending.push(event);
        return [];
      }
      if (!data || type === undefined) return [event.raw];
      if (privateTools.size === 0 && !ends.has(type)) return [event.raw];
      if (starts.has(type)) return takeStart(event, data);
      if (ends.has(type)) return takeEnd(event, data, type);
      if (typeof data['output_index'] === 'number') return takeOfItem(event, data, type);
      if (type !== 'error') return [numbers.numbered(event, data, {})];
      // The client takes this as the end: nothing may follow.
      round.ending = [];
      round.end = 'other';
      return [event.raw];
    },
    isPlain,
    textKeyOf: (data) =>
      stringIn(data, 'type')?.endsWith('.delta') === true && typeof data['delta'] === 'string'
        ? 'delta'
        : undefined,
    newestKeys: 'sequence_number|obfuscation',
    // The items come whole.
    keepsText: false,
    end(): RelayEnd {
      const reply = currentReply();
      if (round.end !== 'completed' || !awaitsRecall(reply)) {
        const isSaid = round.end === 'completed' || round.end === 'incomplete';
        return { status: 'done', tail: ending(reply), reply: isSaid ? reply : undefined };
      }
      earlierUsage = addUsage(earlierUsage, reply.rawUsage);
      earlierItems.push(...visibleItems({ ...reply, hidesText: round.recorder.hidesText() }));
      round = { ...newRound(round.number + 1, privateTools), ending: round.ending };
      return { status: 'recall', reply };
    },
    finish: () => ending(currentReply()),
    fail: (problem: GatewayProblem, providerBody) => [
      eventBytes('error', errorEvent(providerError(providerBody)?.error ?? errorOf(problem), numbers.next())),
    ],
    usage: () => usageFrom(addUsage(earlierUsage, round.response?.['usage']), round.recorder.items()),
    contentOf(data) {
      // Some servers stream no items and send them all in the last event.
      const items = [...objectsOf(recordAt(data, 'response')['output']), recordAt(data, 'item')];
      const isSaid = items.some(({ type }) => type === 'message');
      return {
        text:
          data['type'] === 'response.output_text.delta' ? stringIn(data, 'delta') : isSaid ? '' : undefined,
        calls: items.filter(({ type }) => type === 'function_call').map(({ name }) => String(name)),
      };
    },
    hideText: () => round.recorder.hideTexts(),
  });
}

/**
 * Numbers items and events as the client counts them. The numbers are the provider's own while the stream `isPlain`; a private call or an earlier round
 * shifts them.
 */
function openNumbers(isPlain: () => boolean) {
  let nextIndex = 0;
  let nextNumber = 0;
  return {
    /** Returns the client's index of an item. `shown`: those of the round, by the provider's. */
    indexOf(index: number, shown: Map<number, number>): number {
      const own = shown.get(index) ?? (isPlain() ? index : nextIndex);
      nextIndex = Math.max(nextIndex, own + 1);
      shown.set(index, own);
      return own;
    },
    /** Returns the event under the client's next sequence number; the raw bytes when nothing changes. */
    numbered(
      event: StreamEvent,
      data: JsonRecord,
      changes: Readonly<Record<string, Uint8Array>>,
    ): Uint8Array {
      const given = data['sequence_number'];
      let number = {};
      if (typeof given === 'number') {
        const own = isPlain() ? given : nextNumber;
        nextNumber = own + 1;
        if (own !== given) number = { sequence_number: jsonBytes(own) };
      }
      const all = { ...changes, ...number };
      if (Object.keys(all).length === 0) return event.raw;
      return eventBytes(event.event, setMembers(encoder.encode(event.data), all));
    },
    /** Returns the next sequence number. */
    next: () => nextNumber,
  };
}

const starts: ReadonlySet<string> = new Set(['response.created', 'response.queued', 'response.in_progress']);
const ends: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
]);

/** Some servers send `response.completed` for an incomplete response, and say so only in its status. */
function endOf(type: string, response: JsonRecord | undefined): ResponsesRound['end'] {
  const isCutOff = type === 'response.incomplete' || stringIn(response, 'status') === 'incomplete';
  if (isCutOff) return 'incomplete';
  return type === 'response.completed' ? 'completed' : 'other';
}

function newRound(number: number, privateTools: PrivateTools): ResponsesRound {
  return {
    number,
    recorder: recordItems(privateTools),
    shown: new Map(),
    response: undefined,
    ending: [],
    end: undefined,
  };
}

/** Returns the items in the response that an event carries. */
function outputOf(event: StreamEvent): readonly JsonElement[] {
  const output = memberBytes(objectBytes(encoder.encode(event.data), 'response'), 'output');
  return output ? elementsOf(output) : [];
}

interface ItemRecorder {
  /** Starts an item of which only the head is known. */
  begin(index: number, head: unknown): void;
  finish(index: number, item: JsonElement): void;
  /** True for a private call: its events are held back from the client. */
  isHeld(index: number): boolean;
  anyHeld(): boolean;
  isFinished(index: number): boolean;
  /** Holds back messages from here on. */
  hideTexts(): void;
  hidesText(): true | undefined;
  /** Returns the finished items, in order of their index. */
  items(): readonly JsonElement[];
}

function recordItems(privateTools: PrivateTools): ItemRecorder {
  const finished = new Map<number, JsonElement>();
  const held = new Set<number>();
  let hidesText: true | undefined;

  function begin(index: number, head: unknown): void {
    if (isPrivate(head, privateTools) || (hidesText && stringIn(head, 'type') === 'message')) held.add(index);
  }

  return {
    begin,
    finish(index, item) {
      begin(index, item.value);
      finished.set(index, item);
    },
    isHeld: (index) => held.has(index),
    anyHeld: () => held.size > 0,
    isFinished: (index) => finished.has(index),
    hideTexts() {
      hidesText = true;
    },
    hidesText: () => hidesText,
    items: () => [...finished].toSorted(([a], [b]) => a - b).map(([, item]) => item),
  };
}
