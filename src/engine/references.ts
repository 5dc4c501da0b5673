/**
 * Replaces lines of tool results that earlier results of the same conversation already contain by references to these. References depend on
 * the results in front and on what the newest fold removed of them, so a result keeps its form until a fold in front of it, and no
 * reference ever points at removed lines. A memo holds the last results in order: each request reuses it up to the first result that differs.
 */
import { type Referring, refer } from '../arrival/dedupe-lines.ts';
import { reportsFailure } from '../arrival/kind.ts';
import { type ShownTexts, type TextLines, createShownTexts, readLines } from '../arrival/shown-texts.ts';
import { type Conversation, textOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
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
  readonly shown: ShownTexts;
  readonly made: {
    readonly arrived: ArrivedText;
    readonly shrink: Shrink | undefined;
    readonly lines: number;
  }[];
};

export function createReferenceMemo(): ReferenceMemo {
  return { shown: createShownTexts(), made: [] };
}

/** Returns the number of lines that the memo holds. */
export function sizeOfReferenceMemo({ made }: ReferenceMemo): number {
  return made.reduce((sum, { lines }) => sum + lines, 1);
}

/** Returns the edits that shorten these texts, with references, in the order of the conversation. */
export function withReferences(
  { shown, made }: ReferenceMemo,
  conversation: Conversation,
  texts: readonly ArrivedText[],
  count: (text: string) => number,
): readonly Shrink[] {
  let common = 0;
  while (common < texts.length && isSame(made[common]?.arrived, texts[common]!)) common++;
  made.length = common;
  shown.truncate(common);
  const linesByOrder = new Map<number, readonly string[]>();
  const linesOf = ({ order }: { readonly order: number }) => {
    const lines = linesByOrder.get(order) ?? textWithoutReferences(conversation, texts[order]!).split('\n');
    linesByOrder.set(order, lines);
    return lines;
  };
  for (const arrived of texts.slice(common)) {
    const { lines, isFailure } = readText(conversation, arrived);
    const referring =
      arrived.mayRefer && !isFailure
        ? refer(linesOf({ order: made.length }), lines, { shown, linesOf })
        : undefined;
    const before = textWithoutReferences(conversation, arrived);
    const shrink = referring && shrinkTo(referring, arrived, before, texts, count);
    const whole = [{ start: 0, end: lines.hashes.length }];
    shown.add({ label: arrived.label, lines, literal: shrink ? referring.literal : whole });
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
function shrinkTo(
  { text: stub, sources }: Referring,
  { at, shrink }: ArrivedText,
  before: string,
  texts: readonly ArrivedText[],
  count: (text: string) => number,
): Shrink | undefined {
  const won = count(before) - count(stub);
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

function textWithoutReferences(conversation: Conversation, { at, result, shrink }: ArrivedText): string {
  return (
    shrink?.stub ?? textOf(conversation.body, conversation.messages[at.message]!, result.texts[at.text]!)
  );
}

type ReadText = { readonly lines: TextLines; readonly isFailure: boolean };

const readTexts = new WeakMap<Shrink | ToolResultPart['texts'][number], ReadText>();

/** Reads the lines of a text. They are remembered with the result, or with its smaller form. */
function readText(conversation: Conversation, arrived: ArrivedText): ReadText {
  const key = arrived.shrink ?? arrived.result.texts[arrived.at.text]!;
  const remembered = readTexts.get(key);
  if (remembered) return remembered;
  const text = textWithoutReferences(conversation, arrived);
  const lines = readLines(text);
  const isListing = lines.numbers.some((number) => number >= 0);
  const made = { lines, isFailure: !isListing && reportsFailure(text) };
  readTexts.set(key, made);
  return made;
}
