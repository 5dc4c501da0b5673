/**
 * Plays the client of a replayed conversation. Every request contains all messages so far: the recorded ones, and those of tools that were run
 * again, because a policy removed their results for good.
 */
import type { ModelReply, RecallAnswer } from '../codecs/codec.ts';
import { unremembered } from '../codecs/read-body.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { textOf, textsOf } from '../conversation/messages.ts';
import { placeKey, type Pair } from '../conversation/turns.ts';
import { concatBytes } from '../conversation/json-scan.ts';
import { argumentsOf, holds } from './needs.ts';
import type { PolicyRequest, SentContext } from './policies.ts';
import type { Need, RecordedStep, Recording, ReplayFormat } from './recording.ts';

export interface Client {
  /** Appends the recorded messages before message `at`. */
  reach(at: number): void;
  /** Appends messages that are not in the recording, before the next recorded one. */
  add(messages: readonly Uint8Array[]): void;
  /** Builds the request of all messages so far. */
  request(read: (body: Uint8Array) => Conversation, at: number): PolicyRequest;
}

const comma: Uint8Array = new Uint8Array([0x2c]);

export function createClient({ conversation }: Recording): Client {
  const { body, messages } = conversation;
  const head = body.subarray(0, messages[0]?.span.start ?? 0);
  const tail = body.subarray(messages.at(-1)?.span.end ?? 0);
  const pieces: Uint8Array[] = [];
  const rerun = new Set<number>();
  let reached = 0;
  let count = 0;

  function append(message: Uint8Array): void {
    if (count > 0) pieces.push(comma);
    pieces.push(message);
    count += 1;
  }

  return {
    reach(at) {
      for (const { span } of messages.slice(reached, at)) append(body.subarray(span.start, span.end));
      reached = at;
    },
    add(added) {
      for (const message of added) {
        rerun.add(count);
        append(message);
      }
    },
    request: (read, at) => ({ conversation: read(concatBytes([head, ...pieces, tail])), rerun, at }),
  };
}

type Rerun = {
  readonly recording: Recording;
  readonly client: Client;
  readonly step: RecordedStep;
  readonly sent: SentContext;
  readonly missing: readonly Need[];
};

/** Returns the continuations, one per repeated call, and the model's turns with these calls. Values that no tool returned cannot be recovered. */
export function rerunMissing({ recording, client, step, sent, missing }: Rerun): {
  readonly bodies: readonly Uint8Array[];
  readonly turns: readonly Uint8Array[];
} {
  const pairs = new Map<string, Pair>();
  for (const need of missing) {
    const pair = pairFor(recording, need);
    if (pair) pairs.set(placeKey(pair.call), pair);
  }
  const bodies: Uint8Array[] = [];
  const turns: Uint8Array[] = [];
  for (const pair of pairs.values()) {
    const answer = answerOf(recording, pair, `rerun_${step.at}_${bodies.length}`);
    if (!answer) continue;
    const continued = continueWith(recording.format, bodies.at(-1) ?? sent.body, answer);
    client.add(continued.added);
    bodies.push(continued.body);
    turns.push(recording.format.turn([answer.call]));
  }
  return { bodies, turns };
}

/** Finds the newest call whose result or arguments contain the value. */
function pairFor({ conversation, pairs, texts }: Recording, { value, in: places }: Need): Pair | undefined {
  const newest = places.toReversed();
  for (const index of newest) {
    const here = pairs.filter(({ call, result }) => result?.message === index || call.message === index);
    const holding = here.find(({ result }) => result && holds(resultText(conversation, result), value));
    const found = holding ?? here.find(({ result }) => result !== undefined);
    if (found && holds(texts[index]!, value)) return found;
  }
  return undefined;
}

function answerOf(
  { conversation }: Recording,
  { name, call, result }: Pair,
  id: string,
): RecallAnswer | undefined {
  const message = conversation.messages[call.message]!;
  const part = message.parts[call.part]!;
  if (part.type !== 'tool-call' || !result) return undefined;
  const argumentsJson = argumentsOf(conversation.body, message, part.input);
  return { call: { id, name, argumentsJson }, text: resultText(conversation, result) };
}

function resultText(
  conversation: Recording['conversation'],
  { message, part }: NonNullable<Pair['result']>,
): string {
  const holder = conversation.messages[message]!;
  return textsOf(holder.parts[part]!)
    .map((span) => textOf(conversation.body, holder, span))
    .join('\n');
}

/** Appends a call and its result as the format writes them; also returns the appended messages. */
function continueWith(format: ReplayFormat, sent: Uint8Array, answer: RecallAnswer) {
  const { codec } = format;
  const { call } = answer;
  const reply: ModelReply = {
    text: '',
    recalls: [call],
    calls: [],
    usage: undefined,
    rawUsage: undefined,
    finish: undefined,
    turn: format.turn([call]),
  };
  const body = codec.continueWith(sent, reply, [answer]);
  const count = codec.read(sent, unremembered).messages.length;
  const added = codec
    .read(body, unremembered)
    .messages.slice(count)
    .map(({ span }) => body.slice(span.start, span.end));
  return { body, added };
}
