/**
 * Protects content from folds: system messages, the user's last message, the newest tool batch with its calls, pins, recalls, what stays in view,
 * and results that were fetched again. Also counts the tokens that a fold may still remove.
 */
import type { Codec, FormatRules, Problem, RecallTool } from '../codecs/codec.ts';
import type { Conversation, Message } from '../conversation/conversation.ts';
import { contentBytes } from '../strategies/drop-messages.ts';
import { inputOf, mediaOf, perMessage, textOf, textsOf } from '../conversation/messages.ts';
import { type Edit, stayingInSteps } from '../conversation/edit.ts';
import { inPieces, oneStep, type Steps } from '../conversation/steps.ts';
import { type InView, partsInView } from './in-view.ts';
import {
  lastUser,
  currentBatch,
  pinnedPlaces,
  placeKey,
  recalledPlaces,
  systemMessages,
  turnStart,
  unitsInSteps,
} from '../conversation/turns.ts';
import { type Shrink, savedByMessage } from './references.ts';
import type { ShrinkInput } from './shrinks.ts';
import type { EngineOptions, EngineRequest, Pins } from './types.ts';
import { recallToolFor } from '../recall/tool.ts';
import {
  type EditedPlaces,
  isDroppable,
  mediaIn,
  placesEdited,
  remainingInSteps,
} from '../strategies/lib/editable-texts.ts';
import { isFoldedHistory } from '../strategies/lib/summaries.ts';
import type { TenantControls } from '../store/controls.ts';
import type { FoundFold } from '../store/folds.ts';
import type { Protection } from '../strategies/strategy.ts';

/** Returns what the settings and the user pin. */
export function pinsOf(pins: Pins | undefined, controls: TenantControls | undefined): Pins {
  const { tools = [], texts = [], ...rest } = pins ?? {};
  return { ...rest, tools: [...tools, ...(controls?.pinnedTools ?? [])], texts };
}

type ProtectionOptions = {
  readonly pins: Pins;
  readonly recallTool: string | undefined;
  /** The name of the tool for notes; undefined when it is not offered. */
  readonly notesTool?: string | undefined;
  /** True when the client keeps folded messages in its history. */
  readonly isHistoryKept?: boolean;
  /** The context window in tokens, if it is known: it bounds what stays in view. */
  readonly window?: number | undefined;
};

/** Returns which messages and parts no fold may change. */
export function protectionOf(
  conversation: Conversation,
  { pins, recallTool, notesTool, isHistoryKept = false, window }: ProtectionOptions,
): Protection {
  const kept = keptMessages(conversation, isHistoryKept);
  const pinned = pinnedPlaces(conversation, pins.tools);
  const recalled = recalledPlaces(conversation, recallTool);
  const holdsPin = (index: number, at: number) => {
    if (pins.texts.length === 0) return false;
    const message = conversation.messages[index];
    const part = message?.parts[at];
    if (!message || !part) return false;
    if (part.type === 'tool-call') return holdsPinned(inputOf(conversation.body, message, part), pins.texts);
    return textsOf(part).some((span) => {
      const text = textOf(conversation.body, message, span);
      return pins.texts.some((pin) => text.includes(pin));
    });
  };
  const isPinned = (message: number, part: number) => holds(pinned, message, part) || holdsPin(message, part);
  let found: InView | undefined;
  const view = () => (found ??= partsInView(conversation, { pins, window, recalled, notesTool }));
  const isInView = (message: number, part: number) => view().parts.get(message)?.has(part) ?? false;
  const isReport = (message: number, part: number) =>
    view().reports.some((place) => place.message === message && place.part === part);
  return {
    message: (index) => kept.has(index),
    part: (message, part) => isPinned(message, part) || isInView(message, part) || isReport(message, part),
    recalled: (message, part) => holds(recalled, message, part),
    isPinned,
    isInView,
    hasPlainResults: pinned.size === 0 && recalled.size === 0 && pins.texts.length === 0,
    keptTexts: (message, part) => view().texts.get(message)?.get(part) ?? [],
  };
}

/** True when the arguments contain a pinned text, however they escape it. */
function holdsPinned(input: string, pins: readonly string[]): boolean {
  try {
    const spelled = JSON.stringify(JSON.parse(input));
    return pins.some((pin) => spelled.includes(JSON.stringify(pin).slice(1, -1)));
  } catch {
    return pins.some((pin) => input.includes(pin));
  }
}

