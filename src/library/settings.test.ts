import { describe, expect, it } from 'vitest';
import { assembleGateway, type GatewayDeps, type GatewaySettings } from '../gateway/app.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { type SqliteOptions, sqliteStore } from '../store/sqlite/sqlite.ts';
import { defaultStrategies } from '../strategies/default-strategies.ts';
import { strategyNames } from '../strategies/by-name.ts';
import { offloadResults } from '../strategies/offload.ts';
import { defaultTriggers } from '../triggers/default-triggers.ts';
import { mustFit } from '../triggers/limits.ts';
import { createLeporello, type LeporelloOptions } from '../library/leporello.ts';

const secret = new Uint8Array(32).fill(7);

/** Settings as a program without types may pass them. */
type WrongSettings = Readonly<Record<string, unknown>>;

const counterWords =
  '{ encoding: "o200k_base" } or { encoding: "cl100k_base" }, a function that returns the tokens of a text (or a promise of them), or { count } with such a function';
const optionsThere =
  'Known options: triggers, strategies, minResultBytes, keepNewestMedia, summaries, preset, subgoals, items, pins, shrinks, models, mode, usdPerMillionTokens, cacheMarks, calibration, offerRecall, offerNotes, repairEdits, memoryTtlMs, cacheMb, storeDeadlineMs, store, secret.';
const withTokenizer = (tokenizer: unknown): WrongSettings => ({ models: { 'my-*': { tokenizer } } });

