import { describe, expectTypeOf, it } from 'vitest';
import type { CodecFixture, Exchange, UsageFixture } from './fixture.ts';

type OptionalKeys<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T];

describe('a codec fixture', () => {
  it('has no optional member: a new codec answers each case, or says why it cannot', () => {
    expectTypeOf<OptionalKeys<CodecFixture>>().toBeNever();
    expectTypeOf<OptionalKeys<UsageFixture>>().toBeNever();
    expectTypeOf<OptionalKeys<Exchange>>().toBeNever();
    expectTypeOf<OptionalKeys<CodecFixture['oddBodies']>>().toBeNever();
    expectTypeOf<OptionalKeys<CodecFixture['refused']>>().toBeNever();
    expectTypeOf<OptionalKeys<CodecFixture['exchanges']>>().toBeNever();
  });
});
