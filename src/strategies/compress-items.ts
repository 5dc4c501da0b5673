/**
 * Shortens results that are lists (articles, hits, records) item by item, least relevant first; the sentences that say most stay. It shortens the
 * newest results if they are too large together with everything else, or old results before they become stubs. Originals can be recalled.
 */
import { checkSettings, object, oneOf, wholeNumber } from '../checks.ts';
import { type ItemList, shortenerFor } from '../arrival/items/shorten.ts';
import { itemsOf, rankItems } from '../arrival/items/items.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { inputOf, textOf } from '../conversation/messages.ts';
import type { Edit } from '../conversation/edit.ts';
import type { Steps } from '../conversation/steps.ts';
import { pairCalls, placeKey, turnStart, userSpeaks } from '../conversation/turns.ts';
import { type Compression, compressionOf } from '../receipts/receipt.ts';
import { type WantedText, itemRequest } from '../outline/summarizer.ts';
import { isFileContent, isSearch } from '../outline/files-shown.ts';
import { type KeptText, way } from './lib/stubs.ts';
import type { FoldView, Strategy } from './strategy.ts';
import {
  type MinBytesOptions,
  type EditableText,
  minBytesStrategy,
  editableTexts,
} from './lib/editable-texts.ts';

export type CompressItemsOptions = MinBytesOptions & {
  /**
   * `newest` shortens results if folding history left too much. `history` shortens old results, and nothing if that is not enough to reach the
   * goal, so that it belongs before `offloadResults` in the list. Default `newest`.
   */
  readonly reach?: 'newest' | 'history' | undefined;
  /** `model` shortens old items to a model's words where these were written ahead. Default `extractive`: to sentences of their own. */
  readonly kind?: 'extractive' | 'model' | undefined;
};

/** Checks the options. */
export const compressItemsCheck = object<CompressItemsOptions>({
  minResultBytes: wholeNumber(0),
  reach: oneOf('newest', 'history'),
  kind: oneOf('extractive', 'model'),
});

/**
 * Shortens the items of results that are lists. Throws `bad-config` for options that are not allowed.
 *
 * @example
 * const strategies = [compressItems({ reach: 'history' }), offloadResults(), dropOldest(), compressItems(), clipNewest()];
 */
export function compressItems(options: CompressItemsOptions = {}): Strategy {
  checkSettings(compressItemsCheck, options, 'compressItems');
  const { reach = 'newest', kind, minResultBytes } = options;
  // New results were never seen before, so no model can have written about them.
  const asksForTexts = kind === 'model' && reach === 'history';
  const strategy = minBytesStrategy(
    { name: 'compress-items', reach, calledAs: 'compressItems' },
    { minResultBytes },
    reach === 'newest'
      ? propose
      : (view) => proposeOld(asksForTexts ? view : { ...view, written: undefined }),
  );
  return asksForTexts ? { ...strategy, asksForTexts } : strategy;
}

/** Proposes to shorten items of old results, if that is enough. */
function* proposeOld(view: FoldView): Steps<readonly Edit[]> {
  const { excess } = view;
  // A fold that only saves money wants everything that these messages can save, and a stub saves more.
  if (excess.unit === 'messages' || !Number.isFinite(excess.amount)) return [];
  const open = { ...view, protects: withMessages(view.protects) };
  let bytes = 0;
  for (const slot of editableTexts(open, 'tool-result')) {
    yield;
    if (isCandidate(open, slot)) bytes += slot.literal.length;
  }
  // A token of ordinary text has at least two bytes.
  return (bytes * (1 - share)) / 2 < excess.amount ? [] : yield* propose(open, true);
}

/** Counts the parts of protected messages as protected. */
function withMessages(protects: FoldView['protects']): FoldView['protects'] {
  return { ...protects, part: (message, part) => protects.message(message) || protects.part(message, part) };
}

/** The approximate tokens of the mark of a shortened item. */
const markTokens = 5;

