/**
 * Tests metrics against a real Prometheus: it scrapes the gateway and answers every query of the dashboard. If it is not installed
 * (`apt-get install prometheus`), these tests are skipped and a line says so.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { foldedWithRecalls, secrets } from './folded-with-recalls.ts';

const isMissing = (program: string): boolean =>
  spawnSync(program, ['--version'], { stdio: 'ignore' }).error !== undefined;

const isPrometheusMissing = isMissing('prometheus');
if (isPrometheusMissing)
  process.stdout.write('Skipped: the tests with a real Prometheus. Install prometheus to run them.\n');

/** Starts a program in a folder of its own, which holds one file. It is killed, and the folder removed, at the end. */
async function startProgram(program: string, file: { name: string; text: string }, args: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-collector-'));
  await writeFile(join(folder, file.name), file.text);
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = once(child, 'exit');
  return {
    said: () => said,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

type Answer = { readonly status: string; readonly error?: string; readonly data?: { result: unknown[] } };

describe.skipIf(isPrometheusMissing)('a real Prometheus', () => {
  it('scrapes the gateway, and answers every query of the dashboard', async () => {
    await using scene = await foldedWithRecalls();
    const port = await freePort();
    const target = new URL(scene.stack.url).host;
    const config = `scrape_configs: [{ job_name: leporello, scrape_interval: 1s, static_configs: [{ targets: ['${target}'] }] }]`;
    await using prometheus = await startProgram('prometheus', { name: 'prometheus.yml', text: config }, [
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      `--web.listen-address=127.0.0.1:${port}`,
    ]);
    const ask = async (query: string): Promise<Answer> => {
      const response = await fetch(
        `http://127.0.0.1:${port}/api/v1/query?${new URLSearchParams({ query }).toString()}`,
      );
      return (await response.json()) as Answer;
    };
    await eventually(async () => {
      const { data } = await ask('leporello_recalls_total{found="yes"} == 1');
      expect(data?.result, prometheus.said()).toHaveLength(1);
    });
    const text = await readFile(new URL('../../docs/grafana-dashboard.json', import.meta.url), 'utf8');
    const queries = [...text.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(
      ([, json]) => JSON.parse(json!) as string,
    );
    expect(queries.length).toBeGreaterThan(20);
    for (const query of queries) {
      const asked = query.replaceAll(/\$__(?:rate_interval|range)/g, '5m').replaceAll('$job', '.*');
      expect(await ask(asked)).toMatchObject({ status: 'success' });
    }
    const { data } = await ask('{job="leporello"}');
    expect(data!.result.length).toBeGreaterThan(50);
    for (const secret of secrets) expect(JSON.stringify(data)).not.toContain(secret);
  });
});
