/**
 * Implements `leporello wrap`: starts an agent CLI whose requests go through a gateway, for this run only. It changes the environment and the
 * arguments of the child process, and writes no file. It ends with the child's exit code and one line about its requests.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { accessSync, constants, statSync } from 'node:fs';
import { constants as system } from 'node:os';
import { delimiter, join } from 'node:path';
import { LeporelloError } from '../../errors.ts';
import { defaultUpstreams } from '../../gateway/routing/routes.ts';
import { upstreamsIn } from '../config/to-settings.ts';
import { loadSecret } from '../../store/secret.ts';
import type { WrapArgs } from '../command-args.ts';
import {
  type AgentCli,
  type ClientConnection,
  type ClientPlan,
  agentCliNamed,
  upstreamsOf,
} from './clients.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Config } from '../config/schema.ts';
import type { SettingArgs } from '../flags.ts';
import { homeOf, ownCommand } from '../home.ts';
import { count, number, usdText } from '../../receipts/detail.ts';
import { getJson, type LocalAddress, portUser, urlFor, wrapsPath } from '../running-gateway.ts';
import type { WrapSums } from '../serve/wraps.ts';
import { forOtherPrograms } from '../start-cache.ts';
import type { Environment, Terminal } from '../terminal.ts';
import { readSettings } from './read-settings.ts';
import { type GatewayWish, type OpenGateway, openGateway } from './open-gateway.ts';
import { setTimeout as sleep } from 'node:timers/promises';

const deadlines = { answer: 30_000, start: 300_000 };

/** Runs the command. Resolves with the client's exit code. Rejects with `bad-config` if the client or the gateway cannot be started. */
export async function wrap(args: WrapArgs, terminal: Terminal): Promise<number> {
  const client = agentCliNamed(args.client);
  const plan = planOf(client, args.rest, terminal);
  const { config, dataDir } = await loadConfig(args.settings, terminal);
  if (args.print) return print(args, client, plan, config, terminal);
  const binary = findBinary(client, terminal.env);
  if (plan.past !== undefined) {
    terminal.err(`leporello: ${plan.past}. It starts unchanged, and nothing is folded.\n`);
    return runClient(spawnClient(binary, args.rest, terminal, { env: {}, args: [] }), terminal);
  }
  const id = randomUUID();
  const secret = await loadSecret({ dataDir: dataDir ?? '', env: terminal.env }).catch(() => undefined);
  const address = await addressFor(plan, config, secret);
  const wish: GatewayWish = {
    id,
    address,
    isPortGiven: args.settings.values.some(({ key }) => key === 'port'),
    secret,
    upstreams: upstreamsOf(plan, upstreamsIn(config), defaultUpstreams, ignoredHosts(address)),
    flags: flagsFor(args.settings),
    env: terminal.env,
    cwd: terminal.cwd,
    deadlines,
  };
  const gateway = await openGateway(wish);
  for (const line of [...(await warningsOf(gateway)), ...notesOn(gateway, wish)])
    terminal.err(`leporello: ${line}\n`);
  const connection = plan.connect(`${gateway.url}${wrapsPath}/${id}`);
  const child = spawned(() => spawnClient(binary, args.rest, terminal, connection), gateway);
  const keeping = keepGateway(gateway, wish, child);
  try {
    return await runClient(child, terminal);
  } finally {
    terminal.err(`leporello: ${await closingLine(gateway, id)}\n`);
    keeping.stop();
  }
}

/** Starts the client. If that fails at once, as with too many arguments, the gateway is released, so that it can end. */
function spawned(start: () => ChildProcess, { hold }: OpenGateway): ChildProcess {
  try {
    return start();
  } catch (error) {
    hold.release();
    throw error;
  }
}

function planOf({ plan }: AgentCli, rest: readonly string[], { env, cwd }: Terminal): ClientPlan {
  return plan({ env, cwd, home: homeOf(env) ?? cwd, read: readSettings, rest });
}

