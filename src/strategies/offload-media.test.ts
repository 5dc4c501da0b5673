import { describe, expect, it } from 'vitest';
import { readChat } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite } from '../../test/support/strategy-suite.ts';
import { screenshot, screenshotLoop } from '../../test/support/screenshot-loop.ts';
import { type Edit, originalsOf } from '../conversation/edit.ts';
import { conversationCounter } from '../tokens/count-conversation.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import { offloadMedia, offloadNewestMedia } from './offload.ts';
import type { FoldView } from './strategy.ts';

strategySuite(offloadMedia());

const loop = screenshotLoop('chat', 2_000);
const counter = conversationCounter(await loadTokenCounter('gpt-4o'));

/** Returns the view of a loop with so many screenshots, counted as gpt-4o does. */
function viewOf(messages: readonly object[], change: Partial<FoldView> = {}): FoldView {
  const conversation = readChat(new TextEncoder().encode(JSON.stringify(loop.body(messages, false))));
  const view = foldView(conversation);
  const measure = {
    ...view.measure,
    media: (block: Parameters<typeof counter.media>[1], media: Parameters<typeof counter.media>[2]) =>
      counter.media(conversation, block, media),
  };
  return { ...view, measure, ...change };
}

const steps = (count: number) => Array.from({ length: count }, (_, at) => loop.step(at + 1)).flat();
const stubsOf = (edits: readonly Edit[]) =>
  edits.map((edit) => (edit.kind === 'replace-media' ? [edit.message, edit.stub.slice(0, 70)] : []));

describe('offload-media', () => {
  it('replaces old screenshots, oldest first, and leaves the newest four', () => {
    expect(stubsOf(offloadMedia().propose(viewOf(steps(6))))).toEqual([
      [3, '[Folded image: 1280×800 pixels, sent after step 1, computer {"action":'],
      [6, '[Folded image: 1280×800 pixels, sent after step 2, computer {"action":'],
    ]);
    expect(offloadMedia({ keepNewest: 6 }).propose(viewOf(steps(6)))).toEqual([]);
    expect(offloadMedia({ keepNewest: 0 }).propose(viewOf(steps(6)))).toHaveLength(6);
  });

  it('says where an image of a message came from, and gives back the content part byte for byte', () => {
    const view = viewOf(steps(5));
    const [edit] = offloadMedia().propose(view);
    const id = edit?.kind === 'replace-media' ? edit.memory : '';
    expect(edit).toMatchObject({
      stub: `[Folded image: 1280×800 pixels, sent after step 1, computer {"action":"left_click","coordinate":[37,53]}. read_memory {"id":"${id}"} shows it]`,
    });
    const original = originalsOf(view.conversation, [edit!]).get(id);
    expect(new TextDecoder().decode(original)).toBe(
      `{"type":"image_url","image_url":{"url":"data:image/png;base64,${screenshot(1, 2_000)}"}}`,
    );
  });

  it('names PDFs, documents, sounds and addresses', () => {
    const content = [
      {
        type: 'file',
        file: { file_data: `data:application/pdf;base64,${'JVBERi0xLjc'.padEnd(40_000, 'A')}` },
      },
      { type: 'file', file: { file_data: 'word '.repeat(8_000) } },
      { type: 'input_audio', input_audio: { data: 'A'.repeat(400_000), format: 'wav' } },
      { type: 'image_url', image_url: { url: `https://example.com/${'a'.repeat(400)}` } },
    ];
    const view = viewOf([{ role: 'user', content }]);
    expect(
      offloadMedia({ keepNewest: 0 })
        .propose(view)
        .map((edit) => (edit.kind === 'replace-media' ? edit.stub.split('. read_memory')[0] : '')),
    ).toEqual([
      '[Folded PDF: about 31 kB, sent at the start',
      '[Folded document: about 31 kB, sent at the start',
      '[Folded sound: about 301 kB, sent at the start',
      `[Folded image: at "https://example.com/${'a'.repeat(100)}", sent at the start`,
    ]);
  });

  it('stops when enough is saved, and spares what is protected, recalled or pinned', () => {
    const excess = { unit: 'tokens', amount: 1_500 } as const;
    expect(offloadMedia().propose(viewOf(steps(10), { excess }))).toHaveLength(2);
    const protects = {
      message: (index: number) => index === 3,
      part: (index: number) => index === 6,
      // A recalled screenshot does not count as one of the newest.
      recalled: (index: number) => index === 30,
    };
    expect(
      stubsOf(offloadMedia().propose(viewOf(steps(10), { protects }))).map(([message]) => message),
    ).toEqual([9, 12, 15]);
  });

  it('replaces even protected ones, the newest last, when nothing else makes the request fit', () => {
    const protects = { message: () => true, part: () => false, recalled: () => false };
    const excess = { unit: 'tokens', amount: 1_500 } as const;
    expect(offloadMedia().propose(viewOf(steps(6), { protects }))).toEqual([]);
    expect(
      stubsOf(offloadNewestMedia().propose(viewOf(steps(6), { protects, excess }))).map(
        ([message]) => message,
      ),
    ).toEqual([3, 6]);
  });
});
