/** For whoever writes a store, a codec or a strategy: the suites ours pass, and the scripted provider. Needs vitest and fast-check. */
export { codecSuite } from './codec-suite/codec-suite.ts';
export type { CodecFixture } from './codec-suite/fixture.ts';
export {
  type FakeProvider,
  type FakeProviderOptions,
  type RecordedRequest,
  startFakeProvider,
} from './fake-provider/fake-provider.ts';
export type { Reply, Script, ScriptRequest, Turn, TurnPart } from './fake-provider/script.ts';
export { type StoreFixture, storeSuite } from './store-suite.ts';
export { foldView, strategySuite } from './strategy-suite.ts';
