import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LeporelloError } from '../../errors.ts';
import type { SettingArgs } from '../flags.ts';
import { gatewaySettings } from './to-settings.ts';
import { loadConfig } from './load-config.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-config-'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Sources = {
  readonly flags?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly file?: unknown;
};

function settingsOf({ flags = {}, file }: Sources): SettingArgs {
  if (file !== undefined)
    writeFileSync(join(folder, 'config.json'), typeof file === 'string' ? file : JSON.stringify(file));
  return {
    file: file === undefined ? undefined : 'config.json',
    values: Object.entries(flags).map(([key, text]) => ({ flag: '--set', key, text })),
  };
}

async function load(sources: Sources) {
  return loadConfig(settingsOf(sources), { env: { HOME: '/home/ada', ...sources.env }, cwd: folder });
}

async function problems(sources: Sources): Promise<readonly string[]> {
  try {
    await load(sources);
  } catch (error) {
    if (!LeporelloError.isInstance(error)) throw error;
    expect(error.code).toBe('bad-config');
    return error.message.split('\n');
  }
  return [];
}

describe('loadConfig', () => {
  it('returns the defaults when nothing is set', async () => {
    expect(await load({})).toEqual({
      config: {
        port: 8787,
        host: '127.0.0.1',
        data: '~/.leporello',
        openaiUrl: 'https://api.openai.com/v1',
        anthropicUrl: 'https://api.anthropic.com',
        geminiUrl: 'https://generativelanguage.googleapis.com',
        mode: 'fold',
        calibrate: true,
        cacheMarks: true,
        triggers: {
          mustFit: {},
          windowFraction: { triggerShare: 0.85, targetShare: 0.5 },
          tokenBudget: { triggerTokens: 110_000, targetTokens: 40_000, bufferTokens: 1_000 },
          messageCount: false,
          coldCache: { keepForRequests: 8, keepStepsForRequests: 20, minTokens: 2_000 },
          cacheRent: { keepForRequests: 4, minTokens: 2_000, minPayback: 6 },
        },
        shrinks: { lossless: false, lineNumbers: 'every', repeats: true },
        minResultBytes: 1_000,
        keepNewestMedia: 4,
        pins: { tools: [], texts: [], plan: true, instructions: true },
        models: {},
        usdPerMillionTokens: {},
        recall: { offer: 'always', maxRounds: 5, maxTokens: 8_000, notes: false, repairEdits: true },
        limits: {
          maxBodyBytes: 67_108_864,
          prepareDeadlineMs: 2_000,
          storeDeadlineMs: 500,
          foldThreadBytes: 262_144,
          cacheMb: 160,
          drainMs: 30_000,
        },
        memory: { ttlDays: 30, redis: false, http: false },
        experiment: false,
        tracing: false,
        logLevel: 'info',
      },
      dataDir: '/home/ada/.leporello',
      unknownVariables: [],
    });
  });

  it('lets flags override variables, variables the file, and the file the defaults', async () => {
    const file = {
      port: 1,
      host: '::1',
      logLevel: 'warn',
      triggers: { tokenBudget: { triggerTokens: 50_000 } },
    };
    const env = {
      LEPORELLO_PORT: '2',
      LEPORELLO_HOST: '127.0.0.2',
      LEPORELLO_TRIGGERS_TOKEN_BUDGET_TARGET_TOKENS: '20000',
    };
    const { config } = await load({ file, env, flags: { port: '3' } });
    expect(config).toMatchObject({
      port: 3,
      host: '127.0.0.2',
      logLevel: 'warn',
      triggers: { tokenBudget: { triggerTokens: 50_000, targetTokens: 20_000, bufferTokens: 1_000 } },
    });
  });

  it('reads every kind of option from text', async () => {
    const { config } = await load({
      env: {
        LEPORELLO_TRIGGERS_MUST_FIT: 'false',
        LEPORELLO_TRIGGERS_WINDOW_FRACTION_TRIGGER_SHARE: '.9',
        LEPORELLO_TRIGGERS_MESSAGE_COUNT: 'true',
        LEPORELLO_PINS_TOOLS: 'plan, todo',
        LEPORELLO_PINS_TEXTS: '["a, b"]',
        LEPORELLO_MODELS: '{"my-*":{"windowTokens":5,"tokenizer":"cl100k_base"}}',
        LEPORELLO_RECALL_OFFER: 'never',
        LEPORELLO_CACHE_MARKS: 'FALSE',
        LEPORELLO_MEMORY_TTL_DAYS: '0.5',
        LEPORELLO_ADMIN_TOKEN: 'sixteen letters!',
      },
    });
    expect(config).toMatchObject({
      triggers: {
        mustFit: false,
        windowFraction: { triggerShare: 0.9 },
        messageCount: { targetMessages: 20, bufferMessages: 5 },
      },
      pins: { tools: ['plan', 'todo'], texts: ['a, b'] },
      models: { 'my-*': { windowTokens: 5, tokenizer: 'cl100k_base' } },
      recall: { offer: 'never' },
      cacheMarks: false,
      memory: { ttlDays: 0.5 },
      adminToken: 'sixteen letters!',
    });
  });

  it('passes a preset with the options that override it', async () => {
    const textFolds = async (sources: Parameters<typeof load>[0]) => {
      const { preset, subgoals } = gatewaySettings((await load(sources)).config);
      return { preset, subgoals };
    };
    expect(await textFolds({})).toEqual({});
    expect(await textFolds({ flags: { preset: 'long-horizon' } })).toEqual({ preset: 'long-horizon' });
    const env = { LEPORELLO_PRESET: 'cost', LEPORELLO_SUBGOALS_RATIO: 'adaptive' };
    expect(await textFolds({ env })).toEqual({ preset: 'cost', subgoals: { ratio: 'adaptive' } });
    expect(await textFolds({ file: { preset: 'cost', subgoals: false } })).toEqual({
      preset: 'cost',
      subgoals: false,
    });
  });

  it('turns a trigger on with one of its options, even if the file turns it off', async () => {
    const { config } = await load({
      file: { triggers: { tokenBudget: false } },
      env: { LEPORELLO_TRIGGERS_TOKEN_BUDGET_TRIGGER_TOKENS: '50000' },
    });
    expect(config.triggers.tokenBudget).toEqual({
      triggerTokens: 50_000,
      targetTokens: 40_000,
      bufferTokens: 1_000,
    });
  });

  it('uses Redis when one of its options is set, or with all defaults', async () => {
    const redis = { host: '127.0.0.1', port: 6379, database: 0, tls: false, timeoutMs: 400 };
    const variables = {
      LEPORELLO_MEMORY_REDIS_HOST: 'cache.internal',
      LEPORELLO_MEMORY_REDIS_PASSWORD: '1234',
      LEPORELLO_MEMORY_REDIS_TIMEOUT_MS: '200',
    };
    const some = { ...redis, host: 'cache.internal', password: '1234', timeoutMs: 200 };
    expect((await load({ env: variables })).config.memory.redis).toEqual(some);
    expect((await load({ env: { LEPORELLO_MEMORY_REDIS: 'true' } })).config.memory.redis).toEqual(redis);
    expect((await load({ file: { memory: { redis: {} } } })).config.memory.redis).toEqual(redis);
  });

  it('counts an empty variable as not set', async () => {
    expect(await problems({ env: { LEPORELLO_PORT: '', LEPORELLO_CONFIG: '' } })).toEqual([]);
  });

  it('reads the file of LEPORELLO_CONFIG, and skips a byte order mark', async () => {
    settingsOf({ file: '\uFEFF{"port": 5}' });
    const env = { HOME: '/home/ada', LEPORELLO_CONFIG: 'config.json' };
    const { config } = await loadConfig({ file: undefined, values: [] }, { env, cwd: folder });
    expect(config.port).toBe(5);
  });
});

