/**
 * Lists the package's public exports, so that every added, renamed or dropped export is a visible change here. A subpath of
 * package.json without a source has no list yet; once the source exists, this test requires one.
 */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportsOf } from './architecture/exports.ts';
import { publishedSources, readManifest, sourceOf, subpathsOf } from './architecture/manifest.ts';

/** Both lists in alphabetical order. */
type Names = { readonly values: readonly string[]; readonly types: readonly string[] };

const exportLists: Readonly<Record<string, Names | undefined>> = {
  '.': {
    values: [
      'LeporelloError',
      'cacheRent',
      'clipNewest',
      'coldCache',
      'compressItems',
      'createLeporello',
      'createModelSummarizer',
      'defaultStrategies',
      'defaultTriggers',
      'dropFailedCalls',
      'dropOldest',
      'dropRecalls',
      'findSubgoals',
      'foldSubgoals',
      'inMemoryStore',
      'messageCount',
      'mustFit',
      'offloadMedia',
      'offloadResults',
      'openTrajectory',
      'stubArguments',
      'summarizeHistory',
      'tokenBudget',
      'windowFraction',
    ],
    types: [
      'Action',
      'Block',
      'CacheRentOptions',
      'Codec',
      'ColdCacheOptions',
      'CompressItemsOptions',
      'CompressedResult',
      'Compression',
      'Conversation',
      'CountText',
      'Demand',
      'DropOldestOptions',
      'Economy',
      'Edit',
      'EngineSettings',
      'ErrorCode',
      'FirstFound',
      'FoldReport',
      'FoldView',
      'Leporello',
      'LeporelloOptions',
      'Measure',
      'Media',
      'MediaOptions',
      'MediaPlace',
      'Message',
      'MessageCountOptions',
      'MinBytesOptions',
      'ModelOverride',
      'ModelOverrides',
      'ModelReply',
      'MustFitOptions',
      'NeutralStep',
      'Outcome',
      'OwnCounter',
      'Part',
      'PrepareRequest',
      'Prepared',
      'PriceOverrides',
      'ProgramStrategies',
      'Protection',
      'RecallTool',
      'RecalledMedia',
      'ResultRequest',
      'ShrinkSettings',
      'Store',
      'StoreEntry',
      'Strategy',
      'StrategyChoice',
      'StrategyDefaults',
      'Subgoal',
      'SubgoalOptions',
      'Summarizer',
      'SummaryBudget',
      'SummaryRequest',
      'SummarySettings',
      'SummaryStep',
      'TextPlace',
      'TokenBudgetOptions',
      'TokenCounter',
      'Tokenizer',
      'Trajectory',
      'TrajectoryEntry',
      'TrajectoryOptions',
      'TrajectoryRecord',
      'TrajectoryReport',
      'TrajectoryState',
      'Trigger',
      'TriggerSettings',
      'TriggerState',
      'Usage',
      'WindowFractionOptions',
    ],
  },
  './ai-sdk': {
    values: ['leporelloMiddleware', 'leporelloPrepareStep', 'leporelloTools', 'shrinkResults'],
    types: ['AdapterOptions', 'ResultShrinkOptions'],
  },
  './codecs/anthropic-messages': { values: ['anthropicMessages'], types: [] },
  './codecs/gemini': { values: ['gemini', 'geminiFor'], types: [] },
  './codecs/openai-chat': { values: ['openaiChat'], types: [] },
  './codecs/openai-responses': { values: ['openaiResponses'], types: [] },
  './codecs/values': {
    values: ['agentsItems', 'aiSdkMessages', 'wireBody'],
    types: ['MessagesRequest', 'ValuesCodec', 'WrittenValues'],
  },
  './codecs/values/langchain': {
    values: ['langchainMessages'],
    types: ['MessagesRequest', 'ValuesCodec', 'WrittenValues'],
  },
  './fetch': {
    values: ['createLeporelloFetch', 'wrap'],
    types: ['AnyReceipt', 'LeporelloFetchOptions', 'Receipt'],
  },
  './gateway': {
    values: ['assembleGateway', 'createFetchHandler', 'fetchUpstream'],
    types: [
      'AnyReceipt',
      'EngineParts',
      'ExperimentSettings',
      'FetchUpstreamOptions',
      'FoldSettings',
      'GatewayDeps',
      'GatewayLog',
      'GatewayMetrics',
      'GatewayRequest',
      'GatewayResponse',
      'GatewaySettings',
      'GatewayTracing',
      'Handler',
      'HeaderList',
      'ReceiptArchive',
      'ShadowSettings',
      'TenantSetting',
      'Upstream',
      'UpstreamRequest',
      'UpstreamResponse',
      'UpstreamUrls',
    ],
  },
  './gateway/node': {
    values: [
      'foldThread',
      'idleMoment',
      'prometheusMetrics',
      'receiptArchive',
      'serveNode',
      'undiciUpstream',
    ],
    types: [
      'FoldThread',
      'FoldThreadOptions',
      'NodeServer',
      'NodeServerOptions',
      'ReceiptArchive',
      'UndiciUpstream',
      'UndiciUpstreamOptions',
    ],
  },
  './langchain': {
    values: ['leporelloMiddleware', 'leporelloModel'],
    types: ['AdapterOptions', 'LangchainOptions', 'ResultShrinkOptions'],
  },
  './mcp': {
    values: [
      'listFoldsSchema',
      'memoryIn',
      'openMemory',
      'readMemorySchema',
      'registerMemoryTools',
      'searchMemorySchema',
    ],
    types: ['Memory', 'MemoryOptions', 'ToolServer'],
  },
  './openai-agents': {
    values: [
      'LeporelloSession',
      'leporelloInputFilter',
      'leporelloModel',
      'leporelloProvider',
      'leporelloRecallTool',
    ],
    types: ['AdapterOptions', 'AgentsModelOptions', 'SessionOptions'],
  },
  './opentelemetry': {
    values: ['openTelemetryTracing'],
    types: [],
  },
  './stores/http': {
    values: ['httpStore', 'storeOfService'],
    types: ['HttpStoreOptions', 'MemoryService'],
  },
  './stores/redis': { values: ['redisStore'], types: ['RedisClient', 'RedisOptions'] },
  './stores/sqlite': { values: ['sqliteStore'], types: ['SqliteOptions'] },
  './testing': {
    values: ['startFakeProvider', 'storeSuite'],
    types: [
      'FakeProvider',
      'FakeProviderOptions',
      'RecordedRequest',
      'Reply',
      'Script',
      'ScriptRequest',
      'StoreFixture',
      'Turn',
      'TurnPart',
    ],
  },
  './testing/provider': {
    values: ['startFakeProvider'],
    types: [
      'FakeProvider',
      'FakeProviderOptions',
      'RecordedRequest',
      'Reply',
      'Script',
      'ScriptRequest',
      'Turn',
      'TurnPart',
    ],
  },
};

