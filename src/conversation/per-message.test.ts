import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Message } from './conversation.ts';
import { perMessage } from './messages.ts';

const messageAt = (index: number): Message => ({
  index,
  role: 'user',
  parts: [],
  span: { start: 0, end: 0 },
  digest: '',
  canonical: '',
});

describe('values for each message', () => {
  it('are computed once for all conversations that begin with the same message objects', () => {
    const valuesOf = perMessage<number>();
    let computed = 0;
    const indexOf = ({ index }: Message): number => (computed++, index);
    const first = [0, 1, 2].map(messageAt);
    const next = [...first, messageAt(3)];
    const branch = [...first, messageAt(3), messageAt(4)];
    expect(valuesOf(first, indexOf).slice(0, 3)).toEqual([0, 1, 2]);
    expect(valuesOf(next, indexOf).slice(0, 4)).toEqual([0, 1, 2, 3]);
    expect(valuesOf(branch, indexOf).slice(0, 5)).toEqual([0, 1, 2, 3, 4]);
    expect(computed).toBe(6);
  });

  it('belong to their own message, however conversations branch', () => {
    const step = fc.record({ from: fc.nat(5), keep: fc.nat(12), add: fc.nat(4) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const valuesOf = perMessage<Message>();
        const lists: (readonly Message[])[] = [[]];
        for (const { from, keep, add } of steps) {
          const start = (lists[from % lists.length] ?? []).slice(0, keep);
          const list = [...start, ...Array.from({ length: add }, (_, at) => messageAt(start.length + at))];
          lists.push(list);
          for (const one of lists) {
            const values = valuesOf(one, (message) => message);
            expect(one.every((message, at) => values[at] === message)).toBe(true);
          }
        }
      }),
    );
  });
});
