/** For authors of stores, and for tests of agents: the suite that our stores pass, and a scripted provider. The suite needs vitest and fast-check. */
export {
  type FakeProvider,
  type FakeProviderOptions,
  type RecordedRequest,
  startFakeProvider,
} from './fake-provider/fake-provider.ts';
export type { Reply, Script, ScriptRequest, Turn, TurnPart } from './fake-provider/script.ts';
export { type StoreFixture, storeSuite } from './store-suite.ts';