const wrong: readonly (readonly [settings: WrongSettings, message: string])[] = [
  [{ trigers: {} }, `trigers is not an option. Did you mean triggers? ${optionsThere}`],
  [{ model: {} }, `model is not an option. Did you mean models? ${optionsThere}`],
  [{ pins: { tools: 'read' } }, 'pins.tools is "read", but must be a list of names of tools.'],
  [{ pins: { texts: [''] } }, 'pins.texts is [""], but must be a list of texts of at least one character.'],
  [
    { shrinks: true },
    'shrinks is true, but must be false or an object with lossless, lineNumbers, repeats and without.',
  ],
  [
    { shrinks: { lossles: true } },
    'shrinks.lossles is not an option. Did you mean shrinks.lossless? Known options: lossless, lineNumbers, repeats, without.',
  ],
  [
    { shrinks: { lineNumbers: 'some' } },
    'shrinks.lineNumbers is "some", but must be "every" or "every-fifth".',
  ],
  [
    { shrinks: { without: ['xml'] } },
    'shrinks.without is ["xml"], but must be a list of numbered-lines, search, json, lines, html, terminal, blob.',
  ],
  [
    { models: [] },
    'models is [], but must be an object by model name or glob, such as { "my-*": { windowTokens: 32000 } }.',
  ],
  [
    { models: { 'my-*': { window: 8_000 } } },
    'models["my-*"].window is not an option. Did you mean models["my-*"].windowTokens? Known options: windowTokens, maxInputTokens, maxOutputTokens, tokenizer, cacheKeptMs.',
  ],
  [
    { models: { 'my-*': { windowTokens: 0 } } },
    'models["my-*"].windowTokens is 0, but must be a whole number of at least 1.',
  ],
  [
    { models: { 'my-*': { cacheKeptMs: '5m' } } },
    'models["my-*"].cacheKeptMs is "5m", but must be a number of at least 0.',
  ],
  [
    withTokenizer('o200k_base'),
    `models["my-*"].tokenizer is "o200k_base", which is no tokenizer: give ${counterWords}.`,
  ],
  [
    withTokenizer({ encoding: 'p50k_base' }),
    `models["my-*"].tokenizer is {"encoding":"p50k_base"}, which names an encoding that is not known: give ${counterWords}.`,
  ],
  [
    withTokenizer({ encoding: 'o200k_base', estimate: { factor: 0 } }),
    `models["my-*"].tokenizer is {"encoding":"o200k_base","estimate":{"factor":0}}, which has an estimate without a factor above 0: give ${counterWords}.`,
  ],
  [
    withTokenizer({ count: 4 }),
    `models["my-*"].tokenizer is {"count":4}, which has a count that is no function: give ${counterWords}.`,
  ],
  [
    withTokenizer({ name: 'mine' }),
    `models["my-*"].tokenizer is {"name":"mine"}, which is no tokenizer: give ${counterWords}.`,
  ],
  [
    withTokenizer((text: string) => [text]),
    `models["my-*"].tokenizer is a function, which returns a list for the text "a": give ${counterWords}.`,
  ],
  [
    withTokenizer(() => Number.NaN),
    `models["my-*"].tokenizer is a function, which returns NaN for the text "a": give ${counterWords}.`,
  ],
  [
    withTokenizer({ name: '', count: (text: string) => text.length }),
    `models["my-*"].tokenizer is {"name":""}, which has a name that is no text: give ${counterWords}.`,
  ],
  [
    withTokenizer({ count: (text: string) => text.length, overhead: { message: -1 } }),
    `models["my-*"].tokenizer is {"overhead":{"message":-1}}, which has an overhead whose message is no number of tokens: give ${counterWords}.`,
  ],
  [
    withTokenizer(() => {
      throw new Error('not loaded yet');
    }),
    `models["my-*"].tokenizer is a function, which throws for the text "a": not loaded yet: give ${counterWords}.`,
  ],
  [{ mode: 'off' }, 'mode is "off", but must be "fold" or "observe".'],
  [
    { usdPerMillionTokens: { 'my-*': { input: -1 } } },
    'usdPerMillionTokens["my-*"].input is -1, but must be a number of at least 0.',
  ],
  [
    { usdPerMillionTokens: { 'my-*': { in: 1 } } },
    'usdPerMillionTokens["my-*"].in is not an option. Known options: input, cacheRead, cacheWrite, cacheWriteLong, output.',
  ],
  [{ cacheMarks: 'yes' }, 'cacheMarks is "yes", but must be true or false.'],
  [
    { calibration: true },
    'calibration is true, but must be false or an object with bounds, conversations and models.',
  ],
  [{ offerRecall: true }, 'offerRecall is true, but must be "always", "with-fold" or "never".'],
  [{ memoryTtlMs: 0 }, 'memoryTtlMs is 0, but must be a number above 0.'],
  [
    { storeDeadlineMs: 0 },
    'storeDeadlineMs is 0, but must be a number of milliseconds above 0 and at most 3600000.',
  ],
  [
    { store: {}, secret },
    'store is {}, but must be a store, with the functions get, getMany, getFirst, putMany, putUnless, touch, delete and close.',
  ],
  [
    { store: Promise.resolve(inMemoryStore()), secret },
    'store is a promise (write await before it), but must be a store, with the functions get, getMany, getFirst, putMany, putUnless, touch, delete and close.',
  ],
  [
    { secret: 'a secret of more than 32 characters' },
    'secret is a value of the type string, but must be at least 32 bytes, such as new TextEncoder().encode(text).',
  ],
  [
    { secret: new Uint8Array(16) },
    'secret is 16 bytes, but must be at least 32 bytes, such as new TextEncoder().encode(text).',
  ],
  [
    { store: inMemoryStore() },
    'secret is missing: without it, nothing in the in-memory store could be read after a restart. Create a secret once (openssl rand -base64 32), keep it where you keep passwords, and pass it with every start: secret: new TextEncoder().encode(text).',
  ],
  [{ triggers: [mustFit] }, 'triggers[0] is a function, but must be called, such as mustFit().'],
  [
    { triggers: [mustFit(), { name: 'mine' }] },
    'triggers[1] is {"name":"mine"}, but must be a trigger: { name, demand }, or mustFit().',
  ],
  [{ strategies: 'offload' }, 'strategies is "offload", but must be a list, such as [offloadResults()].'],
  [
    { strategies: ['offload-result'] },
    `strategies[0] is "offload-result", which is no strategy. Did you mean offload-results? Strategies by name: ${strategyNames.join(', ')}.`,
  ],
  [
    { strategies: [{ name: 'offload-results', minResultByte: 5 }] },
    'strategies[0].minResultByte is not an option. Did you mean strategies[0].minResultBytes? Known options: minResultBytes.',
  ],
  [
    { strategies: [5] },
    'strategies[0] is 5, but must be a strategy: { name, reach, propose }, with reach history, newest or everything, or offloadResults().',
  ],
  [
    { strategies: [{ name: 'mine', reach: 'all', propose: () => [] }] },
    'strategies[0] is {"name":"mine","reach":"all"}, but must be a strategy: { name, reach, propose }, with reach history, newest or everything, or offloadResults().',
  ],
];

