/**
 * What of the results of tools stands in earlier results of the same conversation already, as they are sent: references take its place. It
 * hangs on what stands before a result and on what of that the newest fold took away, so a result keeps its form until a fold in front of it,
 * and no reference ever points at what is gone. What was made of the results is remembered in their order: a turn compares, and
 * only from where the results differ on it is made anew.
 */
import { type Referring, refer } from '../arrival/dedupe-lines.ts';
import { reportsFailure } from '../arrival/kind.ts';
import { type ShownTexts, type TextLines, createShownTexts, readLines } from '../arrival/shown-texts.ts';
import { type Conversation, textOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { ToolResultPart } from '../strategies/shrink-results.ts';

/** One text of a result as it would stand without references. */
export type ArrivedText = {
  readonly at: Shrink['at'];
  readonly result: ToolResultPart;
  /** What it was made smaller to; undefined where it stands as it came. */
  readonly shrink: Shrink | undefined;
  /** What a reference calls it. */
  readonly label: string;
  readonly mayRefer: boolean;
};

/** The results of one conversation, as they were last laid out. */
export type Repeats = {
  readonly shown: ShownTexts;
  readonly made: {
    readonly standing: ArrivedText;
    readonly shrink: Shrink | undefined;
    readonly lines: number;
  }[];
};

export function createRepeats(): Repeats {
  return { shown: createShownTexts(), made: [] };
}

/** Lines. */
export function sizeOfRepeats({ made }: Repeats): number {
  return made.reduce((sum, { lines }) => sum + lines, 1);
}

/** The edits of these texts, in the order of the conversation. */
export function withReferences(
  { shown, made }: Repeats,
  conversation: Conversation,
  standings: readonly ArrivedText[],
  count: (text: string) => number,
): readonly Shrink[] {
  let common = 0;
  while (common < standings.length && isSame(made[common]?.standing, standings[common]!)) common++;
  made.length = common;
  shown.truncate(common);
  const texts = new Map<number, readonly string[]>();
  const linesOf = ({ order }: { readonly order: number }) => {
    const lines = texts.get(order) ?? standingText(conversation, standings[order]!).split('\n');
    texts.set(order, lines);
    return lines;
  };
  for (const standing of standings.slice(common)) {
    const { lines, isFailure } = read(conversation, standing);
    const referring =
      standing.mayRefer && !isFailure
        ? refer(linesOf({ order: made.length }), lines, { shown, linesOf })
        : undefined;
    const before = standingText(conversation, standing);
    const shrink = referring && shrinkTo(referring, standing, before, standings, count);
    const whole = [{ start: 0, end: lines.hashes.length }];
    shown.add({ label: standing.label, lines, literal: shrink ? referring.literal : whole });
    made.push({ standing, shrink: shrink ?? standing.shrink, lines: lines.hashes.length });
  }
  const shrinks: Shrink[] = [];
  for (const { shrink } of made) if (shrink) shrinks.push(shrink);
  return shrinks;
}

/** Undefined where it would not be worth it. */
function shrinkTo(
  { text: stub, sources }: Referring,
  { at, shrink }: ArrivedText,
  before: string,
  standings: readonly ArrivedText[],
  count: (text: string) => number,
): Shrink | undefined {
  const won = count(before) - count(stub);
  if (won < LEAST_GAIN || stub.length >= before.length) return undefined;
  const all = sources.reduce((sum, { characters }) => sum + characters, 0);
  const refers = sources.map(({ source, characters }) => ({
    message: standings[source.order]!.at.message,
    tokens: (won * characters) / all,
  }));
  return {
    kind: 'replace-text',
    at,
    stub,
    memory: shrink?.memory,
    saved: (shrink?.saved ?? 0) + won,
    refers,
  };
}

/** Tokens. */
const LEAST_GAIN = 10;

function isSame(one: ArrivedText | undefined, other: ArrivedText): boolean {
  if (one === other) return true;
  return (
    one?.result === other.result &&
    one.shrink === other.shrink &&
    one.at.message === other.at.message &&
    one.at.part === other.at.part &&
    one.at.text === other.at.text &&
    one.label === other.label &&
    one.mayRefer === other.mayRefer
  );
}

function standingText(conversation: Conversation, { at, result, shrink }: ArrivedText): string {
  return (
    shrink?.stub ?? textOf(conversation.body, conversation.messages[at.message]!, result.texts[at.text]!)
  );
}

type Read = { readonly lines: TextLines; readonly isFailure: boolean };

const readOf = new WeakMap<Shrink | ToolResultPart['texts'][number], Read>();

/** Remembered with the result, or with what it was made smaller to. */
function read(conversation: Conversation, standing: ArrivedText): Read {
  const key = standing.shrink ?? standing.result.texts[standing.at.text]!;
  const known = readOf.get(key);
  if (known) return known;
  const text = standingText(conversation, standing);
  const lines = readLines(text);
  const isListing = lines.numbers.some((number) => number >= 0);
  const made = { lines, isFailure: !isListing && reportsFailure(text) };
  readOf.set(key, made);
  return made;
}

// Results that are shorter from their first request on.

export type Shrink = Edit & {
  readonly kind: 'replace-text';
  /** Tokens. */
  readonly saved: number;
  /** Messages in which lines stand that this one only refers to, and tokens of them. */
  readonly refers?: readonly { readonly message: number; readonly tokens: number }[];
};

/** Tokens that messages take less than they came with, by index. */
export function savedByMessage(shrinks: readonly Shrink[]): ReadonlyMap<number, number> {
  const tokens = new Map<number, number>();
  for (const { at, saved } of shrinks) tokens.set(at.message, (tokens.get(at.message) ?? 0) + saved);
  return tokens;
}