/** Tells whether a part is in the set, which is mostly empty: then it needs no key. */
function holds(places: ReadonlySet<string>, message: number, part: number): boolean {
  return places.size > 0 && places.has(placeKey({ message, part }));
}

/** Returns the messages that only strategies of last resort may change. */
export function keptMessages(conversation: Conversation, isHistoryKept = false): ReadonlySet<number> {
  const { messages } = conversation;
  const isFolded = isHistoryKept ? (message: Message) => isFoldedHistory(conversation, message) : undefined;
  const start = turnStart(conversation, isFolded);
  const kept = new Set(currentBatch(conversation, start));
  const first = [...kept].reduce((min, index) => Math.min(min, index), messages.length);
  if (kept.size > 0 && first > 0) kept.add(first - 1);
  for (const index of [start, lastUser(conversation, isFolded)]) if (index !== undefined) kept.add(index);
  kept.add(messages.length - 1);
  for (const index of systemMessages(conversation)) kept.add(index);
  return kept;
}

// Tokens that a fold could still remove. Triggers with absolute limits use them, because no fold removes tools, system text, protected or pinned
// messages, parts that the provider requires unchanged, or the stubs of earlier folds.

type FoldableInput = Pick<ShrinkInput, 'conversation' | 'codec' | 'counter' | 'protects'> & {
  readonly minResultBytes: number;
  readonly keepNewestMedia?: number | undefined;
};

/** The approximate tokens of a stub. */
export const stubTokens = 60;

/**
 * Returns the plain count of all units that may be dropped, and of the results in other units that a stub may replace. It takes a pass over the
 * messages, so it is only called for large requests.
 */
export function* foldableTokens(
  input: FoldableInput,
  { edits, shrinks }: { readonly edits: readonly Edit[]; readonly shrinks: readonly Shrink[] },
): Steps<number> {
  const { conversation, counter, protects, codec, minResultBytes: minBytes } = input;
  yield* stayingInSteps(conversation);
  if (codec.rules.ahead) yield* codec.rules.ahead(conversation);
  const edited = placesEdited(edits);
  const media = yield* openMedia(input, edited);
  const saved = savedByMessage(shrinks);
  const remaining = yield* remainingInSteps({
    conversation,
    edits,
    measure: {
      text: (text) => counter.text(text),
      part: (block, part) => counter.part(conversation, block, part),
      media: (block, one) => counter.media(conversation, block, one),
      message: (index) => counter.message(conversation, index) - (saved.get(index) ?? 0),
    },
  });

  const isFree = (message: Message): boolean =>
    message.role !== 'system' &&
    isDroppable(protects, message) &&
    codec.rules.mayEdit(conversation, { kind: 'drop-message', message: message.index, memory: undefined });

  const tokensOfResults = (message: Message): number => {
    const { index, parts } = message;
    if (protects.message(index)) return 0;
    const bytes = parts.reduce((sum, part, at) => {
      if (part.type !== 'tool-result' || protects.part(index, at) || protects.recalled(index, at)) return sum;
      const open = part.texts.filter(({ start, end }, text) => {
        if (end - start - 2 < minBytes || edited.texts.has(`${index}.${at}.${text}`)) return false;
        const place = { message: index, part: at, text };
        return codec.rules.mayEdit(conversation, {
          kind: 'replace-text',
          at: place,
          stub: '',
          memory: undefined,
        });
      });
      return open.reduce((total, { start, end }) => total + end - start, sum);
    }, 0);
    const texts = bytes === 0 ? 0 : tokensOfTexts(input, message, bytes, remaining(index));
    return texts + (media.get(index) ?? 0);
  };

  yield;
  const units = yield* unitsInSteps(conversation);
  let tokens = 0;
  for (const unit of units) {
    yield;
    const open = unit.filter(({ index }) => !edited.messages.has(index));
    let isAllFree = true;
    for (const message of open) {
      isAllFree &&= isFree(message);
      yield;
    }
    for (const message of open) {
      tokens += isAllFree ? remaining(message.index) : tokensOfResults(message);
      yield;
    }
  }
  return Math.round(tokens);
}

