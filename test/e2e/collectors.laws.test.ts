/**
 * Tests metrics against a real Prometheus, which scrapes the gateway and answers every query of the dashboard, and traces of the command against a
 * real OpenTelemetry collector. If one of them is not installed (`prometheus`, `otelcol`), its test is skipped and a line says so. The traces are
 * always tested against a server that takes OTLP. docs/tracing.md shows how to build a collector.
 */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { openTelemetryTracing } from '../../src/gateway/tracing/open-telemetry.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeProvider } from '../support/fake-provider/fake-provider.ts';
import { freePort } from '../support/free-port.ts';
import { post, requestBody } from './bodies.ts';
import { foldedWithRecalls, secrets } from './folded-with-recalls.ts';

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

const isMissing = (program: string): boolean =>
  spawnSync(program, ['--version'], { stdio: 'ignore' }).error !== undefined;

const isPrometheusMissing = isMissing('prometheus');
if (isPrometheusMissing)
  process.stdout.write('Skipped: the tests with a real Prometheus. Install prometheus to run them.\n');

const isCollectorMissing = isMissing('otelcol');
if (isCollectorMissing)
  process.stdout.write(
    'Skipped: the test with a real OpenTelemetry collector. Put otelcol on the PATH to run it.\n',
  );

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
    // A rate needs two scrapes of a series that has counted.
    await eventually(async () => {
      const { data } = await ask('min(count_over_time(leporello_recalls_total[5m])) >= 3');
      expect(data?.result).toHaveLength(1);
    });
    let shown = 0;
    for (const query of queries) {
      const asked = query.replaceAll(/\$__(?:rate_interval|range)/g, '5m').replaceAll('$job', '.*');
      const answer = await ask(asked);
      expect(answer, asked).toMatchObject({ status: 'success' });
      const selectors = [...asked.matchAll(/leporello_\w+\{[^}]*\}/g)].map(([selector]) => selector);
      const series = await Promise.all(selectors.map(ask));
      // Some things did not happen in this scene, such as a summary: nothing is to be shown then.
      if (series.some((found) => found.data?.result.length === 0)) continue;
      expect(answer.data?.result, asked).not.toEqual([]);
      shown += 1;
    }
    expect(shown).toBeGreaterThan(queries.length / 2);
    const { data } = await ask('{job="leporello"}');
    expect(data!.result.length).toBeGreaterThan(50);
    for (const secret of secrets) expect(JSON.stringify(data)).not.toContain(secret);
  });
});

/** Runs the command `leporello serve` with tracing on, sends one request through it, and stops it. */
async function serveTraced(endpoint: string): Promise<void> {
  const provider = await startFakeProvider({
    script: [{ type: 'turn', parts: [{ type: 'text', text: 'SECRET-reply' }] }],
  });
  const folder = await mkdtemp(join(tmpdir(), 'leporello-traced-'));
  const args = [
    'serve',
    '--port',
    '0',
    '--json',
    '--data',
    folder,
    '--set',
    'tracing=true',
    '--set',
    'logLevel=silent',
  ];
  const child = spawn(process.execPath, [main, ...args, '--openai-url', provider.url], {
    env: {
      PATH: process.env['PATH'],
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_RESOURCE_ATTRIBUTES: 'stage=test',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  try {
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    await eventually(() => expect(said).toContain('\n'));
    const { url } = JSON.parse(said) as { url: string };
    const response = await post(
      url,
      'chat',
      requestBody('chat', { messages: [{ role: 'user', content: 'SECRET-question' }] }),
    );
    expect(await response.text()).toContain('SECRET-reply');
  } finally {
    child.kill('SIGTERM');
    await ended;
    await provider.close();
    await rm(folder, { recursive: true, force: true });
  }
}

const spanNames = ['leporello openai-chat', 'prepare', 'chat gpt-4o'];

it('leporello serve sends its traces to a server that takes OTLP', async () => {
  const received: { path: string | undefined; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      received.push({ path: request.url, body });
      response.setHeader('content-type', 'application/json').end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await serveTraced(`http://127.0.0.1:${port}`);
  server.close();
  server.closeAllConnections();
  expect(received.map(({ path }) => path)).toContain('/v1/traces');
  const text = received.map(({ body }) => body).join('\n');
  for (const name of spanNames) expect(text).toContain(`"name":"${name}"`);
  expect(text).toContain('{"key":"service.name","value":{"stringValue":"leporello"}}');
  expect(text).toContain('{"key":"stage","value":{"stringValue":"test"}}');
  expect(text).not.toContain('SECRET');
});

/** Starts the collector on a free port. It prints every span that it takes, from when `ready` resolves. */
async function startCollector() {
  const port = await freePort();
  const config = `receivers: { otlp: { protocols: { http: { endpoint: '127.0.0.1:${port}' } } } }
exporters: { debug: { verbosity: detailed } }
service: { telemetry: { metrics: { level: none } }, pipelines: { traces: { receivers: [otlp], exporters: [debug] } } }
`;
  const file = { name: 'config.yaml', text: config };
  const collector = await startProgram('otelcol', file, ['--config=config.yaml']);
  const ready = () => eventually(() => expect(collector.said()).toContain('Everything is ready'));
  return { ...collector, ready, url: `http://127.0.0.1:${port}` };
}

/** Resolves when the collector has printed a span of each name. */
const printed = (collector: { said: () => string }, names: readonly string[]) =>
  eventually(() => {
    for (const name of names) expect(collector.said()).toMatch(new RegExp(`Name +: ${name}\\n`));
  });

describe.skipIf(isCollectorMissing)('a real OpenTelemetry collector', () => {
  it('takes the traces of leporello serve', async () => {
    await using collector = await startCollector();
    await collector.ready();
    await serveTraced(collector.url);
    await printed(collector, spanNames);
    expect(collector.said()).toContain('gen_ai.provider.name: Str(openai)');
    expect(collector.said()).not.toContain('SECRET');
  });

  it('takes the spans of a folded request with recalls, without content', async () => {
    await using collector = await startCollector();
    await collector.ready();
    const exporter = new OTLPTraceExporter({ url: `${collector.url}/v1/traces` });
    const provider = new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] });
    {
      const tracing = openTelemetryTracing(provider.getTracer('test'));
      await using scene = await foldedWithRecalls({}, { tracing });
      expect(await scene.metrics()).toContain('leporello_recalls_total');
    }
    await provider.shutdown();
    await printed(collector, [...spanNames, 'fold', 'execute_tool read_memory', 'store putUnless']);
    const said = collector.said();
    expect(said).toContain('leporello.trigger: Str(token-budget)');
    expect(said).toContain('leporello.strategies: Slice(["offload-results"])');
    expect(said).toContain('leporello.recall.found: Bool(true)');
    expect(said).toContain('leporello.recall.found: Bool(false)');
    expect(said).toContain('gen_ai.request.model: Str(gpt-4o)');
    expect(said).toMatch(/gen_ai\.usage\.input_tokens: Int\(\d+\)/);
    for (const secret of secrets) expect(said).not.toContain(secret);
  });
});