/** Settings in the form of a configuration file. */
const wrongOfGateway: readonly (readonly [settings: WrongSettings, message: string])[] = [
  [
    { triggers: 5 },
    'triggers is 5, but must be an object with mustFit, windowFraction, tokenBudget, messageCount, coldCache and cacheRent.',
  ],
  [
    { triggers: { tokenBuget: {} } },
    'triggers.tokenBuget is not an option. Did you mean triggers.tokenBudget? Known options: mustFit, windowFraction, tokenBudget, messageCount, coldCache, cacheRent.',
  ],
  [
    { triggers: { cacheRent: { patience: 9 } } },
    'triggers.cacheRent.patience is not an option. Did you mean triggers.cacheRent.minPayback? Known options: keepForRequests, keepStepsForRequests, minTokens, minPayback.',
  ],
  [
    { triggers: { tokenBudget: true } },
    'triggers.tokenBudget is true, but must be false or an object with triggerTokens, targetTokens and bufferTokens.',
  ],
  [
    { triggers: { tokenBudget: { triggerTokens: -1 } } },
    'triggers.tokenBudget.triggerTokens is -1, but must be a whole number of at least 2.',
  ],
  [
    { triggers: { tokenBudget: { targetTokens: Number.NaN } } },
    'triggers.tokenBudget.targetTokens is NaN, but must be a whole number of at least 1.',
  ],
  [
    { triggers: { tokenBudget: { targetTokens: 200_000 } } },
    'tokenBudget.targetTokens is 200000, but must be below 109000 (tokenBudget.triggerTokens minus tokenBudget.bufferTokens).',
  ],
  [
    { triggers: { windowFraction: { triggerShare: 1.5 } } },
    'triggers.windowFraction.triggerShare is 1.5, but must be a number above 0 and at most 1.',
  ],
  [
    { triggers: { windowFraction: { targetShare: 0.9 } } },
    'windowFraction.targetShare is 0.9, but must be below 0.85 (windowFraction.triggerShare).',
  ],
  [
    { triggers: { mustFit: { targetShare: 1 } } },
    'triggers.mustFit.targetShare is 1, but must be a number above 0 and below 1.',
  ],
  [
    { triggers: { messageCount: { targetMessages: 2.5 } } },
    'triggers.messageCount.targetMessages is 2.5, but must be a whole number of at least 1.',
  ],
  [
    { triggers: { coldCache: { idleMs: -1 } } },
    'triggers.coldCache.idleMs is -1, but must be a number of at least 0.',
  ],
  [
    { triggers: { cacheRent: { minPayback: Number.POSITIVE_INFINITY } } },
    'triggers.cacheRent.minPayback is Infinity, but must be a number of at least 0.',
  ],
  [{ minResultBytes: -1 }, 'minResultBytes is -1, but must be a whole number of at least 0.'],
  [
    { summaries: true },
    'summaries is true, but must be false or an object with kind, maxTokens, model and deadlineMs.',
  ],
  [{ summaries: {} }, 'summaries.kind is missing, but must be "extractive" or "model".'],
  [
    { summaries: { kind: 'model', deadlineMs: 0 } },
    'summaries.deadlineMs is 0, but must be a number above 0.',
  ],
  [
    { summaries: { kind: 'extractive', maxTokens: 5 } },
    'summaries.maxTokens is 5, but must be a whole number of at least 100.',
  ],
  [
    { preset: 'fast' },
    'preset is "fast", but must be "cost", "long-horizon", "production", "summaries" or "debugging".',
  ],
  [{ subgoals: { ratio: 1 } }, 'subgoals.ratio is 1, but must be a number from 1.5 to 1000, or "adaptive".'],
  [{ subgoals: { levels: 'never' } }, 'subgoals.levels is "never", but must be "always" or "as-needed".'],
  [
    { mode: 'off', preset: 'fast' },
    'preset is "fast", but must be "cost", "long-horizon", "production", "summaries" or "debugging".\nmode is "off", but must be "fold" or "observe".',
  ],
];

