/**
 * Measures what real agent CLIs send to their vendor's own host and what they send once their base URL is the gateway's: the table
 * of docs/clients-measured.md. Usage: npm run measure:clients [-- [--bodies FOLDER] CLIENT...].
 * It runs in its own network namespace, in which every host is 127.0.0.1, so nothing leaves the machine. Linux only.
 */
import { rmSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startStack } from '../e2e/stack.ts';
import { install, clientsFolder } from './install.ts';
import {
  isPrivate,
  openPrivateNetwork,
  type PrivateNetwork,
  runInPrivate,
} from './measure/private-network.ts';
import { differences, type Figures, figuresOf, mainRequest } from './measure/request-figures.ts';
import { type Way, ways } from './measure/ways.ts';
import { serveWebSocket } from './measure/websocket-vendor.ts';
import { runClient } from './run-client.ts';
import { scriptedModel } from './scripted-model.ts';
import { contentOf, secretOf } from './secret-files.ts';
import { type Exchange, startTap } from './tap.ts';

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { bodies: { type: 'string' } },
});
const chosen = ways.filter(({ client }) => names.length === 0 || names.includes(client.name));

if (chosen.length === 0) {
  say(
    `No client is called ${names.join(', ')}. There are: ${[...new Set(ways.map(({ client }) => client.name))].join(', ')}.`,
  );
  process.exitCode = 2;
} else if (isPrivate()) {
  await measureAll();
} else {
  // Clients are installed here because the private network has no registry.
  for (const { client } of chosen) await install(client);
  process.exitCode = (await runInPrivate(process.argv.slice(2))) ?? 1;
}

type Run = { readonly exchanges: readonly Exchange[]; readonly hosts: readonly string[] };

async function measureAll(): Promise<void> {
  await mkdir(clientsFolder, { recursive: true });
  const folder = await mkdtemp(join(clientsFolder, 'measure-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  using network = await openPrivateNetwork(folder);
  say(
    '| Client | Model | Base URL | MCP tools | Tools | Deferred | First request, bytes | Tools, bytes | Calls | All calls, bytes |',
  );
  say('|---|---|---|---:|---:|---:|---:|---:|---:|---:|');
  const evidence = values.bodies ?? clientsFolder;
  await mkdir(evidence, { recursive: true });
  const details = join(evidence, 'measured.txt');
  await writeFile(details, '');
  const bases = new Map<string, Exchange>();
  for (const way of chosen) {
    for (const withMcp of way.client.name === 'pi' ? [false] : [false, true]) {
      const { exchanges, hosts } = await run(way, withMcp, network, folder);
      const label = `${way.client.install.replace(/^@[^/]*\//, '')} | ${way.topic} | ${way.name}`;
      say(`| ${label} | ${withMcp ? 40 : 0} | ${cells(figuresOf(exchanges))} |`);
      const main = mainRequest(exchanges);
      const key = `${way.client.install} ${way.topic} ${withMcp}`;
      const base = bases.get(key);
      if (main && !base) bases.set(key, main);
      const lines = [
        `\n${label}${withMcp ? ', 40 MCP tools' : ''}`,
        `  hosts looked up: ${hosts.join(', ') || 'none'}`,
        ...exchanges.map(
          ({ method, target, status, request }) =>
            `  ${method} ${target} ${status}, ${Buffer.byteLength(request)} bytes`,
        ),
        ...(base && main ? differences(base, main).map((line) => `  - ${line}`) : []),
      ];
      await appendFile(details, `${lines.join('\n')}\n`);
      if (values.bodies !== undefined && main) {
        const name = `${label}${withMcp ? '-mcp' : ''}`.replaceAll(/[^\w.]+/g, '-');
        await writeFile(join(values.bodies, `${name}.json`), main.request);
        await writeFile(join(values.bodies, `${name}.headers.json`), JSON.stringify(main.headers));
      }
    }
  }
  say(`All requests and their differences: ${details}`);
}

function cells(figures: Figures | undefined): string {
  if (!figures) return 'none | | | | |';
  const { tools, deferred, bytes, toolBytes, calls, allBytes } = figures;
  return [tools, deferred, bytes, toolBytes, calls, allBytes]
    .map((n) => n.toLocaleString('en-US'))
    .join(' | ');
}

/** Runs the client once; it reads a file and says its secret. */
async function run(way: Way, withMcp: boolean, network: PrivateNetwork, folder: string): Promise<Run> {
  const command = await install(way.client);
  const home = await mkdtemp(join(folder, 'home-'));
  const project = join(home, 'project');
  await mkdir(project);
  const file = 'part-01.log';
  await writeFile(join(project, file), contentOf(file, 300));
  const steps = [{ read: [file] }, { answer: [file] }];
  await using stack = await startStack(scriptedModel(steps, project, true).script);
  const { provider } = stack;
  await using vendor = await startTap((target) => `${provider.url}${providersPath(target)}`, {
    certificateOf: network.certificateOf,
    upgrade(incoming, socket, tell) {
      const { url: target = '/', rawHeaders: headers } = incoming;
      const message = (request: string) =>
        tell({ method: 'WEBSOCKET', target, headers, request, status: 101, response: '' });
      serveWebSocket(incoming, socket, { provider: provider.url, onText: message });
    },
  });
  await using gateway = await startTap(() => stack.url);
  network.takeLookups();
  const server = fileURLToPath(new URL('many-tools-server.ts', import.meta.url));
  const setup = way.setup({
    url: gateway.url,
    task: 'Read the log file and tell me its secret.',
    mcp: withMcp ? [process.execPath, server] : undefined,
  });
  const env = { NODE_EXTRA_CA_CERTS: network.authority, SSL_CERT_FILE: network.authority, ...setup.env };
  const { code, stdout, stderr } = await runClient(command, { ...setup, env }, { home, folder: project });
  if (code !== 0 || !stdout.includes(secretOf(file))) {
    say(
      `${way.client.name}, ${way.name}: it ended with ${code} and said: ${`${stdout}\n${stderr}`.slice(-1_500)}`,
    );
  }
  return { exchanges: [...vendor.exchanges, ...gateway.exchanges], hosts: network.takeLookups() };
}

/** Returns the scripted provider's path for a vendor's path. */
function providersPath(target: string): string {
  return target.replace(/^\/compatible-mode(?=\/v1\/)/, '').replace(/^\/backend-api\/codex(?=\/)/, '/v1');
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
