/** Installs a CLI once per version, in its own folder below the system's temporary folder. */
import { spawn } from 'node:child_process';
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { Client } from './client.ts';

/** The folder of installed clients and of everything that a run writes. */
export const clientsFolder = join(tmpdir(), 'leporello-clients');

/** Mastra is no dependency of ours. It is installed where its tests run. */
export const mastraPackage = '@mastra/core@1.71.0';

/** The PATH of npm and of the clients, with our Node first. */
export const path = [dirname(process.execPath), process.env['PATH']].join(delimiter);

/** Installs the client if needed and resolves to the path of its command. */
export async function install(client: Pick<Client, 'install' | 'command'>): Promise<string> {
  return join(await installPackage(client.install), 'node_modules', '.bin', client.command);
}

/** Installs a package, such as `left-pad@1.3.0`, if needed, and resolves to the folder that has it in its `node_modules`. */
export async function installPackage(versioned: string): Promise<string> {
  const folder = join(clientsFolder, versioned.replaceAll(/[^\w.-]+/g, '-').replace(/^-/, ''));
  if (await exists(join(folder, 'node_modules'))) return folder;
  const partial = `${folder}.half`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  const name = versioned.replace(/(?<=.)@[^@]*$/, '');
  // Several clients copy their binary in an install script, which newer npms run only for allowed packages.
  const manifest = { private: true, allowScripts: { [name]: true } };
  await writeFile(join(partial, 'package.json'), JSON.stringify(manifest));
  await npm(partial, ['install', versioned, '--no-audit', '--no-fund', '--loglevel=error']);
  await rename(partial, folder);
  return folder;
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** A registry that does not answer would hold npm for a quarter of an hour. */
const maxInstallMs = 300_000;

async function npm(cwd: string, args: readonly string[]): Promise<void> {
  const child = spawn('npm', args, {
    cwd,
    env: { ...process.env, PATH: path },
    stdio: 'pipe',
    timeout: maxInstallMs,
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`npm ${args.join(' ')} ended with ${code}:\n${output.slice(-2_000)}`);
}
