/** Installs a CLI once per version, in its own folder below the system's temporary folder. */
import { spawn } from 'node:child_process';
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { Client } from './client.ts';

/** The folder of installed clients and of everything that a run writes. */
export const clientsFolder = join(tmpdir(), 'leporello-clients');

/** The PATH of npm and of the clients, with our Node first. */
export const path = [dirname(process.execPath), process.env['PATH']].join(delimiter);

/** Installs the client if needed and resolves to the path of its command. */
export async function install(client: Pick<Client, 'install' | 'command'>): Promise<string> {
  const folder = join(clientsFolder, client.install.replaceAll(/[^\w.-]+/g, '-').replace(/^-/, ''));
  const command = join(folder, 'node_modules', '.bin', client.command);
  if (await exists(command)) return command;
  const partial = `${folder}.half`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  const name = client.install.replace(/(?<=.)@[^@]*$/, '');
  // Several clients copy their binary in an install script, which newer npms run only for allowed packages.
  const manifest = { private: true, allowScripts: { [name]: true } };
  await writeFile(join(partial, 'package.json'), JSON.stringify(manifest));
  await npm(partial, ['install', client.install, '--no-audit', '--no-fund', '--loglevel=error']);
  await rename(partial, folder);
  return command;
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

async function npm(cwd: string, args: readonly string[]): Promise<void> {
  const child = spawn('npm', args, { cwd, env: { ...process.env, PATH: path }, stdio: 'pipe' });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`npm ${args.join(' ')} ended with ${code}:\n${output.slice(-2_000)}`);
}
