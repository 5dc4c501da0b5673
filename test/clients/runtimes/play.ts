/**
 * Plays program.ts in Node, Bun, Deno and workerd (the runtime of Cloudflare Workers), bundled into one file, and compares what each sent. Bun,
 * Deno, workerd and the bundler are installed from npm, at pinned versions, like the clients.
 */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { clientsFolder, install, path } from '../install.ts';
import type { MatrixRow } from '../matrix.ts';
import type { RuntimeResult } from './program.ts';

const versions = { bun: '1.4.5', deno: '2.9.6', workerd: '1.20261117.1', esbuild: '0.28.2' } as const;

/** A worker whose test is the program. It has none of Node's modules. */
const workerConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = .main)]);
const main :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["no_nodejs_compat", "no_nodejs_compat_v2"]
);
`;

const program = JSON.stringify(resolve('test/clients/runtimes/program.ts'));
const sources = {
  main: `import { play } from ${program};\nconsole.log(JSON.stringify(await play()));\n`,
  worker: `import { play } from ${program};\nexport default { test: async () => {
  if (globalThis.process !== undefined) throw new Error('This worker has modules of Node.');
  console.log(JSON.stringify(await play()));
} };\n`,
};

/** Plays the program in every runtime. A row fails if the program fails there, or sends other bytes than in Node. */
export async function playRuntimes(): Promise<readonly (MatrixRow & { readonly problem?: string })[]> {
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
      const flags = [
        '--bundle',
        '--format=esm',
        `--platform=${platform}`,
        '--target=es2024',
        '--log-level=error',
      ];
      const bundled = await ended(esbuild!, [`${name}.ts`, ...flags, `--outfile=${name}.mjs`], folder);
      if (bundled.code !== 0) throw new Error(`esbuild: ${bundled.output}`);
    }
    await writeFile(join(folder, 'worker.capnp'), workerConfig);
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
    const rows: (MatrixRow & { readonly problem?: string })[] = [];
    let expected: RuntimeResult | undefined;
    for (const { runtime, command, args } of runs) {
      const { output } = await ended(command, args, folder);
      const [found] = /\{"fold":.*\}/.exec(output) ?? [];
      const result = found === undefined ? undefined : (JSON.parse(found) as RuntimeResult);
      expected ??= result;
      const word = (key: keyof RuntimeResult): string =>
        result !== undefined && result[key] === expected?.[key] ? 'yes' : 'FAILED';
      const cells = {
        fold: word('fold'),
        recall: word('recall'),
        stream: word('stream'),
        restart: word('restart'),
      };
      const hasFailed = Object.values(cells).includes('FAILED');
      rows.push({
        name: 'leporello, leporello/fetch',
        runtime,
        ...cells,
        ...(hasFailed && { problem: output.slice(-600) }),
      });
    }
    return rows;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
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
