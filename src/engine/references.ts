/**
 * Replaces lines of tool results that earlier results of the same conversation already contain by references to these. References depend on
 * the results in front and on what the newest fold removed of them, so a result keeps its form until a fold in front of it, and no
 * reference ever points at removed lines. A memo holds the last results in order: each request reuses it up to the first result that differs.
 */
import { type Referring, refer } from '../arrival/dedupe-lines.ts';
import { reportsFailure } from '../arrival/kind.ts';
import {
  type ShownTexts,
  type TextLines,
  createShownTexts,
  readLines,
  splitLines,
} from '../arrival/shown-texts.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { textInSteps } from '../conversation/messages.ts';
import type { Edit } from '../conversation/edit.ts';
import type { Steps } from '../conversation/steps.ts';
import type { ToolResultPart } from '../strategies/shrink-results.ts';

/** An edit that shortens a tool result on arrival. */
export type Shrink = Edit & {
  readonly kind: 'replace-text';
  /** The tokens that it saves. */
  readonly saved: number;
  /** The messages that this one refers to, with the tokens of the lines that were replaced. */
  readonly refers?: readonly { readonly message: number; readonly tokens: number }[];
};

/** One text of a result as it would be sent without references. */
export type ArrivedText = {
  readonly at: Shrink['at'];
  readonly result: ToolResultPart;
  /** Its smaller form; undefined when it is sent unchanged. */
  readonly shrink: Shrink | undefined;
  /** The name that references use for it. */
  readonly label: string;
  readonly mayRefer: boolean;
};

/** The results of one conversation as they were last sent. */
export type ReferenceMemo = {
  /** True while a pass over the results uses it: the pass may be paused. */
  isInUse: boolean;
  /** Is called after each pass: the memo may hold more lines than before. */
  resized: () => void;
  readonly shown: ShownTexts;
  readonly made: {
    readonly arrived: ArrivedText;
    readonly shrink: Shrink | undefined;
    readonly lines: number;
  }[];
};

export function createReferenceMemo(): ReferenceMemo {
  return { isInUse: false, resized: () => undefined, shown: createShownTexts(), made: [] };
}

/** Returns the number of lines that the memo holds. */
export function linesHeld({ made }: ReferenceMemo): number {
  return made.reduce((sum, { lines }) => sum + lines, 1);
}

/** Counts the tokens of a text that may be very long. */
type CountInSteps = (text: string) => Steps<number>;

/** Returns the edits that shorten these texts, with references, in the order of the conversation. */
export function* withReferences(
  memo: ReferenceMemo,
  conversation: Conversation,
  texts: readonly ArrivedText[],
  count: CountInSteps,
): Steps<readonly Shrink[]> {
  // A paused request of the same conversation may be using the memo. An empty memo gives the same result.
  const own = memo.isInUse ? createReferenceMemo() : memo;
  own.isInUse = true;
  try {
    return yield* referring(own, conversation, texts, count);
  } finally {
    own.isInUse = false;
    own.resized();
  }
}

function* referring(
  { shown, made }: ReferenceMemo,
  conversation: Conversation,
  texts: readonly ArrivedText[],
  count: CountInSteps,
): Steps<readonly Shrink[]> {
  let common = 0;
  while (common < texts.length && isSame(made[common]?.arrived, texts[common]!)) common++;
  made.length = common;
  yield* shown.truncate(common);
  const linesByOrder = new Map<number, readonly string[]>();
  function* linesOf({ order }: { readonly order: number }): Steps<readonly string[]> {
    const known = linesByOrder.get(order);
    if (known) return known;
    const lines = yield* splitLines(yield* textWithoutReferences(conversation, texts[order]!));
    linesByOrder.set(order, lines);
    return lines;
  }
  for (let order = common; order < texts.length; order++) {
    yield;
    const arrived = texts[order]!;
    const { lines, isFailure } = yield* readText(conversation, arrived);
    const found =
      arrived.mayRefer && !isFailure
        ? yield* refer(yield* linesOf({ order }), lines, { shown, linesOf })
        : undefined;
    const shrink = found && (yield* shrinkTo(found, arrived, conversation, texts, count));
    const whole = [{ start: 0, end: lines.hashes.length }];
    yield* shown.add({ label: arrived.label, lines, literal: shrink ? found.literal : whole });
    made.push({ arrived, shrink: shrink ?? arrived.shrink, lines: lines.hashes.length });
  }
  const shrinks: Shrink[] = [];
  for (const { shrink } of made) if (shrink) shrinks.push(shrink);
  return shrinks;
}

/** Returns the tokens that shrinks save in each message, by its index. */
export function savedByMessage(shrinks: readonly Shrink[]): ReadonlyMap<number, number> {
  const tokens = new Map<number, number>();
  for (const { at, saved } of shrinks) tokens.set(at.message, (tokens.get(at.message) ?? 0) + saved);
  return tokens;
}

/** Returns the edit that puts references in; undefined when it would save too little. */
function* shrinkTo(
  { text: stub, sources }: Referring,
  arrived: ArrivedText,
  conversation: Conversation,
  texts: readonly ArrivedText[],
  count: CountInSteps,
): Steps<Shrink | undefined> {
  const { at, shrink } = arrived;
  const before = yield* textWithoutReferences(conversation, arrived);
  const won = (yield* count(before)) - (yield* count(stub));
  if (won < minGainTokens || stub.length >= before.length) return undefined;
  const all = sources.reduce((sum, { characters }) => sum + characters, 0);
  const refers = sources.map(({ source, characters }) => ({
    message: texts[source.order]!.at.message,
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

/** The fewest tokens that references must save. */
const minGainTokens = 10;

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

function* textWithoutReferences(
  conversation: Conversation,
  { at, result, shrink }: ArrivedText,
): Steps<string> {
  if (shrink) return shrink.stub;
  return yield* textInSteps(conversation.body, conversation.messages[at.message]!, result.texts[at.text]!);
}

type ReadText = { readonly lines: TextLines; readonly isFailure: boolean };

const readTexts = new WeakMap<Shrink | ToolResultPart['texts'][number], ReadText>();

/** Reads the lines of a text. They are remembered with the result, or with its smaller form. */
function* readText(conversation: Conversation, arrived: ArrivedText): Steps<ReadText> {
  const key = arrived.shrink ?? arrived.result.texts[arrived.at.text]!;
  const remembered = readTexts.get(key);
  if (remembered) return remembered;
  const text = yield* textWithoutReferences(conversation, arrived);
  const lines = yield* readLines(text);
  yield;
  const isListing = lines.numbers.some((number) => number >= 0);
  const made = { lines, isFailure: !isListing && reportsFailure(text) };
  readTexts.set(key, made);
  return made;
}
