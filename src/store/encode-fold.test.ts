import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Edit } from '../conversation/edit.ts';
import { encodeFold, encodeFoldInSteps, parseFold, withFoldId } from './records.ts';

/** Texts around the size of a piece, with pairs of surrogates and halves of them at its end. */
const text = fc
  .tuple(
    fc.integer({ min: 65_530, max: 65_540 }),
    fc.array(fc.constantFrom('\ud83d', '\ude00', '"', 'x'), { maxLength: 12 }),
  )
  .map(([length, end]) => 'a'.repeat(length) + end.join('') + 'b'.repeat(70_000));

it('a fold has the same bytes when it is encoded in steps, and its id can be added to them', () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 3 }), fc.string(), (texts, id) => {
      const edits = texts.map(
        (stub, message): Edit => ({
          kind: 'replace-text',
          at: { message, part: 0, text: 0 },
          stub,
          memory: undefined,
        }),
      );
      const fold = { length: 3, edits, foldingDisabled: false, at: 5, limit: undefined };
      const steps = [...encodeFoldInSteps(fold)].length;
      expect(steps).toBeGreaterThanOrEqual(2 * texts.length);
      const run = encodeFoldInSteps(fold);
      let step = run.next();
      while (!step.done) step = run.next();
      expect(step.value).toEqual(encodeFold(fold));
      const complete = withFoldId(step.value, id);
      expect(complete).toEqual(encodeFold({ ...fold, id } as typeof fold));
      expect(parseFold(complete)?.id).toBe(id);
    }),
    { numRuns: 30 },
  );
});
