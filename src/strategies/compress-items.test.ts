import { describe, expect, it } from 'vitest';
import type { Compression } from '../receipts/receipt.ts';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite } from '../../test/support/strategy-suite.ts';
import { compressItems } from './compress-items.ts';

strategySuite(compressItems());

const hits = ['lamps', 'ropes', 'sails'].map((about) => ({
  title: about,
  body: `This one is about ${about}. Then it wanders off. It says nothing new for a long while, as many do. It tells of a house. It tells of a road. It was written in 1759.`.padEnd(
    400,
    ' Much more is said.',
  ),
}));

/** Returns the results of a batch of calls after `amount` tokens had to be saved. */
function compressed(calls: readonly { name: string; result: string }[], amount: number, question = 'Go') {
  const conversation = readChat(chatBody([{ user: question }, { calls }]));
  const view = foldView(conversation, {
    idOf: () => 'mem_0123456789abcdef',
    excess: { unit: 'tokens', amount },
  });
  return compressItems()
    .propose(view)
    .map((edit) => (edit.kind === 'replace-text' ? { message: edit.at.message, stub: edit.stub } : edit));
}

describe('compress-items', () => {
  it('shortens no more items than necessary, the last of a search first, and says so', () => {
    const [one] = compressed([{ name: 'web_search', result: JSON.stringify(hits) }], 40);
    expect(one).toEqual({
      message: 2,
      stub: JSON.stringify([
        hits[0],
        hits[1],
        {
          title: 'sails',
          body: 'This one is about sails. Then it wanders off. […] It tells of a house. […] It was written in 1759. […]',
          compressed: true,
          compression:
            '[1 of 3 items, the least relevant, shortened where it says […]. To read it again call read_memory with {"id":"mem_0123456789abcdef"}.]',
        },
      ]),
    });
  });

  it('asks for words about the question that the list was fetched for, whatever the user asked since', () => {
    const calls = [{ name: 'web_search', result: JSON.stringify(hits) }];
    const wanted = (later: readonly Step[]) => {
      const guidance = new Set<string>();
      const conversation = readChat(chatBody([{ user: 'What about sails?' }, { calls }, ...later]));
      compressItems({ reach: 'history', kind: 'model' }).propose(
        foldView(conversation, {
          excess: { unit: 'tokens', amount: 40 },
          written: (wish) => void guidance.add(JSON.stringify([wish.key, wish.guidance])),
        }),
      );
      return [...guidance];
    };
    const first = wanted([{ assistant: 'Done.' }, { user: 'What about sails?' }]);
    expect(first).not.toEqual([]);
    expect(wanted([{ assistant: 'Done.' }, { user: 'And ropes?' }])).toEqual(first);
  });

  it('reports how much smaller the shortened items are', () => {
    const reported: Compression[] = [];
    const calls = [{ name: 'web_search', result: JSON.stringify(hits) }];
    const view = foldView(readChat(chatBody([{ user: 'Go' }, { calls }])), {
      idOf: () => 'mem_0123456789abcdef',
      reportCompression: (_text, compression) => reported.push(compression),
    });
    compressItems().propose(view);
    expect(reported).toEqual([
      {
        id: 'mem_0123456789abcdef',
        level: 'items',
        tokensBefore: 321,
        tokensAfter: 99,
        ratio: 321 / 99,
        target: 1 / 0.3,
        by: 'extractive',
        warning: undefined,
        problem: undefined,
      },
    ]);
  });

  it('uses the question if nothing else ranks the items', () => {
    const [one] = compressed(
      [{ name: 'list_articles', result: JSON.stringify(hits) }],
      40,
      'Tell me of sails and ropes',
    );
    const stub = (one as { stub: string }).stub;
    expect(stub).toContain(JSON.stringify(hits[1]));
    expect(stub).toContain(JSON.stringify(hits[2]));
    expect(stub).not.toContain(JSON.stringify(hits[0]));
  });

  it('shortens all lists of the batch evenly', () => {
    const result = JSON.stringify(hits);
    const both = compressed(
      [
        { name: 'search', result },
        { name: 'search', result },
      ],
      100,
    );
    expect(both.map((one) => 'message' in one && one.message)).toEqual([2, 3]);
  });

  it('does not change errors, files that may be edited, and text without a list', () => {
    const result = JSON.stringify(hits);
    expect(compressed([{ name: 'read_file', result }], 1_000)).toEqual([]);
    expect(compressed([{ name: 'search', result: hits[0]!.body.repeat(4) }], 1_000)).toEqual([]);
  });

  describe('before stubs', () => {
    const shortened = (amount: number, results = 2) => {
      const calls = Array.from({ length: results }, () => ({
        calls: [{ name: 'search', result: JSON.stringify(hits) }],
      }));
      const conversation = readChat(
        chatBody([{ user: 'Go' }, ...calls, { assistant: 'Done.' }, { user: 'And?' }]),
      );
      const view = foldView(conversation, { excess: { unit: 'tokens', amount } });
      return compressItems({ reach: 'history' })
        .propose(view)
        .map((edit) => (edit.kind === 'replace-text' ? edit.at.message : edit.kind));
    };

    it('shortens items of old results, so that notes about them are saved, too', () => {
      expect([shortened(40), shortened(200)]).toEqual([
        [2, 4],
        [2, 4],
      ]);
    });

    it('changes nothing if that would not be enough, or if everything is to go', () => {
      expect([shortened(2_000), shortened(Number.POSITIVE_INFINITY)]).toEqual([[], []]);
    });
  });
});
