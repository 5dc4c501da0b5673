/**
 * Plays program.ts in Node, Bun, Deno and workerd (the runtime of Cloudflare Workers), bundled into one file, and with the packed package in every
 * Node that may use the library, and compares what each sent. Plays adapters-program.ts, with the real packages, in all of them. Runtimes and the bundler are installed from npm, at pinned versions, like the clients.
 */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fetchToolchain } from '../../../scripts/bootstrap/toolchain.mjs';
import { clientsFolder, install, installPackage, mastraPackage, path } from '../install.ts';
import type { MatrixRow } from '../matrix.ts';
import type { RuntimeResult } from './program.ts';

const versions = { bun: '1.4.5', deno: '2.9.6', workerd: '1.20261117.1', esbuild: '0.28.2' } as const;

/** The versions of Node for the packed package: the oldest that may use the library, the oldest of the commands, and the newest of each line. */
const nodes = ['20.18.1', '20', '22.18.0', '22', '24', '26'] as const;

const bundling = ['--bundle', '--format=esm', '--target=es2024', '--log-level=error'];

/** A worker whose test is the program. It has none of Node's modules. */
const workerConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = .main)]);
const main :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["no_nodejs_compat", "no_nodejs_compat_v2"]
);
`;

/** The packages of the frameworks have parts in CommonJS. */
const requiring =
  "--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** The adapters, each with the name of its program. Mastra uses that of the AI SDK. */
const adapters = {
  'ai-sdk': 'aiSdk',
  langchain: 'langchain',
  'openai-agents': 'agents',
  mastra: 'mastra',
} as const;

const adaptersProgram = JSON.stringify(resolve('test/clients/runtimes/adapters-program.ts'));

const program = JSON.stringify(resolve('test/clients/runtimes/program.ts'));
const say = 'console.log(JSON.stringify(await play()));\n';
const sources = {
  main: `import { play } from ${program};\n${say}`,
  worker: `import { play } from ${program};\nexport default { test: async () => {
  if (globalThis.process !== undefined) throw new Error('This worker has modules of Node.');
  console.log(JSON.stringify(await play()));
} };\n`,
};

/**
 * Prints the milliseconds until the packed package is imported, and those of the first `prepare`, with a body of 216 kB that is folded, and the CPU time of
 * both, which depends least on a busy machine.
 */
const startProgram = `const began = performance.now();
const spentSince = (before) => { const { user, system } = process.cpuUsage(before); return (user + system) / 1000; };
const idle = process.cpuUsage();
const { createLeporello } = await import('leporello');
const imported = performance.now();
const importedCpu = spentSince(idle);
const body = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Read all.' }, ...Array.from({ length: 54 }, (_, at) => [
  { role: 'assistant', content: null, tool_calls: [{ id: 'c' + at, type: 'function', function: { name: 'read', arguments: '{"at":' + at + '}' } }] },
  { role: 'tool', tool_call_id: 'c' + at, content: Array.from({ length: 95 }, (_, line) => 'file ' + at + ' line ' + line + ': it was read and is well').join('\\n').slice(0, 3_800) },
]).flat()] };
const text = JSON.stringify(body);
const before = performance.now();
const loaded = process.cpuUsage();
const { outcome } = await createLeporello({ models: { '*': { windowTokens: 32_000 } } }).prepare({ body: text });
if (outcome.status !== 'compacted') throw new Error(JSON.stringify(outcome));
console.log(JSON.stringify({ kB: Math.round(text.length / 1_000), imported: imported - began, importedCpu, prepared: performance.now() - before, preparedCpu: spentSince(loaded) }));
`;

/** Returns the source of an adapter's program, which first says that the framework alone runs here. */
function adapterSource(agent: string, isWorker: boolean): string {
  const head = `import { ${agent}, play, playAlone } from ${adaptersProgram};\n`;
  const steps = `await playAlone(${agent});\nconsole.log('It runs alone.');\nconsole.log(JSON.stringify(await play(${agent})));\n`;
  return isWorker ? `${head}export default { test: async () => {\n${steps}} };\n` : `${head}${steps}`;
}

/** A row of a runtime. `start` says how long the packed package takes to start. */
export type RuntimeRow = MatrixRow & { readonly problem?: string; readonly start?: string };

/** Plays the program in every runtime. A row fails if the program fails there, or sends other bytes than in Node. */
export async function playRuntimes(): Promise<readonly RuntimeRow[]> {
  const [bun, deno, workerd, esbuild] = await Promise.all(
    (['bun', 'deno', 'workerd', 'esbuild'] as const).map((name) =>
      install({ install: `${name}@${versions[name]}`, command: name }),
    ),
  );
  await mkdir(clientsFolder, { recursive: true });
  const folder = await mkdtemp(join(clientsFolder, 'runtimes-'));
  try {
    for (const [name, source] of Object.entries(sources)) {
      await writeFile(join(folder, `${name}.ts`), source);
      const platform = name === 'worker' ? 'browser' : 'node';
      const flags = [...bundling, `--platform=${platform}`, `--outfile=${name}.mjs`];
      await mustEnd(esbuild!, [`${name}.ts`, ...flags], folder);
    }
    await writeFile(join(folder, 'worker.capnp'), workerConfig);
    for (const [name, agent] of Object.entries(adapters)) {
      for (const isWorker of [false, true]) {
        const file = `${isWorker ? 'worker-' : ''}${name}`;
        await writeFile(join(folder, `${file}.ts`), adapterSource(agent, isWorker));
        const flags = isWorker ? ['--platform=browser', '--external:node:*'] : ['--platform=node', requiring];
        await mustEnd(esbuild!, [`${file}.ts`, ...bundling, ...flags, `--outfile=${file}.mjs`], folder);
      }
      await writeFile(
        join(folder, `${name}.capnp`),
        workerConfig.replace('worker.mjs', `worker-${name}.mjs`),
      );
    }
    await installPacked(folder, esbuild!);
    await symlink(
      join(await installPackage(mastraPackage), 'node_modules/@mastra'),
      join(folder, 'node_modules/@mastra'),
    );
    const runs = [
      { runtime: `Node ${process.versions.node}`, command: process.execPath, args: ['main.mjs'] },
      { runtime: `Bun ${versions.bun}`, command: bun!, args: ['main.mjs'] },
      {
        runtime: `Deno ${versions.deno}`,
        command: deno!,
        args: ['run', '--allow-all', '--no-check', 'main.mjs'],
      },
      { runtime: `workerd ${versions.workerd}`, command: workerd!, args: ['test', 'worker.capnp'] },
    ];
    for (const version of nodes) {
      const command = await fetchToolchain(join(clientsFolder, `node-${version}`), version);
      runs.push({ runtime: `Node ${version}, packed`, command, args: ['packed.mjs'] });
    }
    const rows: RuntimeRow[] = [];
    let expected: RuntimeResult | undefined;
    for (const { runtime, command, args } of runs) {
      const { output } = await ended(command, args, folder);
      const result = resultIn(output);
      expected ??= result;
      const cells = cellsOf(result, expected, 'FAILED');
      const hasFailed = Object.values(cells).includes('FAILED');
      rows.push({
        name: 'leporello, leporello/fetch',
        runtime,
        ...cells,
        ...(hasFailed && { problem: output.slice(-600) }),
        ...(args.includes('packed.mjs') && { start: await startTimes(command, folder) }),
      });
    }
    const adapterRuns = runs.map(({ runtime, command, args }) => ({
      runtime: runtime.replace(', packed', ''),
      command,
      argsFor: (name: string) =>
        args.map((arg) =>
          arg.replace(/^(?:main|packed)\.mjs$/, `${name}.mjs`).replace('worker.capnp', `${name}.capnp`),
        ),
    }));
    for (const name of Object.keys(adapters)) rows.push(...(await rowsOfAdapter(name, adapterRuns, folder)));
    return rows;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Plays the program of an adapter in every runtime. The first one says what must be sent. */
async function rowsOfAdapter(
  adapter: string,
  runs: readonly { runtime: string; command: string; argsFor: (name: string) => readonly string[] }[],
  folder: string,
): Promise<readonly RuntimeRow[]> {
  const rows: RuntimeRow[] = [];
  let expected: RuntimeResult | undefined;
  for (const { runtime, command, argsFor } of runs) {
    const { output } = await ended(command, argsFor(adapter), folder);
    const result = resultIn(output);
    expected ??= result;
    // A framework that does not run here cannot be folded.
    const isPossible = output.includes('It runs alone.');
    const cells = cellsOf(result, expected, isPossible ? 'FAILED' : 'not possible');
    const problem = result === undefined ? output.slice(0, 300) : undefined;
    const name = adapter === 'mastra' ? 'leporello/ai-sdk in Mastra' : `leporello/${adapter}`;
    rows.push({ name, runtime, ...cells, ...(problem !== undefined && { problem }) });
  }
  return rows;
}

function resultIn(output: string): RuntimeResult | undefined {
  const [found] = /\{"fold":.*\}/.exec(output) ?? [];
  return found === undefined ? undefined : (JSON.parse(found) as RuntimeResult);
}

function cellsOf(
  result: RuntimeResult | undefined,
  expected: RuntimeResult | undefined,
  otherwise: 'FAILED' | 'not possible',
): RuntimeResult {
  const word = (key: keyof RuntimeResult): string =>
    result !== undefined && result[key] === expected?.[key] ? 'yes' : otherwise;
  return { fold: word('fold'), recall: word('recall'), stream: word('stream'), restart: word('restart') };
}

/** Packs this checkout, installs it with its dependencies as a user does, and writes `packed.mjs`, the program that imports it. */
async function installPacked(folder: string, esbuild: string): Promise<void> {
  await mustEnd(process.execPath, ['scripts/build.mjs'], resolve('.'));
  const packing = ['pack', '--ignore-scripts', '--pack-destination', folder, '--loglevel=error'];
  await mustEnd('npm', packing, resolve('.'));
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const [archive] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];
  await mustEnd('npm', ['install', `./${archive}`, ...quiet], folder);
  const source = await readFile('test/clients/runtimes/program.ts', 'utf8');
  const imported = source
    .replace('../../../src/adapters/fetch.ts', 'leporello/fetch')
    .replace('../../../src/index.ts', 'leporello');
  await writeFile(join(folder, 'packed.ts'), `${imported}\n${say}`);
  const flags = [...bundling, '--platform=node', '--packages=external', '--outfile=packed.mjs'];
  await mustEnd(esbuild, ['packed.ts', ...flags], folder);
}

/** Starts the packed package nine times. Returns the shortest times, the medians, and the shortest CPU times, in words. */
async function startTimes(command: string, folder: string): Promise<string> {
  await writeFile(join(folder, 'start.mjs'), startProgram);
  const starts: Record<'kB' | 'imported' | 'prepared' | 'importedCpu' | 'preparedCpu', number>[] = [];
  for (let start = 0; start < 9; start++) {
    const { code, output } = await ended(command, ['start.mjs'], folder);
    if (code !== 0) return `failed: ${output.slice(-600)}`;
    starts.push(JSON.parse(output) as (typeof starts)[number]);
  }
  const times = (of: 'imported' | 'prepared') => {
    const sorted = starts.map((start) => Math.round(start[of])).toSorted((one, other) => one - other);
    const cpu = Math.min(...starts.map((start) => Math.round(start[`${of}Cpu`])));
    return `${sorted[0]} ms (median ${sorted[4]}, CPU ${cpu})`;
  };
  return `imported in ${times('imported')}, the first prepare of ${starts[0]!.kB} kB took ${times('prepared')}`;
}

async function mustEnd(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { code, output } = await ended(command, args, cwd);
  if (code !== 0) throw new Error(`${command} ${args[0]} ended with ${code}: ${output.slice(-2_000)}`);
}

async function ended(command: string, args: readonly string[], cwd: string) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((done, fail) => {
    child.once('error', fail);
    child.once('close', done);
  });
  return { code, output };
}
