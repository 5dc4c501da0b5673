import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commonLength } from './encrypted-store.ts';

describe('commonLength', () => {
  it('returns the index at which two arrays first differ', () => {
    fc.assert(
      fc.property(fc.nat(200_000), fc.nat(300), (same, tail) => {
        const one = new Uint8Array(same + tail).fill(7);
        const other = one.slice();
        if (tail > 0) other[same] = 8;
        expect(commonLength(one, other)).toBe(same);
        expect(commonLength(other, one.subarray(0, same))).toBe(same);
        for (const likely of [1, same - 300, same - 3, same, same + 1, same + tail])
          expect(commonLength(one, other, likely)).toBe(same);
      }),
    );
  });
});
