/**
 * Tells which values a context shows, and recalls missing ones: one call of the recall tool for the original that contains them, with the values as the query, or one call for
 * all originals if several contain some; then further calls for values that did not come. The exchange is remembered as the gateway does.
 */
import type { ModelReply } from '../codecs/codec.ts';
import { answerRecall } from '../recall/tool.ts';
import type { PreparedRequest } from '../engine/types.ts';
import type { Conversation, Message, RecallRound } from '../conversation/conversation.ts';
import { groupBy } from '../es2024.ts';
import { readOriginal } from '../recall/read-original.ts';
import { holds, messageText, type Value } from './needs.ts';
import type { SentContext } from './policies.ts';
import type { Need, Recording, RecordedStep } from './recording.ts';

/** Maximum tokens of one answer, and the minimum that is worth a call, as in the gateway. */
const maxTokens = 8_000;
const minTokens = 200;

/** Maximum characters of a query: no model would write all lines of a file. A single value may be longer. */
const maxQuery = 400;

export type RecallMissingInput = {
  readonly recording: Recording;
  readonly step: RecordedStep;
  readonly sent: SentContext;
  readonly prepared: PreparedRequest;
  readonly missing: readonly Need[];
};

export type RecallMissingResult = {
  /** The continuations, one per call. */
  readonly bodies: readonly Uint8Array[];
  /** Number of values that recall did not return. */
  readonly lost: number;
};

export async function recallMissing(request: RecallMissingInput): Promise<RecallMissingResult> {
  const memories = await originalIdsOf(request);
  let left = memories.found;
  let lost = memories.unknown;
  const exchange = openRounds(request);
  const byMemory = [...groupBy(left, ({ id }) => id).values()];
  if (byMemory.length > 1) {
    const text = await exchange.ask({ query: queryOf(inTurn(byMemory)) });
    left = left.filter(({ value }) => !holds(text, value));
  }
  for (let next = left[0]; next !== undefined; next = left[0]) {
    const wanted = next;
    const together = left.filter(({ id }) => id === wanted.id);
    for (const values of together.length > 1 ? [together, [wanted]] : [together]) {
      if (!left.includes(wanted)) break;
      const text = await exchange.ask({ id: wanted.id, query: queryOf(values) });
      left = left.filter(({ value }) => !holds(text, value));
    }
    if (left.includes(wanted)) lost += 1;
    left = left.filter((value) => value !== wanted);
  }
  await exchange.end();
  return { bodies: exchange.bodies, lost };
}

type Remembered = { readonly id: string; readonly value: Value };

/** Finds the original of each value: the one folded last among those that contain it. `unknown` values are in none. */
async function originalIdsOf({ prepared, missing }: RecallMissingInput): Promise<{
  readonly found: readonly Remembered[];
  readonly unknown: number;
}> {
  const tool = prepared.recallTool;
  const texts =
    tool === undefined
      ? []
      : await Promise.all(
          prepared.report.memories.map(async (id) => ({ id, text: await originalText(prepared, id) })),
        );
  const found = missing.flatMap(({ value }): readonly Remembered[] => {
    const memory = texts.findLast(({ text }) => holds(text, value));
    return memory ? [{ id: memory.id, value }] : [];
  });
  return { found, unknown: missing.length - found.length };
}

/** Returns the text of an original as recall shows it. */
async function originalText(prepared: PreparedRequest, id: string): Promise<string> {
  const original = await prepared.original(id);
  return original === undefined ? '' : readOriginal(new TextDecoder().decode(original)).text;
}

/** Returns the first of each group, then the second of each, and so on, so that a query covers every group. */
function inTurn(groups: readonly (readonly Remembered[])[]): readonly Remembered[] {
  const longest = Math.max(...groups.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) =>
    groups.flatMap((group) => group.slice(at, at + 1)),
  ).flat();
}

function queryOf(values: readonly Remembered[]): string {
  let query = values[0]!.value.text;
  for (const { value } of values.slice(1)) {
    if (query.length + value.text.length < maxQuery) query += ` ${value.text}`;
  }
  return query;
}

/** Runs the recall rounds of one reply, as the gateway would. */
export function openRounds({
  recording,
  step,
  sent,
  prepared,
}: Pick<RecallMissingInput, 'recording' | 'step' | 'sent' | 'prepared'>) {
  const { format, conversation } = recording;
  const rounds: RecallRound[] = [];
  const bodies: Uint8Array[] = [];
  let room = prepared.room ?? Number.POSITIVE_INFINITY;
  return {
    bodies,
    /** Asks once and returns the answer; an empty text if the window has no space for it. */
    async ask(asked: { readonly id?: string; readonly query?: string }): Promise<string> {
      const max = Math.min(maxTokens, room);
      if (max < minTokens) return '';
      const argumentsJson = JSON.stringify(asked);
      const { text, tokens } = await answerRecall(prepared, argumentsJson, max);
      const call = {
        id: `recall_${step.at}_${rounds.length}`,
        name: prepared.recallTool ?? '',
        argumentsJson,
      };
      const reply: ModelReply = { ...silent, recalls: [call], turn: format.turn([call]) };
      const answers = [{ call, text }];
      rounds.push({ turn: reply.turn, answers });
      bodies.push(format.codec.continueWith(bodies.at(-1) ?? sent.body, reply, answers));
      room -= tokens + (prepared.counter?.count(argumentsJson) ?? 0);
      return text;
    },
    /** Remembers the rounds. `next`: the model's turn after them, if it is not the recorded reply. */
    async end(next?: Uint8Array): Promise<void> {
      if (rounds.length === 0) return;
      const reply = conversation.messages
        .slice(step.at, step.end)
        .map(({ span }) => conversation.body.subarray(span.start, span.end));
      await prepared.remember({ rounds, closing: next ?? format.turnOf(reply) });
    },
  };
}

const silent: Omit<ModelReply, 'recalls' | 'turn'> = {
  text: '',
  calls: [],
  usage: undefined,
  rawUsage: undefined,
  finish: undefined,
};

// Values that a context shows.

/** `shows`: true if a context contains a needed value. */
export type Sight = { shows(context: Conversation, need: Need): boolean };

type SeenMessages = {
  readonly has: ReadonlySet<string>;
  readonly changed: readonly { readonly text: string; readonly message: Message }[];
};

/**
 * Creates a check of contexts. Recorded messages are known to contain a value or not; only messages that a policy changed are searched, with
 * `showsIn`, by default for the value anywhere in the text.
 */
export function createSight(
  { conversation }: Recording,
  showsIn = (text: string, { value }: Need, _message: Message) => holds(text, value),
): Sight {
  const digests = conversation.messages.map(({ digest }) => digest);
  const recorded = new Set(digests);
  const texts = new Map<string, string>();
  const seenIn = new WeakMap<Conversation, SeenMessages>();

  function contentsOf(context: Conversation): SeenMessages {
    const known = seenIn.get(context);
    if (known) return known;
    const changed = context.messages
      .filter(({ digest }) => !recorded.has(digest))
      .map((message) => {
        const text = texts.get(message.digest) ?? messageText(context, message);
        texts.set(message.digest, text);
        return { text, message };
      });
    const seen = { has: new Set(context.messages.map(({ digest }) => digest)), changed };
    seenIn.set(context, seen);
    return seen;
  }

  return {
    shows(context, need) {
      const { has, changed } = contentsOf(context);
      if (need.in.some((index) => has.has(digests[index]!))) return true;
      return changed.some(({ text, message }) => showsIn(text, need, message));
    },
  };
}