describe('settings that are not allowed', () => {
  it.each(wrong)('are refused when the library is created: %j', (settings, message) => {
    expect(() => createLeporello(settings as LeporelloOptions)).toThrow(
      expect.objectContaining({ code: 'bad-config', message }),
    );
  });

  it.each<readonly [WrongSettings, string]>([
    ...wrongOfGateway,
    [{ tennant: 'me' }, 'tennant is not an option. Did you mean tenant? Known options: '],
    [{ tenant: 'User 5' }, 'tenant is "User 5", but must be 1 to 64 of a-z, 0-9 and -.'],
    [
      { urls: { openAi: 'http://127.0.0.1' } },
      'urls.openAi is not an option. Did you mean urls.openai? Known options: ',
    ],
    [
      { urls: { openai: 'https://me:password@example.org' } },
      'urls.openai is "https://...@example.org", but must be an http or https URL without user, query and fragment, such as https://api.example.org/v1.',
    ],
    [{ maxBodyBytes: '64 MB' }, 'maxBodyBytes is "64 MB", but must be a whole number of at least 1.'],
    [{ prepareDeadlineMs: -1 }, 'prepareDeadlineMs is -1, but must be a number above 0.'],
    [{ recall: { maxRounds: 0 } }, 'recall.maxRounds is 0, but must be a whole number from 1 to 100.'],
    [{ adminToken: '' }, 'adminToken is too short, but must be a text of at least 16 characters.'],
    [{ adminToken: 5 }, 'adminToken is not a text, but must be a text of at least 16 characters.'],
    [
      { allowedHosts: 'localhost' },
      'allowedHosts is "localhost", but must be a list of host names without ports.',
    ],
    [{ mode: 'off' }, 'mode is "off", but must be "fold" or "observe".'],
  ])('are refused when the gateway is assembled: %j', (settings, message) => {
    expect(() => assembleGateway(settings as GatewaySettings, parts())).toThrow(
      expect.objectContaining({ code: 'bad-config', message: expect.stringContaining(message) }),
    );
  });
});

describe('parts of a gateway that are not allowed', () => {
  it.each<readonly [string, unknown, string]>([
    ['missing', undefined, 'deps is missing, but must be an object with store, secret, upstream, log, '],
    [
      'a promise',
      { ...parts(), store: Promise.resolve(inMemoryStore()) },
      'deps.store is a promise (write await before it), but must be a store, ',
    ],
    [
      'without a secret',
      { ...parts(), secret: undefined },
      'deps.secret is a value of the type undefined, but must be at least 32 bytes',
    ],
    [
      'a function',
      { ...parts(), upstream: () => undefined },
      'deps.upstream is a function, but must be an upstream, such as undiciUpstream(), with the functions send and close.',
    ],
    ['misspelled', { ...parts(), logg: console }, 'deps.logg is not an option. Did you mean deps.log? '],
  ])('are refused: %s', (_name, deps, message) => {
    expect(() => assembleGateway({}, deps as GatewayDeps)).toThrow(
      expect.objectContaining({ code: 'bad-config', message: expect.stringContaining(message) }),
    );
  });
});

