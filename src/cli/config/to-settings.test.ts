import { describe, expect, it } from 'vitest';
import type { GatewaySettings } from '../../gateway/app.ts';
import { mergeSources } from './merge-sources.ts';
import { configSchema } from './schema.ts';
import { gatewaySettings } from './to-settings.ts';

/** Returns the gateway's settings for a configuration file and variables. */
function settingsOf(file: object, env: Readonly<Record<string, string>> = {}): GatewaySettings {
  const { value } = mergeSources({ flags: [], env, file: { path: 'config.json', value: file } });
  return gatewaySettings(configSchema.parse(value));
}

describe('the tenant', () => {
  it.each([
    ['one user on a loopback host', {}, {}, 'local'],
    ['one user on another loopback address', { host: '::1' }, {}, 'local'],
    ['only names of this machine', { allowedHosts: ['localhost', '127.0.0.1'] }, {}, 'local'],
    ['a name that a proxy serves', { allowedHosts: ['llm.example'] }, {}, 'credential'],
    ['a host that others can reach', { host: '0.0.0.0' }, {}, 'credential'],
    ['a label, whatever the host', { host: '0.0.0.0' }, { LEPORELLO_TENANT: '42' }, '42'],
    ['each credential, if set', {}, { LEPORELLO_TENANT: 'credential' }, 'credential'],
    ['a header in a variable', {}, { LEPORELLO_TENANT: ' {"header":"x-user"}' }, { header: 'x-user' }],
    ['a claim in the file', { tenant: { claim: 'sub' } }, {}, { claim: 'sub' }],
  ] as const)('is taken from %s', (_, file, env, tenant) => {
    expect(settingsOf(file, env).tenant).toEqual(tenant);
  });

  it.each([
    [{}, true],
    [{ host: '0.0.0.0' }, false],
    [{ host: '0.0.0.0', tenant: 'me' }, true],
    [{ host: '0.0.0.0', tenant: 'credential' }, false],
    [{ tenant: { header: 'x-user' } }, false],
  ])('decides with the host who sees metrics of all tenants: with %j anyone is %s', (file, isOpen) => {
    expect(settingsOf(file).openMetrics).toBe(isOpen);
  });
});

describe('the list of strategies', () => {
  const withOptions = [{ name: 'summarize-history', maxTokens: 3000 }, 'drop-oldest'];
  it.each([
    ['nothing', {}, {}, undefined],
    [
      'names in a variable',
      {},
      { LEPORELLO_STRATEGIES: 'drop-recalls, drop-oldest' },
      ['drop-recalls', 'drop-oldest'],
    ],
    ['JSON in a variable', {}, { LEPORELLO_STRATEGIES: JSON.stringify(withOptions) }, withOptions],
    ['the file', { strategies: withOptions }, {}, withOptions],
  ] as const)('is taken from %s', (_, file, env, strategies) => {
    expect(settingsOf(file, env).strategies).toEqual(strategies);
  });
});

describe('a preset', () => {
  it('sets the triggers that nothing else sets', () => {
    const { triggers } = settingsOf({
      preset: 'debugging',
      triggers: { tokenBudget: { triggerTokens: 100_000 }, cacheRent: false },
    });
    expect(triggers?.windowFraction).toEqual({ triggerShare: 0.85, targetShare: 0.7 });
    expect(triggers?.tokenBudget).toEqual({
      triggerTokens: 100_000,
      targetTokens: 40_000,
      bufferTokens: 1_000,
    });
    expect(triggers?.cacheRent).toBe(false);
    expect(triggers?.coldCache).toMatchObject({ keepForRequests: 8 });
  });
});

describe('the control group of an experiment', () => {
  it.each([
    [{}, 0.2],
    [{ shadow: {} }, 0],
    [{ shadow: {}, holdout: 0.5 }, 0.5],
    [{ holdout: 0 }, 0],
  ])('with %j is %d of the conversations', (experiment, holdout) => {
    expect(settingsOf({ experiment }).experiment?.holdout).toBe(holdout);
  });
});