/** Returns the tokens that stubs would save in place of old images, documents and sounds, by message. */
export function* openMedia(
  { conversation, counter, protects, keepNewestMedia: keepNewest }: FoldableInput,
  edited: EditedPlaces,
): Steps<ReadonlyMap<number, number>> {
  const saved = new Map<number, number>();
  if (keepNewest === undefined) return saved;
  const { messages } = conversation;
  const isHolder = holders(messages, ({ parts }) => parts.some((part) => mediaOf(part).length > 0));
  let newer = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    if (index % 64 === 0) yield;
    if (!isHolder[index] || edited.messages.has(index)) continue;
    const message = messages[index]!;
    const { open, counted } = mediaIn(message, { edited, protects, keepNewest, newer });
    newer += counted;
    if (open.length === 0 || protects.message(index)) continue;
    const tokens = open.map(({ media }) => counter.media(conversation, message, media) - stubTokens);
    saved.set(
      index,
      tokens.reduce((sum, one) => sum + Math.max(0, one), 0),
    );
  }
  return saved;
}

/** Tells for each message whether it holds media. */
const holders = perMessage<boolean>();

/** Returns the part of a message's tokens that is in texts of so many bytes. Media have few tokens for their bytes. */
export function tokensOfTexts(
  { conversation, counter }: Pick<FoldableInput, 'conversation' | 'counter'>,
  message: Message,
  bytes: number,
  tokens: number,
): number {
  let rest = tokens;
  for (const part of message.parts)
    for (const media of mediaOf(part)) rest -= counter.media(conversation, message, media);
  return Math.max(0, rest) * Math.min(1, bytes / contentBytes(conversation.body, message));
}

// Offering the recall tool. Providers cache tools before all messages, so a tool that is added late re-bills the whole conversation, and one that is
// never called costs some tokens in each request: docs/decisions/0004.

/**
 * Returns the recall tool that can be offered. Requests without tools (titles, routing) are not the agent's conversation; with several
 * replies, their recalls could not be answered separately.
 */
export function toolToOffer(
  {
    offerRecall,
    offerNotes,
    isHistoryKept,
  }: Pick<EngineOptions, 'offerRecall' | 'offerNotes' | 'isHistoryKept'>,
  { toolNames, replies }: Conversation,
): RecallTool | undefined {
  if (offerRecall === 'never' || toolNames.length === 0 || replies !== 1) return undefined;
  if (!isHistoryKept) return recallToolFor(toolNames, 'id or query', offerNotes);
  const own = recallToolFor([], 'id or query', offerNotes);
  return toolNames.includes(own.name) ? own : undefined;
}

/**
 * True when the originals of a fold can be read again: with the recall tool, or by the program that keeps the folded history. With `never`
 * the user wants folds without recall. In all other cases (no tools, several replies; `now`: calls are forbidden in this reply, which may be the
 * last one) a fold would leave ids that nobody can read, so only requests that would not fit are folded: docs/decisions/0028.
 */
export function hasWayBack(
  options: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  conversation: Conversation,
  when: 'now' | 'later' = 'later',
): boolean {
  if (options.offerRecall === 'never' || options.isHistoryKept === true) return true;
  return toolToOffer(options, conversation) !== undefined && !(when === 'now' && conversation.forbidsRecall);
}

/**
 * True when the tool is offered from the first request of a conversation on. With `with-fold` it is offered as soon as something can be
 * recalled. But a model that binds its replies to the tools gets it at once, because a later tool would make these replies invalid.
 */
export function isOfferedAlways(
  { offerRecall = 'always', isHistoryKept }: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  { rules }: Pick<Codec, 'rules'>,
  conversation: Conversation,
): boolean {
  return isHistoryKept === true || offerRecall === 'always' || rules.bindsPrefix(conversation);
}

// Checks of a fold before it is sent: it must be as valid as the original, and never larger.

/**
 * Returns the problems with rules that the second conversation breaks more often than the first. A client may send a conversation that its provider would
 * refuse; that is no reason not to fold it.
 */
export function newProblems(
  rules: FormatRules,
  before: Conversation,
  after: Conversation,
): readonly Problem[] {
  const problems = rules.problems(after);
  if (problems.length === 0) return [];
  const isNew = exceeds(rules.problems(before).map(({ rule }) => rule));
  return problems.filter(({ rule }) => isNew(rule));
}