function parts(): GatewayDeps {
  return {
    store: inMemoryStore(),
    secret,
    upstream: { send: () => Promise.reject(new Error('unused')), close: () => Promise.resolve() },
    log: { info: () => undefined, warn: () => undefined },
  };
}

describe('options of a sqlite store that are not allowed', () => {
  it.each([
    [undefined, 'sqliteStore is missing, but must be an object with file, clock, lockWaitMs and isShared.'],
    [
      'memory.sqlite',
      'sqliteStore is "memory.sqlite", but must be an object with file, clock, lockWaitMs and isShared.',
    ],
  ])('are refused: %j', async (options, message) => {
    await expect(sqliteStore(options as unknown as SqliteOptions)).rejects.toMatchObject({
      code: 'bad-config',
      message,
    });
  });
});

describe('settings that are allowed', () => {
  it('include every setting', () => {
    const triggers: GatewaySettings['triggers'] = {
      mustFit: { targetShare: 0.5, markShare: 0.9 },
      windowFraction: { triggerShare: 1, targetShare: 0.5 },
      tokenBudget: false,
      messageCount: { targetMessages: 20, bufferMessages: 5 },
      coldCache: { idleMs: 0, keepForRequests: 0, keepStepsForRequests: 0, minTokens: 0.5 },
      cacheRent: { keepForRequests: undefined, keepStepsForRequests: 0, minTokens: 0, minPayback: 0 },
    };
    const all: Required<LeporelloOptions> = {
      triggers: defaultTriggers(triggers),
      strategies: [
        offloadResults({ minResultBytes: 0 }),
        ...defaultStrategies({
          minResultBytes: 0,
          summaries: { kind: 'model', maxTokens: 500, model: 'small', deadlineMs: 500 },
          preset: 'cost',
          subgoals: { preset: 'debugging', ratio: 'adaptive', levels: 'always', minActions: 0 },
        }),
      ],
      pins: { tools: ['read'] },
      shrinks: { lossless: true, lineNumbers: 'every-fifth', repeats: false, without: ['json'] },
      models: {
        'a-*': { tokenizer: { encoding: 'cl100k_base', estimate: { factor: 1.1, splitDigits: true } } },
        'b-*': {
          tokenizer: (text) => text.length / 4,
          windowTokens: 1_000,
          maxInputTokens: 1,
          maxOutputTokens: 1,
          cacheKeptMs: 0,
        },
        'c-*': { tokenizer: async (text) => Promise.resolve(text.length) },
        'd-*': { tokenizer: { name: 'mine', count: (text) => text.length, overhead: { message: 4 } } },
      },
      mode: 'observe',
      usdPerMillionTokens: {
        'a-*': { input: 0, cacheRead: 0.1, cacheWrite: 1, cacheWriteLong: 2, output: 5 },
      },
      cacheMarks: false,
      calibration: { bounds: { min: 0.5, max: 2 }, conversations: 10, models: 10 },
      offerRecall: 'never',
      offerNotes: true,
      repairEdits: false,
      cacheMb: 64,
      memoryTtlMs: 1,
      storeDeadlineMs: 100,
      minResultBytes: 0,
      keepNewestMedia: 2,
      summaries: { kind: 'extractive', maxTokens: 500 },
      items: { kind: 'extractive' },
      subgoals: false,
      preset: 'cost',
      store: inMemoryStore(),
      secret,
    };
    expect(() => createLeporello(all)).not.toThrow();
    expect(() => createLeporello({ ...all, triggers, strategies: ['drop-oldest'] })).not.toThrow();
    expect(() => createLeporello({ triggers: undefined as never })).not.toThrow();
  });
});
