/**
 * Public entry `leporello/testing`, for authors of stores: the suite that our stores pass, which needs vitest and fast-check, and the scripted
 * provider. `leporello/testing/provider` gives the provider without them.
 */
export {
  type FakeProvider,
  type FakeProviderOptions,
  type RecordedRequest,
  type Reply,
  type Script,
  type ScriptRequest,
  startFakeProvider,
  type Turn,
  type TurnPart,
} from './fake-provider/fake-provider.ts';
export { type StoreFixture, storeSuite } from './store-suite.ts';