const manifest = readManifest();
const targets = subpathsOf(manifest).map((target) => ({ ...target, source: sourceOf(target.default) }));

describe('the subpaths of the package', () => {
  it('are the listed ones, each with its types', () => {
    expect(targets.map(({ subpath }) => subpath)).toEqual(Object.keys(exportLists));
    for (const target of targets) expect(target.types).toBe(target.default.replace(/\.js$/, '.d.ts'));
  });

  it('have a CommonJS file at the place that compilers without `exports` look at', () => {
    const { main, types, typesVersions } = manifest;
    expect({ main, types }).toEqual({
      main: './dist/require/index.cjs',
      types: './dist/require/index.d.cts',
    });
    expect(typesVersions['*']['*']).toEqual(['./dist/require/*.d.cts']);
    for (const { subpath, require } of targets) {
      const file = `./dist/require/${subpath.slice(2) || 'index'}`;
      expect(require).toEqual({ types: `${file}.d.cts`, default: `${file}.cjs` });
    }
  });

  it('are the entry points of the build, together with the command', () => {
    const build = JSON.parse(readFileSync('tsconfig.build.json', 'utf8')) as { files: readonly string[] };
    // pi loads its extension by its path, and so does the gateway its thread.
    const loaded = ['src/cli/wrap/pi-extension.ts', 'src/gateway/fold-thread/thread.ts'];
    expect(build.files.filter((file) => !loaded.includes(file))).toEqual(publishedSources(manifest));
  });

  it('include package.json, which tools read', () => {
    expect(manifest.exports['./package.json']).toBe('./package.json');
  });
});

describe.each(targets)('$subpath', ({ subpath, source }) => {
  const names = exportLists[subpath];
  if (names === undefined) {
    it(`waits for ${source}`, () => {
      expect(existsSync(source), `${source} is written: list its names in test/exports.test.ts`).toBe(false);
    });
    return;
  }

  it('exports these names and no other', async () => {
    const exported = exportsOf(source);
    const named = (kind: 'value' | 'type'): readonly string[] =>
      exported.flatMap((entry) => (entry.kind === kind ? entry.name : [])).toSorted();
    expect({ values: named('value'), types: named('type') }).toEqual(names);
    const loaded = (await import(resolve(source))) as Record<string, unknown>;
    expect(Object.keys(loaded).toSorted()).toEqual(names.values);
  });

  it('documents every value', () => {
    const silent = exportsOf(source).filter(({ kind, documented }) => kind === 'value' && !documented);
    expect(silent.map(({ name }) => name)).toEqual([]);
  });
});

describe('the root', () => {
  it('exports only values that the program in test/consumer/ uses', () => {
    const program = readFileSync('test/consumer/program.ts', 'utf8');
    const used = program.slice(program.indexOf("} from 'leporello';"));
    const values = exportLists['.']?.values ?? [];
    expect(values.filter((name) => !new RegExp(`\\b${name}\\b`).test(used))).toEqual([]);
  });
});

describe('exportsOf', () => {
  it('distinguishes values from types and detects a missing docstring', () => {
    expect(exportsOf('test/fixtures/exports/face.ts')).toEqual([
      { name: 'told', kind: 'value', documented: true },
      { name: 'untold', kind: 'value', documented: false },
      { name: 'Shape', kind: 'type', documented: false },
    ]);
    expect(() => exportsOf('test/fixtures/exports/star.ts')).toThrow('has an export without a name');
  });
});

describe('the command', () => {
  it('is built from a file that starts with a shebang for node', () => {
    expect(Object.keys(manifest.bin)).toEqual(['leporello']);
    const source = sourceOf(manifest.bin['leporello'] ?? '');
    expect(source).toBe('src/cli/main.ts');
    if (existsSync(source)) expect(readFileSync(source, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });
});