describe('an error of the configuration', () => {
  const url = 'an http or https URL without user, query and fragment, such as';

  it.each<[string, Sources, readonly string[]]>([
    [
      'names the variable',
      { env: { LEPORELLO_PORT: '80a' } },
      ['port is "80a" (from LEPORELLO_PORT), but must be a whole number from 0 to 65535.'],
    ],
    [
      'names the file',
      { file: { port: 70_000 } },
      ['port is 70000 (in config.json), but must be a whole number from 0 to 65535.'],
    ],
    [
      'names the flag',
      { flags: { port: '1.5' } },
      ['port is 1.5 (from --set), but must be a whole number from 0 to 65535.'],
    ],
    [
      'reports all problems at once',
      { file: { host: '', minResultBytes: -1, recall: { offer: 'yes', maxTokens: 5 } } },
      [
        'host is "" (in config.json), but must be an address of this machine, such as 127.0.0.1 or 0.0.0.0.',
        'minResultBytes is -1 (in config.json), but must be a whole number of at least 0.',
        'recall.offer is "yes" (in config.json), but must be always, with-fold or never.',
        'recall.maxTokens is 5 (in config.json), but must be a whole number of at least 100.',
      ],
    ],
    [
      'suggests the option that was meant',
      { file: { prot: 1, triggers: { windowFractoin: {} } } },
      [
        'triggers.windowFractoin (in config.json) is not an option. Did you mean triggers.windowFraction? Known options: mustFit, windowFraction, tokenBudget, messageCount, coldCache, cacheRent.',
        'prot (in config.json) is not an option. Did you mean port? Known options: port, host, data, openaiUrl, anthropicUrl, geminiUrl, mode, calibrate, cacheMarks, triggers, shrinks, strategies, summaries, items, preset, subgoals, minResultBytes, keepNewestMedia, pins, models, usdPerMillionTokens, recall, limits, memory, experiment, tenant, allowedHosts, adminToken, tracing, logLevel.',
      ],
    ],
    [
      'suggests the key for --set',
      { flags: { 'recall.maxround': '3' } },
      [
        '--set names recall.maxround, which is not an option. Did you mean recall.maxRounds? All options: docs/configuration.md.',
      ],
    ],
    [
      'suggests the variable that was meant',
      { env: { LEPORELLO_PROT: '1' } },
      [
        'LEPORELLO_PROT is set, but is not a variable of Leporello. Did you mean LEPORELLO_PORT? If not, unset it.',
      ],
    ],
    [
      'names the new key for an old one',
      {
        file: {
          compressionBytesThreshold: 5,
          models: { a: { window: 5 } },
          triggers: { tokenBudget: { target: 5 } },
        },
      },
      [
        'triggers.tokenBudget.target (in config.json) is not an option. Did you mean triggers.tokenBudget.targetTokens? Known options: triggerTokens, targetTokens, bufferTokens.',
        'models.a.window (in config.json) is not an option. Did you mean models.a.windowTokens? Known options: windowTokens, maxInputTokens, maxOutputTokens, tokenizer, cacheKeptMs.',
        expect.stringMatching(
          /^compressionBytesThreshold \(in config.json\) is not an option. Did you mean minResultBytes\?/,
        ),
      ],
    ],
    [
      'names the new key for an old one of --set',
      { flags: { 'triggers.messageCount.target': '5' } },
      [
        '--set names triggers.messageCount.target, which is not an option. Did you mean triggers.messageCount.targetMessages? All options: docs/configuration.md.',
      ],
    ],
    [
      'finds a feature that flags both turn off and set',
      { flags: { shrinks: 'false', 'shrinks.lossless': 'true' } },
      [
        'shrinks is false (from --set), but shrinks.lossless is set, too (from --set). Leave out one of them.',
      ],
    ],
    [
      'says which tenants are allowed',
      { env: { LEPORELLO_TENANT: 'Me' } },
      [
        'tenant is "Me" (from LEPORELLO_TENANT), but must be local, credential, a label of 1 to 64 characters of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}.',
      ],
    ],
    [
      'takes a header or a claim, not both',
      { file: { tenant: { header: 'x-user', claim: 'sub' } } },
      [
        'tenant is {"header":"x-user","claim":"sub"} (in config.json), but must be local, credential, a label of 1 to 64 characters of a-z, 0-9 and -, {"header": NAME} or {"claim": NAME}.',
      ],
    ],
    [
      'looks into a trigger',
      { file: { triggers: { tokenBudget: { triggerTokens: 'x', bufferTokens: 0 } } } },
      [
        'triggers.tokenBudget.triggerTokens is "x" (in config.json), but must be a whole number of at least 2.',
      ],
    ],
    [
      'explains a trigger that is neither false nor an object',
      { env: { LEPORELLO_TRIGGERS_TOKEN_BUDGET: 'off' } },
      [
        'triggers.tokenBudget is "off" (from LEPORELLO_TRIGGERS_TOKEN_BUDGET), but must be false, or an object with triggerTokens, targetTokens and bufferTokens.',
      ],
    ],
    [
      'holds targets below what triggers, defaults too',
      {
        env: { LEPORELLO_TRIGGERS_WINDOW_FRACTION_TRIGGER_SHARE: '0.4' },
        file: { triggers: { tokenBudget: { triggerTokens: 10, targetTokens: 10, bufferTokens: 1 } } },
      },
      [
        'triggers.windowFraction.targetShare is 0.5 (the default), but must be below triggers.windowFraction.triggerShare, 0.4.',
        'triggers.tokenBudget.targetTokens is 10 (in config.json), but must be below triggerTokens minus bufferTokens of triggers.tokenBudget, 9.',
      ],
    ],
    [
      'looks into models',
      { file: { models: { 'my-*': { windowTokens: 0, tokenizer: 'p50k' }, other: 5 } } },
      [
        'models.my-*.windowTokens is 0 (in config.json), but must be a whole number of at least 1.',
        'models.my-*.tokenizer is "p50k" (in config.json), but must be o200k_base or cl100k_base.',
        'models.other is 5 (in config.json), but must be an object by model name or glob, such as {"my-*": {"windowTokens": 32000, "tokenizer": "o200k_base"}}.',
      ],
    ],
    [
      'never prints a secret',
      {
        env: {
          LEPORELLO_ADMIN_TOKEN: 'hush',
          LEPORELLO_OPENAI_URL: 'https://me:hush@host/v1',
          LEPORELLO_ANTHROPIC_URL: 'host:80',
        },
      },
      [
        `openaiUrl is "https://...@host/v1" (from LEPORELLO_OPENAI_URL), but must be ${url} https://api.openai.com/v1.`,
        `anthropicUrl is "host:80" (from LEPORELLO_ANTHROPIC_URL), but must be ${url} https://api.anthropic.com.`,
        'adminToken is too short (from LEPORELLO_ADMIN_TOKEN): it must be at least 16 characters.',
      ],
    ],
    [
      'never prints a secret of Redis',
      {
        env: {
          LEPORELLO_MEMORY_REDIS_HOST: 'redis://:hu/sh@host:6379',
          LEPORELLO_MEMORY_REDIS_PASSWORD: '',
        },
        file: { memory: { redis: { password: 12345, port: 0, passwrod: 'hush' } } },
      },
      [
        'memory.redis.host is "redis://...@host:6379" (from LEPORELLO_MEMORY_REDIS_HOST), but must be a host name or an address, without scheme and port.',
        'memory.redis.port is 0 (in config.json), but must be a whole number from 1 to 65535.',
        'memory.redis.password is not allowed (in config.json), but must be at least one character.',
        'memory.redis.passwrod (in config.json) is not an option. Did you mean memory.redis.password? Known options: host, port, username, password, database, tls, timeoutMs.',
      ],
    ],
    [
      'never prints a value that may contain a secret',
      { env: { LEPORELLO_MEMORY_REDIS: '{"password":"hush"' }, file: { memory: 'redis://:hush@host' } },
      [
        'memory.redis is not allowed (from LEPORELLO_MEMORY_REDIS), but must be false, or an object with host, port, username, password, database, tls and timeoutMs.',
      ],
    ],
    [
      'never prints what stands before an @',
      { file: { memory: ':hush@host' } },
      ['memory is "...@host" (in config.json), but must be an object.'],
    ],
    [
      'knows what Kubernetes does',
      { env: { LEPORELLO_PORT: 'tcp://10.0.0.1:80' } },
      [
        'port is "tcp://10.0.0.1:80" (from LEPORELLO_PORT), but must be a whole number from 0 to 65535. Kubernetes sets this variable for a Service of that name: set enableServiceLinks: false in the pod, or use a flag.',
      ],
    ],
    [
      'finds the place where JSON ends',
      { file: '{\n  "port": 1,\n}' },
      [
        'The configuration file config.json is not valid JSON: see line 3, column 1. Comments and trailing commas are not allowed.',
      ],
    ],
    [
      'recognizes an empty file',
      { file: '\n' },
      [
        'The configuration file config.json is not valid JSON: it is empty. Comments and trailing commas are not allowed.',
      ],
    ],
    [
      'requires an object',
      { file: '[1]' },
      [
        'The configuration file config.json does not contain a JSON object. Write the options as an object, such as {"port": 8787}.',
      ],
    ],
  ])('%s', async (_, sources, expected) => {
    expect(await problems(sources)).toEqual(expected);
  });
});