/** The approximate tokens of the note about shortened items. */
const noteTokens = 70;

/** The share of an item that stays. */
const share = 0.3;

/** A result that may be compressed, and its shortened items so far. */
type Listed = {
  readonly slot: EditableText;
  readonly list: ItemList;
  readonly tool: string;
  /** The user's message that the result was fetched for. A model writes for it: a later question is not known ahead. */
  readonly asked: string;
  readonly smaller: Map<number, string>;
  /** The number of shortened items that have words of a model. */
  reworded: number;
};

/** Proposes to shorten items. `isAllOrNothing`: proposes nothing if that does not save enough. */
function* propose(view: FoldView, isAllOrNothing = false): Steps<readonly Edit[]> {
  if (view.excess.unit === 'messages') return [];
  const results = yield* listsOf(view);
  const question = textOfMessage(view.conversation, turnStart(view.conversation));
  let missing = view.excess.amount;
  for (const { result, item, terms } of leastRelevantFirst(results, question)) {
    if (missing <= 0) break;
    yield;
    const whole = result.list.items[item]!;
    const own = shortenerFor(terms);
    let isReworded = false;
    const short = whole.shorter(share, (text, max) => {
      const written = view.written?.(wantedItem(view, text, result.asked));
      // A model is asked by tokens, so slightly longer words are accepted rather than cut.
      if (written === undefined || written.length > max * 1.5) return own(text, max);
      isReworded = true;
      return written;
    });
    if (short === undefined) continue;
    // An old text is edited only once, so its note must be counted now.
    if (isAllOrNothing && result.smaller.size === 0) missing += noteTokens;
    result.smaller.set(item, short);
    result.reworded += Number(isReworded);
    missing -= view.measure.text(whole.text) - view.measure.text(short) - markTokens;
  }
  if (isAllOrNothing && missing > 0) return [];
  return results.flatMap((result) => editOf(view, result) ?? []);
}

/** Returns the text that a model may write for an item. */
function wantedItem({ idOf, measure }: FoldView, text: string, question: string): WantedText {
  const tokens = measure.text(text);
  return {
    form: 'item',
    key: idOf(new TextEncoder().encode(JSON.stringify(['item', share, question, text]))),
    ...itemRequest(text, question),
    tokens,
    aim: Math.max(30, Math.floor(tokens * share)),
  };
}

function* listsOf(view: FoldView): Steps<readonly Listed[]> {
  const { conversation } = view;
  const lists: Listed[] = [];
  const slots = new Map<string, EditableText[]>();
  for (const slot of editableTexts(view, 'tool-result')) {
    yield;
    if (!isCandidate(view, slot)) continue;
    const key = placeKey(slot.at);
    const others = slots.get(key);
    if (others) others.push(slot);
    else slots.set(key, [slot]);
  }
  const calls = slots.size > 0 ? yield* callsOf(view, slots) : new Map<string, Called>();
  for (const [key, those] of slots) {
    const call = calls.get(key);
    if (!call || isFileContent(call)) continue;
    for (const slot of those) {
      const list = itemsOf(yield* slot.textInSteps());
      if (!list) continue;
      const asked = textOfMessage(conversation, lastSpoken(conversation, slot.at.message));
      lists.push({ slot, list, tool: call.name, asked, smaller: new Map(), reworded: 0 });
      yield;
    }
  }
  return lists;
}

function isCandidate(view: FoldView, { at, part, literal }: EditableText): boolean {
  return (
    literal.length - 2 >= view.minResultBytes &&
    !(part.type === 'tool-result' && part.isError === true) &&
    !view.protects.part(at.message, at.part) &&
    !view.protects.recalled(at.message, at.part)
  );
}

type Called = { readonly name: string; readonly input: string };