/**
 * Returns the first rule that a body breaks more often than the body it was made from, or the loss of a loaded tool. Both are read with
 * `JSON.parse`, independently of the code that made the body. Undefined for a sound body.
 */
export function newFault(
  { faults }: Pick<FormatRules, 'faults'>,
  before: Uint8Array,
  after: Uint8Array,
): string | undefined {
  const found = oneStep(() => faults(after));
  const allowed = found.length === 0 ? [] : oneStep(() => faults(before));
  const fault = found.find(exceeds(allowed));
  if (fault !== undefined) return fault;
  const loaded = loadedTools(before);
  return loaded > 0 && loadedTools(after) < loaded ? 'loaded-tools-stay' : undefined;
}

/** Returns a function that tells, for rules named one after another, which are broken more often than in `rules`. */
function exceeds(rules: readonly string[]): (rule: string) => boolean {
  const allowed = new Map<string, number>();
  for (const rule of rules) allowed.set(rule, (allowed.get(rule) ?? 0) + 1);
  return (rule) => {
    const left = allowed.get(rule) ?? 0;
    allowed.set(rule, left - 1);
    return left <= 0;
  };
}

const loading =
  /"type"\s*:\s*"(?:tool_reference|tool_search_\w+|additional_tools|mcp_list_tools)"|"name"\s*:\s*"(?:tool_?search|search_tools?)"/gi;

/** Counts the loaded tools that a body names in the usual spelling. A name of more than 300 bytes may be missed. */
function loadedTools(body: Uint8Array): number {
  const found = inPieces(body, 300, (piece, length) =>
    [...latin1.decode(piece).matchAll(loading)].filter(({ index }) => index < length),
  );
  return found.flat().length;
}

const latin1 = new TextDecoder('latin1');

/** The edits of folds whose bodies were found sound. They are replayed with every request. */
const sound = new WeakSet<readonly Edit[]>();

/** True when a body with these edits was found sound before. */
export function isKnownSound(edits: readonly Edit[]): boolean {
  return edits.length === 0 || sound.has(edits);
}

/** Remembers that a body with these edits is sound. */
export function noteSound(edits: readonly Edit[]): void {
  sound.add(edits);
}

// Folds that are not repeated: a refusal of the provider that is old, and what the user undid.

/** Milliseconds. A refusal may have been the provider's mistake, so folding is tried again after this time. */
const foldingDisabledForMs = 24 * 60 * 60 * 1_000;

/** Drops a refusal of our edits that is older than a day from a fold. `now`: milliseconds since the epoch. */
function withoutOldRefusal(found: FoundFold, now: number | undefined): FoundFold {
  const { foldingDisabled, foldingDisabledSince } = found.fold;
  if (!foldingDisabled || now === undefined) return found;
  const isForgotten =
    foldingDisabledSince === undefined || now - foldingDisabledSince >= foldingDisabledForMs;
  return isForgotten
    ? { ...found, fold: { ...found.fold, foldingDisabled: false, foldingDisabledSince: undefined } }
    : found;
}

/** Stands for the folds that the user undid: no edits, and no new ones unless the request would not fit. */
const undoneFold = { length: 0, edits: [], foldingDisabled: true, id: 'undone' } as const;

/** True when the user undid all folds that were found. */
export function isUndone(found: FoundFold | undefined): boolean {
  return found?.fold === undoneFold;
}

/**
 * Returns the folds that may be repeated. Those that the user undid are left out; one that was made later, because the request would not fit,
 * is repeated. `beginning` identifies the conversation; `now`: milliseconds since the epoch.
 */
export function foldsInForce(
  folds: readonly FoundFold[],
  { controls }: Pick<EngineRequest, 'controls'>,
  beginning: string | undefined,
  now: number | undefined,
): readonly FoundFold[] {
  const undone = controls?.undone.find((one) => one.beginning === beginning);
  if (!undone) return folds.map((found) => withoutOldRefusal(found, now));
  const later = folds.filter(({ fold }) => fold.at !== undefined && fold.at > undone.at);
  const disabled = later.map(({ fold, matched }) => ({ fold: { ...fold, foldingDisabled: true }, matched }));
  return disabled.length > 0 ? disabled : [{ fold: undoneFold, matched: 0 }];
}
