/**
 * Shortens results that are lists (articles, hits, records) item by item, least relevant first; the sentences that say most stay. For the newest
 * results of tools if they are too large together with everything else; originals can be recalled.
 */
import { type ItemList, shortenerFor } from '../arrival/items/shorten.ts';
import { itemsOf, rankItems } from '../arrival/items/items.ts';
import { inputOf, textOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { pairCalls, placeKey, turnStart } from '../conversation/turns.ts';
import { type Compression, compressionOf } from '../receipts/compression.ts';
import { isFileContent, isSearch } from './lib/tool-calls.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { itemsNote } from './lib/stub.ts';
import { editableTexts, type EditableText } from './lib/editable-texts.ts';

export const compressItems: Strategy = { name: 'compress-items', reach: 'newest', propose };

/** The share of an item that stays. */
const share = 0.3;

/** A result that may be compressed, and its shortened items so far. */
type Listed = {
  readonly slot: EditableText;
  readonly list: ItemList;
  readonly tool: string;
  readonly smaller: Map<number, string>;
};

function propose(view: FoldView): readonly Edit[] {
  if (view.excess.unit === 'messages') return [];
  const results = listsOf(view);
  let missing = view.excess.amount;
  for (const { result, item, terms } of leastRelevantFirst(results, questionOf(view))) {
    if (missing <= 0) break;
    const whole = result.list.items[item]!;
    const short = whole.shorter(share, shortenerFor(terms));
    if (short === undefined) continue;
    result.smaller.set(item, short);
    missing -= view.measure.text(whole.text) - view.measure.text(short);
  }
  return results.flatMap((result) => editOf(view, result) ?? []);
}

function listsOf(view: FoldView): readonly Listed[] {
  const calls = callsOf(view);
  return [...editableTexts(view, 'tool-result')].flatMap((slot): readonly Listed[] => {
    const call = calls.get(placeKey(slot.at));
    if (!call || isFileContent(call) || !isCandidate(view, slot)) return [];
    const list = itemsOf(slot.text());
    return list ? [{ slot, list, tool: call.name, smaller: new Map() }] : [];
  });
}

function isCandidate(view: FoldView, { at, part, literal }: EditableText): boolean {
  return (
    literal.length - 2 >= view.minResultBytes &&
    !(part.type === 'tool-result' && part.isError === true) &&
    !view.protects.part(at.message, at.part) &&
    !view.protects.recalled(at.message, at.part)
  );
}

/** Returns calls by the key of their result's place. */
function callsOf({ conversation }: FoldView): ReadonlyMap<string, { name: string; input: string }> {
  return new Map(
    pairCalls(conversation).pairs.flatMap(({ name, call, result }) => {
      const message = conversation.messages[call.message]!;
      const part = message.parts[call.part];
      if (!result || part?.type !== 'tool-call') return [];
      return [[placeKey(result), { name, input: inputOf(conversation.body, message, part) }]];
    }),
  );
}

/** Returns the user's last message. */
function questionOf({ conversation }: FoldView): string {
  const message = conversation.messages[turnStart(conversation) ?? -1];
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

function editOf(view: FoldView, { slot, list, smaller }: Listed): Edit | undefined {
  if (smaller.size === 0) return undefined;
  const memory = view.idOf(slot.literal);
  const { recallTool } = view;
  const note = itemsNote({ items: smaller.size, of: list.items.length, memory, recallTool });
  const stub = `${list.write(smaller).trimEnd()}\n${note}`;
  const edit: Edit = { kind: 'replace-text', at: slot.at, stub, memory };
  const now = view.shrunk(slot.at) ?? slot.text();
  if (view.measure.text(stub) >= view.measure.text(now) || !view.mayEdit(edit)) return undefined;
  view.reportCompression(stub, compressionFor(view, list, smaller, memory));
  return edit;
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