/** Prints how to start the client in another way, such as from an editor. */
async function print(
  args: WrapArgs,
  client: AgentCli,
  plan: ClientPlan,
  { host, port }: Config,
  terminal: Terminal,
): Promise<number> {
  const url = urlFor({ host, port });
  const connection = plan.connect(url);
  const argv = [...connection.args, ...args.rest];
  if (plan.past !== undefined) terminal.err(`leporello: ${plan.past}.\n`);
  if ((await portUser({ host, port }, undefined, deadlines.answer)).kind !== 'leporello')
    terminal.err(`leporello: no Leporello listens on ${url} now. Start it with ${ownCommand} serve.\n`);
  if (args.json) {
    await terminal.out(`${JSON.stringify({ command: client.binary, env: connection.env, args: argv })}\n`);
    return 0;
  }
  const variables = Object.entries(connection.env).map(([name, value]) => `${name}=${quoted(value)}`);
  await terminal.out(`${[...variables, client.binary, ...argv.map(quoted)].join(' ')}\n`);
  return 0;
}

/** Quotes a word for a POSIX shell, if it must be. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns the address of a Leporello that the user's own base URL names, else the configured one. */
async function addressFor(
  plan: ClientPlan,
  config: Config,
  secret: Uint8Array | undefined,
): Promise<LocalAddress> {
  for (const { url } of plan.baseUrls) {
    const { hostname, port } = URL.canParse(url) ? new URL(url) : { hostname: '', port: '' };
    if (!['127.0.0.1', 'localhost'].includes(hostname) || port === '') continue;
    const address = { host: '127.0.0.1', port: Number(port) };
    const user = await portUser(address, secret, deadlines.answer);
    if (user.kind === 'leporello' && user.isOurs) return address;
  }
  return { host: config.host, port: config.port };
}

/** A base URL of the gateway itself, which the user may have set, is not an upstream. */
function ignoredHosts({ host, port }: LocalAddress): readonly string[] {
  return [`${host}:${port}`, `127.0.0.1:${port}`, `localhost:${port}`];
}

/** Returns the flags for a gateway that this wrap starts, without those that it sets itself. */
function flagsFor({ file, values }: SettingArgs): readonly string[] {
  const own = values.flatMap(({ flag, key, text }) => {
    if (key === 'port' || key === 'host') return [];
    return flag === '--set' ? [flag, `${key}=${text}`] : [`${flag}=${text}`];
  });
  return [...(file === undefined ? [] : ['--config', file]), ...own];
}

/** Returns what the gateway warned of at its start, such as a store that it cannot use: its own log is seen by nobody. */
async function warningsOf({ address }: OpenGateway): Promise<readonly string[]> {
  const user = await portUser(address, undefined, deadlines.answer);
  return (user.kind === 'leporello' ? user.state.warnings : undefined) ?? [];
}

function notesOn({ isShared, note, url }: OpenGateway, { flags }: GatewayWish): readonly string[] {
  const ignored = `A gateway already runs on ${url}. It keeps its own settings, so ${flags.join(' ')} has no effect.`;
  return [...(note === undefined ? [] : [note]), ...(isShared && flags.length > 0 ? [ignored] : [])];
}

