/** Keeps the finished items of one streamed response, so that they can be sent back verbatim. */
import { isPrivate, type Item } from './output.ts';

export interface ItemRecorder {
  /** An item begins, of which only the head is known. */
  begin(index: number, head: unknown): void;
  finish(index: number, item: Item): void;
  /** True for a private call: its events are kept from the client. */
  isHeld(index: number): boolean;
  anyHeld(): boolean;
  isFinished(index: number): boolean;
  /** The finished items, in order of their index. */
  items(): readonly Item[];
}

export function recordItems(recallTool: string | undefined): ItemRecorder {
  const finished = new Map<number, Item>();
  const held = new Set<number>();

  function begin(index: number, head: unknown): void {
    if (isPrivate(head, recallTool)) held.add(index);
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
    items: () => [...finished].toSorted(([a], [b]) => a - b).map(([, item]) => item),
  };
}
