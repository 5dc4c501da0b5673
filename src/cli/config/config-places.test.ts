/** Tests which files and variables the configuration is read from, and how its folders are resolved. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from './load-config.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'leporello-config-'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function load(env: Readonly<Record<string, string>>) {
  return loadConfig({ file: undefined, values: [] }, { env: { HOME: '/home/ada', ...env }, cwd: folder });
}

describe('loadConfig', () => {
  it('resolves the data folder from the folder of the file, the working directory, or the home folder for ~', async () => {
    mkdirSync(join(folder, 'deep'), { recursive: true });
    writeFileSync(join(folder, 'deep', 'config.json'), '{"data": "kept"}');
    const place = { env: { HOME: '/home/ada' }, cwd: folder };
    const inFile = await loadConfig({ file: 'deep/config.json', values: [] }, place);
    expect(inFile.dataDir).toBe(join(folder, 'deep', 'kept'));
    const data = { file: undefined, values: [{ flag: '--data', key: 'data', text: 'kept' }] };
    expect((await loadConfig(data, place)).dataDir).toBe(join(folder, 'kept'));
    expect((await load({ LEPORELLO_DATA: '~/notes' })).dataDir).toBe('/home/ada/notes');
    expect((await load({ LEPORELLO_DATA: '~' })).dataDir).toBe('/home/ada');
  });

  it('names unknown variables', async () => {
    const { unknownVariables } = await load({
      LEPORELLO_SERVICE_HOST: '10.0.0.1',
      LEPORELLO_SERVICE_PORT: '',
      LEPORELLO_SECRET: 'x',
      OTHER: '1',
    });
    expect(unknownVariables).toEqual(['LEPORELLO_SERVICE_HOST']);
  });

  it('says which file cannot be read', async () => {
    const place = { env: {}, cwd: folder };
    await expect(loadConfig({ file: 'nowhere.json', values: [] }, place)).rejects.toThrow(
      `Cannot read the configuration file nowhere.json: ENOENT: no such file or directory, open '${join(folder, 'nowhere.json')}'. Check --config or LEPORELLO_CONFIG.`,
    );
    await expect(loadConfig({ file: '.', values: [] }, place)).rejects.toThrow(
      /^Cannot read the configuration file \.: EISDIR: .*\. Check --config or LEPORELLO_CONFIG\.$/,
    );
  });
});
