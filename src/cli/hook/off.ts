/**
 * Implements `leporello off`: removes from the settings files of agents what connects them to Leporello, and the cache folder. Originals are
 * deleted only when asked. Says what it removed, and what it could not.
 */
import { existsSync } from 'node:fs';
import { realpath, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../errors.ts';
import { storeFile } from '../../store/data-folder.ts';
import type { OffArgs } from '../command-args.ts';
import { loadConfig } from '../config/load-config.ts';
import { homeOf } from '../home.ts';
import { portUser, urlFor } from '../running-gateway.ts';
import { cacheFolder } from '../start-cache.ts';
import type { Environment, Terminal } from '../terminal.ts';
import { claudeSettings } from '../wrap/clients.ts';
import { type Cleaned, cleanedJson, cleanedToml } from './clean-settings.ts';

/** Lists the things that were removed, one line each, and those that the user must do. */
type OffReport = { readonly removed: string[]; readonly left: string[] };

/** Milliseconds to wait for a program on the gateway's port. */
const deadlineMs = 2_000;

/** Runs the command. Resolves with the exit code: 1 when something is left. */
export async function off(args: OffArgs, terminal: Terminal): Promise<number> {
  const { config, dataDir } = await loadConfig(args.settings, terminal);
  const { env, cwd } = terminal;
  const report: OffReport = { removed: [], left: [] };
  const isOurs = (url: string): boolean => leadsHere(url, config.port);
  for (const file of settingsFiles(env, homeOf(env) ?? cwd, cwd))
    await cleanFile(file, isOurs, args.dryRun, report);
  await removeFolder(cacheFolder(env), 'the cache', args.dryRun, report);
  if (args.originals) await removeOriginals(dataDir, args.dryRun, report);
  for (const name of ['ANTHROPIC_BASE_URL', 'OPENAI_BASE_URL', 'GOOGLE_GEMINI_BASE_URL'])
    if (isOurs(env[name] ?? '')) report.left.push(`This shell sets ${name} to the gateway: unset ${name}`);
  const address = { host: config.host, port: config.port };
  const user = await portUser(address, undefined, deadlineMs);
  if (user.kind === 'leporello')
    report.left.push(
      `A gateway runs on ${urlFor(address)} (process ${user.state.pid}): stop it with Ctrl-C.`,
    );
  if (args.json) await terminal.out(`${JSON.stringify(report)}\n`);
  else await terminal.out(spelled(report, args, dataDir));
  return report.left.length > 0 ? 1 : 0;
}

function spelled({ removed, left }: OffReport, args: OffArgs, dataDir: string | undefined): string {
  const title = args.dryRun ? 'Would be removed:' : 'Removed:';
  const done = removed.length === 0 ? 'No entry of Leporello was found.\n' : `${title}\n${listed(removed)}`;
  const isKept = !args.originals && dataDir !== undefined && existsSync(dataDir);
  const kept = isKept ? `Kept: the originals in ${dataDir}. --originals deletes them too.\n` : '';
  return `${done}${left.length === 0 ? '' : `Left for you:\n${listed(left)}`}${kept}`;
}

function listed(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}\n`).join('');
}

/** True for a URL of this machine with the gateway's port, or one that `leporello wrap` made. */
function leadsHere(url: string, port: number): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, port: own, pathname } = new URL(url);
  const isLocal = ['localhost', '[::1]'].includes(hostname) || hostname.startsWith('127.');
  return (
    protocol === 'http:' && isLocal && (Number(own || 80) === port || pathname.startsWith('/_leporello/'))
  );
}

/** Returns the files in which an entry of Leporello may be. */
function settingsFiles(env: Environment, home: string, cwd: string): readonly string[] {
  const codex = env['CODEX_HOME'] || join(home, '.codex');
  const opencode = join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'opencode');
  const gemini = join(env['GEMINI_CLI_HOME'] || home, '.gemini');
  const files = [
    ...claudeSettings({ env, home, cwd }),
    join(home, '.claude.json'),
    join(cwd, '.mcp.json'),
    ...[codex, join(cwd, '.codex')].flatMap((folder) =>
      ['hooks.json', 'config.toml'].map((name) => join(folder, name)),
    ),
    ...[gemini, join(cwd, '.gemini')].map((folder) => join(folder, 'settings.json')),
    ...[home, cwd].flatMap((folder) =>
      ['hooks.json', 'mcp.json'].map((name) => join(folder, '.cursor', name)),
    ),
    ...[opencode, cwd].flatMap((folder) =>
      ['opencode.json', 'opencode.jsonc'].map((name) => join(folder, name)),
    ),
    join(env['PI_CODING_AGENT_DIR'] || join(home, '.pi', 'agent'), 'models.json'),
    ...[home, cwd].map((folder) => join(folder, '.qwen', 'settings.json')),
  ];
  return [...new Set(files)].filter((file) => existsSync(file));
}

async function cleanFile(
  file: string,
  isOurs: (url: string) => boolean,
  isDry: boolean,
  { removed, left }: OffReport,
): Promise<void> {
  try {
    const text = await readFile(file, 'utf8');
    const cleaned: Cleaned = file.endsWith('.toml') ? cleanedToml(text, isOurs) : cleanedJson(text, isOurs);
    if (cleaned.found.length === 0) return;
    const what = `${cleaned.found.join(', ')} in ${file}`;
    if (cleaned.text === undefined) {
      left.push(`Remove ${what} yourself: the file has comments, which would be lost.`);
      return;
    }
    if (!isDry) await replaceFile(file, cleaned.text);
    removed.push(what);
  } catch (error) {
    left.push(`${file} could not be read or written: ${reasonOf(error)}`);
  }
}

/** Writes a file in one step, so that no client reads a half; removes one of which nothing is left. */
async function replaceFile(file: string, text: string): Promise<void> {
  // Settings are often links into a folder under version control.
  const real = await realpath(file);
  if (text === '') {
    await rm(file);
    return;
  }
  const draft = `${real}.${process.pid}`;
  await writeFile(draft, text, { mode: (await stat(real)).mode });
  await rename(draft, real);
}

async function removeFolder(
  folder: string | undefined,
  what: string,
  isDry: boolean,
  { removed }: OffReport,
): Promise<void> {
  if (folder === undefined || !existsSync(folder)) return;
  if (!isDry) await rm(folder, { recursive: true });
  removed.push(`${what}, ${folder}`);
}

/** Deletes the store and the secret, and the folder if nothing else is in it. */
async function removeOriginals(
  dataDir: string | undefined,
  isDry: boolean,
  { removed }: OffReport,
): Promise<void> {
  if (dataDir === undefined) return;
  const store = storeFile(dataDir);
  const files = [store, `${store}-wal`, `${store}-shm`, join(dataDir, 'secret')].filter((file) =>
    existsSync(file),
  );
  if (files.length === 0) return;
  if (!isDry) {
    for (const file of files) await rm(file);
    await rmdir(dataDir).catch(() => undefined);
  }
  removed.push(`the originals and the secret in ${dataDir}`);
}
