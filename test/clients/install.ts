/** Installs a CLI in a folder of its own below the system's temporary one, once per version. */
import { spawn } from 'node:child_process';
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { Client } from './client.ts';

/** Everything a run leaves behind stands here. */
export const workshop = join(tmpdir(), 'leporello-clients');

/** PATH of npm and of the clients: our Node first. */
export const path = [dirname(process.execPath), process.env['PATH']].join(delimiter);

/** Resolves to the path of the client's command. */
export async function install(client: Client): Promise<string> {
  const folder = join(workshop, client.install.replaceAll(/[^\w.-]+/g, '-').replace(/^-/, ''));
  const command = join(folder, 'node_modules', '.bin', client.command);
  if (await exists(command)) return command;
  const half = `${folder}.half`;
  await rm(half, { recursive: true, force: true });
  await mkdir(half, { recursive: true });
  const name = client.install.replace(/(?<=.)@[^@]*$/, '');
  // Several of them put their binary in its place by an install script, which newer npms run for packages they are told.
  const manifest = { private: true, allowScripts: { [name]: true } };
  await writeFile(join(half, 'package.json'), JSON.stringify(manifest));
  await npm(half, ['install', client.install, '--no-audit', '--no-fund', '--loglevel=error']);
  await rename(half, folder);
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
