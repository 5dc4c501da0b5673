/**
 * Has missing values read from memory: one call of the recall tool for each original that holds some of them, with the values as the
 * query, and one more for a value that this did not bring. The exchange is remembered as the gateway does it.
 */
import type { ModelReply } from '../codecs/codec.ts';
import { answerRecall } from '../compact/answer-recall.ts';
import type { Prepared } from '../compact/prepared.ts';
import type { GhostRound } from '../conversation/ghost-turn.ts';
import { readOriginal } from '../recall/original.ts';
import { holds, type Value } from './needs.ts';
import type { Sent } from './policy.ts';
import type { Need, Recording, Step } from './recording.ts';

/** Tokens one answer may have, and the fewest that are worth asking for: as in the gateway. */
const mostTokens = 8_000;
const fewestTokens = 200;

/** Characters of a query: many values make it long, and no model would write all of them. */
const longestQuery = 400;

export type Recalled = {
  /** The continuations, one a call. */
  readonly bodies: readonly Uint8Array[];
  /** Values that memory did not bring. */
  readonly lost: number;
};

export async function recallMissing({
  recording,
  step,
  sent,
  prepared,
  missing,
}: {
  readonly recording: Recording;
  readonly step: Step;
  readonly sent: Sent;
  readonly prepared: Prepared;
  readonly missing: readonly Need[];
}): Promise<Recalled> {
  const { format } = recording;
  const name = prepared.recallTool;
  if (name === undefined) return { bodies: [], lost: missing.length };
  const { groups, unknown } = groupByMemory(prepared, missing);
  const rounds: GhostRound[] = [];
  const bodies: Uint8Array[] = [];
  let room = prepared.room ?? Number.POSITIVE_INFINITY;

  async function ask(id: string, values: readonly Value[]): Promise<readonly Value[]> {
    const query = values
      .map(({ text }) => text)
      .join(' ')
      .slice(0, longestQuery)
      .toWellFormed();
    const argumentsJson = JSON.stringify({ id, query });
    const most = Math.min(mostTokens, room);
    if (most < fewestTokens) return values;
    const { text, tokens } = await answerRecall(prepared, argumentsJson, most);
    const call = { id: `recall_${step.at}_${rounds.length}`, name: name!, argumentsJson };
    const reply: ModelReply = { ...silent, recalls: [call], turn: format.turn([call]) };
    const answers = [{ call, text }];
    rounds.push({ turn: reply.turn, answers });
    bodies.push(format.codec.continueWith(bodies.at(-1) ?? sent.body, reply, answers));
    room -= tokens + (prepared.counter?.count(argumentsJson) ?? 0);
    return values.filter((value) => !holds(text, value));
  }

  let lost = unknown;
  for (const [id, values] of groups) {
    const left = await ask(id, values);
    if (values.length === 1) lost += left.length;
    else for (const value of left) lost += (await ask(id, [value])).length;
  }
  if (rounds.length > 0) {
    const { body, messages } = recording.conversation;
    const { span } = messages[step.at]!;
    const closing = step.end === step.at + 1 ? format.turnOf(body.subarray(span.start, span.end)) : undefined;
    await prepared.remember({ rounds, closing });
  }
  return { bodies, lost };
}

const silent: Omit<ModelReply, 'recalls' | 'turn'> = {
  text: '',
  calls: [],
  usage: undefined,
  rawUsage: undefined,
  finish: undefined,
};

/** By the memory that was folded last of those that hold a value. `unknown` values are in none. */
function groupByMemory(
  prepared: Prepared,
  missing: readonly Need[],
): { readonly groups: ReadonlyMap<string, readonly Value[]>; readonly unknown: number } {
  const texts = prepared.report.memories.map((id) => ({ id, text: originalText(prepared, id) }));
  const groups = new Map<string, Value[]>();
  let unknown = 0;
  for (const { value } of missing) {
    const found = texts.findLast(({ text }) => holds(text, value));
    if (!found) unknown += 1;
    else groups.set(found.id, [...(groups.get(found.id) ?? []), value]);
  }
  return { groups, unknown };
}

/** As recall shows it. */
function originalText(prepared: Prepared, id: string): string {
  const original = prepared.original(id);
  return original === undefined ? '' : readOriginal(new TextDecoder().decode(original)).text;
}
