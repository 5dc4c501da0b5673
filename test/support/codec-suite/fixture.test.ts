import { describe, expectTypeOf, it } from 'vitest';
import type { CodecFixture, Exchange, UsageFixture } from './fixture.ts';

type OptionalKeys<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T];

describe('a codec fixture', () => {
  it('has no member that a new codec could leave out: a case is answered, or the reason said why it cannot be', () => {
    expectTypeOf<OptionalKeys<CodecFixture>>().toBeNever();
    expectTypeOf<OptionalKeys<UsageFixture>>().toBeNever();
    expectTypeOf<OptionalKeys<Exchange>>().toBeNever();
    expectTypeOf<OptionalKeys<CodecFixture['oddBodies']>>().toBeNever();
    expectTypeOf<OptionalKeys<CodecFixture['refused']>>().toBeNever();
    expectTypeOf<OptionalKeys<CodecFixture['exchanges']>>().toBeNever();
  });
});