/** Returns the path of the client's command. Throws `bad-config` if it is not installed. */
function findBinary({ binary, title, npmPackage }: AgentCli, env: Environment): string {
  const endings = process.platform === 'win32' ? ['.exe', '.cmd', ''] : [''];
  for (const folder of (env['PATH'] ?? '').split(delimiter).filter((one) => one !== '')) {
    for (const ending of endings) {
      const file = join(folder, binary + ending);
      if (isExecutable(file)) return file;
    }
  }
  throw new LeporelloError(
    'bad-config',
    `${title} is not installed: there is no ${binary} on the PATH. Install it with npm install -g ${npmPackage}.`,
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function spawnClient(
  binary: string,
  rest: readonly string[],
  { env, cwd }: Terminal,
  connection: ClientConnection,
): ChildProcess {
  return spawn(binary, [...connection.args, ...rest], {
    cwd,
    env: { ...forOtherPrograms(env), ...direct(env), ...connection.env },
    stdio: 'inherit',
    // npm's commands are scripts there, which only a shell runs.
    shell: binary.endsWith('.cmd'),
  });
}

/** Returns variables that keep a client's proxy away from this machine; none if it has no proxy. */
function direct(env: Environment): Readonly<Record<string, string>> {
  const hasProxy = Object.keys(env).some((name) => /^(?:https?|all)_proxy$/i.test(name) && !!env[name]);
  if (!hasProxy) return {};
  const list = [env['NO_PROXY'] || env['no_proxy'], '127.0.0.1', 'localhost'].filter(Boolean).join(',');
  return { NO_PROXY: list, no_proxy: list };
}

/** Waits for the client, passes signals on to it, and resolves with its exit code. */
async function runClient(child: ChildProcess, { isTty }: Terminal): Promise<number> {
  const isOnTerminal = isTty.input || isTty.out || isTty.err;
  const forward = (signal: NodeJS.Signals) => () => {
    // A terminal sends its own signals to the client, too.
    if (!isOnTerminal || signal === 'SIGTERM' || signal === 'SIGHUP') child.kill(signal);
  };
  const listeners = (['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'] as const).map(
    (signal) => [signal, forward(signal)] as const,
  );
  for (const [signal, listener] of listeners) process.on(signal, listener);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', (cause) => {
        const said = `${child.spawnfile} cannot be started: ${cause.message}.`;
        reject(new LeporelloError('bad-config', said, { cause }));
      });
      child.once('close', (code, signal) =>
        resolve(code ?? 128 + (signal === null ? 0 : system.signals[signal])),
      );
    });
  } finally {
    for (const [signal, listener] of listeners) process.off(signal, listener);
  }
}

/** Keeps the gateway running as long as the client: if it ends, another one takes over its port. */
function keepGateway(gateway: OpenGateway, wish: GatewayWish, child: ChildProcess) {
  const over = new AbortController();
  const { signal } = over;
  let { hold } = gateway;
  signal.addEventListener('abort', () => hold.release());
  const again = { ...wish, address: gateway.address, isPortGiven: true, pid: child.pid, signal };
  async function keep(): Promise<void> {
    while (!signal.aborted) {
      const next = await openGateway(again).catch(() => undefined);
      if (next === undefined) {
        await sleep(500, undefined, { signal });
        continue;
      }
      // The new one names the client, so that the gateway outlives this process if that is killed.
      hold.release();
      ({ hold } = next);
      if (signal.aborted) hold.release();
      await hold.ended;
    }
  }
  keep().catch(() => undefined);
  return { stop: () => over.abort() };
}

/** Says what the requests of this wrap came to, and where to see more if the gateway goes on. */
async function closingLine({ url, address }: OpenGateway, id: string): Promise<string> {
  const answer = await getJson(`${url}${wrapsPath}/${id}`, 2 * deadlines.answer);
  if (answer.status !== 'ok') return 'the gateway has ended, so nothing is known about the requests.';
  const sums = answer.value as WrapSums;
  const user = await portUser(address, undefined, deadlines.answer);
  const goesOn = user.kind === 'leporello' && (user.state.wraps > 1 || !user.state.endsWithWraps);
  const { problems } = sums;
  const failed =
    problems === undefined ? '' : `; ${problems.requests} with a problem, the newest: ${problems.newest}`;
  return `${spelledSums(sums)}${goesOn ? `; page: ${url}/` : ''}${failed}`;
}

/** Spells sums: `14 requests, 50,000 tokens instead of 80,000 (37.5 % fewer), 2 folds, 1 recall, net $1.12 (estimate)`. */
export function spelledSums({
  requests,
  folds,
  recalls,
  tokensBefore,
  tokensAfter,
  money,
}: WrapSums): string {
  if (requests === 0) return 'no request came through the gateway';
  const parts = [count(requests, 'request')];
  if (tokensBefore !== undefined && tokensAfter !== undefined)
    parts.push(tokensText(tokensBefore, tokensAfter));
  if (folds > 0) parts.push(count(folds, 'fold'));
  if (recalls > 0) parts.push(count(recalls, 'recall'));
  if (money !== undefined) parts.push(`net ${usdText(money.net)} (estimate)`);
  return parts.join(', ');
}

function tokensText(before: number, after: number): string {
  if (before === after || before === 0) return count(after, 'token');
  const percent = (100 * Math.abs(before - after)) / before;
  const share = `${percent.toFixed(1)} % ${after < before ? 'fewer' : 'more'}`;
  return `${count(after, 'token')} instead of ${number(before)} (${share})`;
}
