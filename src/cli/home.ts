/** Finds the user's home folder, for configuration, data and caches, the version and the command of this package, and whether this Node can run it. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Returns the home folder; undefined for a user without one. An empty variable counts as missing. */
export function homeOf(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const named = env['HOME'] || env['USERPROFILE'];
  if (named) return named;
  try {
    return homedir() || undefined;
  } catch {
    // A user without an entry in the password file has no home, as in many containers.
    return undefined;
  }
}

/** Quotes a word for a POSIX shell, where that is needed. */
export function quoted(word: string): string {
  return /^[\w./:@=+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The command as the user types it in any folder. Only a checkout runs TypeScript, and there a file starts it. */
export const ownCommand = import.meta.url.endsWith('.ts') ? checkoutCommand(process.platform) : 'leporello';

function checkoutCommand(platform: string): string {
  return platform === 'win32'
    ? `node ${fileOfCheckout('scripts/bootstrap.mjs')} --production src/cli/main.ts`
    : fileOfCheckout('bin/leporello');
}

function fileOfCheckout(path: string): string {
  return quoted(fileURLToPath(new URL(`../../${path}`, import.meta.url)));
}

/** Returns a command for this gateway, such as `wrap claude` or `doctor`. It names the port and the data folder if they are not the default. */
export function gatewayCommand(
  words: string,
  {
    port,
    dataDir,
    home,
  }: { readonly port: number; readonly dataDir: string | undefined; readonly home: string | undefined },
): string {
  const isOther = dataDir !== undefined && dataDir !== join(home ?? '', '.leporello');
  const flags = [
    ...(port === 8787 ? [] : ['--port', `${port}`]),
    ...(isOther ? ['--data', quoted(dataDir)] : []),
  ];
  return [ownCommand, words, ...flags].join(' ');
}

/** Adds to a help text how to write its commands in a checkout. */
export function withCheckoutNote(help: string): string {
  const isOwn = ownCommand === 'leporello';
  return isOwn ? help : `${help}\nIn this checkout, write ${ownCommand} in place of leporello.\n`;
}

/** Returns the version in package.json. It lies two folders above the sources, and three above the compiled code. */
export function packageVersion(): string {
  const root = import.meta.url.endsWith('.ts') ? '../..' : '../../..';
  const manifest = new URL(`${root}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string }).version;
}

/** The oldest Node that runs the commands. The library also runs in older ones. */
const oldestNode = [22, 18] as const;

/** Versions of the runtime, as in `process.versions`. */
export type RuntimeVersions = Readonly<Partial<Record<'node' | 'bun' | 'deno', string>>>;

/** Says why this runtime cannot run the commands; undefined if it can. Bun and Deno have other servers below the interface of `node:http`. */
export function runtimeProblem({ node = '0', bun, deno }: RuntimeVersions): string | undefined {
  const oldest = oldestNode.join('.');
  const other = bun === undefined ? deno && `Deno ${deno}` : `Bun ${bun}`;
  if (other) return `This is ${other}, but the commands of Leporello need Node ${oldest} or newer.`;
  const [major = 0, minor = 0] = node.split('.').map(Number);
  const isOld = major < oldestNode[0] || (major === oldestNode[0] && minor < oldestNode[1]);
  return isOld ? `Node ${node} is too old: the commands of Leporello need ${oldest} or newer.` : undefined;
}