/** Returns the calls of these results by the key of the result's place. */
function* callsOf(
  { conversation }: FoldView,
  results: ReadonlyMap<string, unknown>,
): Steps<ReadonlyMap<string, Called>> {
  const calls = new Map<string, Called>();
  for (const { name, call, result } of pairCalls(conversation).pairs) {
    yield;
    const key = result && placeKey(result);
    const message = conversation.messages[call.message]!;
    const part = message.parts[call.part];
    if (key === undefined || !results.has(key) || part?.type !== 'tool-call') continue;
    calls.set(key, { name, input: inputOf(conversation.body, message, part) });
  }
  return calls;
}

/** Returns the index of the user's last message before message `end`. */
function lastSpoken(conversation: Conversation, end: number): number {
  return conversation.messages.slice(0, end).findLastIndex((message) => userSpeaks(conversation, message));
}

function textOfMessage(conversation: Conversation, index = -1): string {
  const message = conversation.messages[index];
  if (!message) return '';
  return message.parts
    .flatMap((part) => (part.type === 'text' ? part.texts : []))
    .map((span) => textOf(conversation.body, message, span))
    .join('\n');
}

/** Sorts the items of all lists: the last item of each list comes before the last but one of any list, whatever their lengths. */
function leastRelevantFirst(results: readonly Listed[], question: string) {
  return results
    .flatMap((result) => {
      const { leastFirst, terms } = rankItems(result.list.items, question, isSearch(result.tool));
      return leastFirst.map((item, at) => ({ result, item, terms, from: at / leastFirst.length }));
    })
    .toSorted((a, b) => a.from - b.from);
}

function editOf(view: FoldView, { slot, list, smaller, reworded }: Listed): Edit | undefined {
  if (smaller.size === 0) return undefined;
  const memory = view.idOf(slot.literal);
  const { recallTool } = view;
  const note = itemsNote({
    items: smaller.size,
    of: list.items.length,
    memory,
    recallTool,
    isReworded: reworded > 0,
  });
  const stub = list.write(smaller, note);
  const edit: Edit = { kind: 'replace-text', at: slot.at, stub, memory };
  const now = view.shrunk(slot.at) ?? slot.text();
  if (view.measure.text(stub) >= view.measure.text(now) || !view.mayEdit(edit)) return undefined;
  const compression = compressionFor(view, list, smaller, memory);
  view.reportCompression(stub, { ...compression, ...writersOf(view, smaller.size, reworded) });
  return edit;
}

/** Returns whose words the shortened items have. */
function writersOf(
  { written }: FoldView,
  items: number,
  reworded: number,
): Pick<Compression, 'by' | 'problem'> {
  const problem =
    written && reworded < items
      ? `${items - reworded} of ${items} items were not written in time`
      : undefined;
  return {
    by: reworded === 0 ? 'extractive' : reworded < items ? 'both' : 'summarizer',
    problem,
  };
}

/** Describes the compression of all shortened items together. */
function compressionFor(
  { measure }: FoldView,
  { items }: ItemList,
  smaller: ReadonlyMap<number, string>,
  id: string,
): Compression {
  const tokensIn = (texts: Iterable<string>) => [...texts].reduce((sum, text) => sum + measure.text(text), 0);
  return compressionOf({
    id,
    level: 'items',
    tokensBefore: tokensIn([...smaller.keys()].map((item) => items[item]!.text)),
    tokensAfter: tokensIn(smaller.values()),
    target: 1 / share,
    by: 'extractive',
    problem: undefined,
  });
}

/** Ends a result whose items were shortened. */
export function itemsNote(
  shortened: KeptText & {
    readonly items: number;
    readonly of: number;
    /** True if the items were rewritten in other words. */
    readonly isReworded?: boolean;
  },
): string {
  const { items, of, memory, recallTool, isReworded = false } = shortened;
  const which = items === of ? `All ${of} items` : `${items} of ${of} items, the least relevant,`;
  const how = isReworded
    ? 'told in fewer words, or shortened where it says […]'
    : 'shortened where it says […]';
  return `[${which} ${how}. ${way(memory, recallTool)}]`;
}
