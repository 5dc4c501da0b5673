import { expect, it } from 'vitest';
import { strategyNames } from '../../strategies/by-name.ts';
import { loadConfig } from './load-config.ts';

function load(key: string, text: string) {
  const args = { file: undefined, values: [{ flag: '--set', key, text }] };
  return loadConfig(args, { env: { HOME: '/home/ada' }, cwd: '/' });
}

it('says which strategy of a list is wrong, and names all strategies once', async () => {
  await expect(load('strategies', 'drop-oldest,offload-result')).rejects.toMatchObject({
    code: 'bad-config',
    message: `strategies is ["drop-oldest","offload-result"] (from --set), but must be a list of at least one of ${strategyNames.join(', ')}; an entry with options is an object, such as {"name": "offload-results", "minResultBytes": 2000}. strategies[1] is "offload-result", which is no strategy. Did you mean offload-results?`,
  });
});

it('asks for a larger budget when it is below its buffer, not for a target below zero', async () => {
  await expect(load('triggers.tokenBudget.triggerTokens', '100')).rejects.toMatchObject({
    code: 'bad-config',
    message:
      'triggers.tokenBudget.triggerTokens is 100 (from --set), but must be above bufferTokens of triggers.tokenBudget, 1000, by at least 2.',
  });
});
