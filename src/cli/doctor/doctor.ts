/**
 * Implements `leporello doctor`: runs all checks and prints what each found, with one line on how to fix it. It changes nothing: no folder, no
 * secret and no settings file is written. Exit code 0 when all is well, 1 with warnings, 2 with failures. Also implements `leporello` without
 * arguments.
 */
import { lookup } from 'node:dns/promises';
import { connect as connectPlain } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import { LeporelloError, reasonOf } from '../../errors.ts';
import { count } from '../../receipts/detail.ts';
import type { DoctorArgs } from '../command-args.ts';
import { type LoadedConfig, loadConfig } from '../config/load-config.ts';
import { gatewayCommand, homeOf, ownCommand, withCheckoutNote } from '../home.ts';
import type { Terminal } from '../terminal.ts';
import { clientFindings } from './client-checks.ts';
import { helpText } from '../help/help.ts';
import { type GatewayState, getJson, portUser, urlFor } from '../running-gateway.ts';
import type { WrapSums } from '../serve/wraps.ts';
import { spelledSums } from '../wrap/wrap.ts';
import { ago, gatewayFindings, settingsInUse } from './gateway-checks.ts';
import {
  type DoctorDeps,
  type Finding,
  dataFindings,
  nodeFinding,
  proxyFindings,
  storeFindings,
  secretFindings,
  upstreamFindings,
} from './setup-checks.ts';

const usualDeps: DoctorDeps = {
  nodeVersion: process.versions.node,
  reach,
  now: () => Date.now(),
  deadlineMs: 5_000,
};

/** Runs the command. Resolves with the exit code. */
export async function doctor(
  args: DoctorArgs,
  terminal: Terminal,
  deps: DoctorDeps = usualDeps,
): Promise<number> {
  const findings = await findingsOf(args, terminal, deps);
  const failures = findings.filter(({ level }) => level === 'failure').length;
  const warnings = findings.filter(({ level }) => level === 'warning').length;
  const code = failures > 0 ? 2 : warnings > 0 ? 1 : 0;
  if (args.json) {
    const result = (['ok', 'warning', 'failure'] as const)[code];
    await terminal.out(`${JSON.stringify({ result, findings })}\n`);
    return code;
  }
  const sums = `${count(findings.length, 'check')}: ${count(failures, 'failure')}, ${count(warnings, 'warning')}`;
  await terminal.out(`${findings.map(spelled).join('')}\n${sums}.\n`);
  return code;
}

function spelled({ level, says, fix }: Finding): string {
  const line = `${level.padEnd(8)} ${says.replaceAll('\n', '\n         ')}\n`;
  return fix === undefined ? line : `${line}         fix: ${fix}\n`;
}

async function findingsOf(
  args: DoctorArgs,
  terminal: Terminal,
  deps: DoctorDeps,
): Promise<readonly Finding[]> {
  const node = nodeFinding(deps.nodeVersion);
  let loaded: LoadedConfig;
  try {
    loaded = await loadConfig(args.settings, terminal);
  } catch (error) {
    if (!LeporelloError.isInstance(error)) throw error;
    const fix = 'Correct it; the other checks need the configuration. All options: docs/configuration.md.';
    return [node, { check: 'configuration', level: 'failure', says: error.message, fix }];
  }
  return [node, ...(await setupFindings(loaded, terminal, deps))];
}

/** Runs all checks for the page of a gateway that has this configuration. Each answer may take `deadlineMs` milliseconds. */
export async function checksOf(
  loaded: LoadedConfig,
  terminal: Terminal,
  deadlineMs: number,
): Promise<readonly Finding[]> {
  const findings = await setupFindings(loaded, terminal, { ...usualDeps, deadlineMs });
  return [nodeFinding(usualDeps.nodeVersion), ...findings];
}

async function setupFindings(
  { config, dataDir, unknownVariables }: LoadedConfig,
  terminal: Terminal,
  deps: DoctorDeps,
): Promise<readonly Finding[]> {
  const configuration: readonly Finding[] =
    unknownVariables.length === 0
      ? [{ check: 'configuration', level: 'ok', says: 'The configuration is valid.' }]
      : [
          {
            check: 'configuration',
            level: 'warning',
            says: `Unknown variables are ignored: ${unknownVariables.join(', ')}.`,
            fix: `unset ${unknownVariables.join(' ')}`,
          },
        ];
  const secret = await secretFindings(dataDir, terminal.env, config.memory);
  const command = (words: string) =>
    gatewayCommand(words, { port: config.port, dataDir, home: homeOf(terminal.env) });
  const user = await portUser(config, secret.secret, deps.deadlineMs);
  const { used, findings } = settingsInUse(config, user);
  const gateway = await gatewayFindings(used, user, deps, command);
  return [
    ...configuration,
    ...findings,
    ...(await dataFindings(dataDir, config.memory, secret.secret)),
    ...secret.findings,
    ...(await storeFindings(config.memory, deps.deadlineMs, secret.secret)),
    ...(await upstreamFindings(used, deps)),
    ...proxyFindings(terminal.env),
    ...gateway,
    ...(await clientFindings(used, terminal, deps.deadlineMs, command('wrap claude'))),
  ];
}

/** Connects to a URL's host, and closes the connection. */
async function reach(url: string, deadlineMs: number): Promise<void> {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isSecure = protocol === 'https:';
  const { address } = await lookup(host);
  await new Promise<void>((resolve, reject) => {
    const place = { host: address, port: Number(port) || (isSecure ? 443 : 80) };
    const socket = isSecure ? connectSecure({ ...place, servername: host }) : connectPlain(place);
    const timer = setTimeout(() => {
      socket.destroy(
        Object.assign(new Error(`no connection within ${deadlineMs} ms`), { code: 'ETIMEDOUT' }),
      );
    }, deadlineMs);
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', (error) => reject(new Error(reasonOf(error), { cause: error })));
    socket.once('close', () => clearTimeout(timer));
  });
}

/** Shows the state of the running gateway on a terminal, or else the general help. Resolves with the exit code. */
export async function state(terminal: Terminal, deadlineMs = usualDeps.deadlineMs): Promise<number> {
  await terminal.out(
    (terminal.isTty.out ? await stateText(terminal, deadlineMs) : undefined) ??
      withCheckoutNote(helpText(undefined)),
  );
  return 0;
}

/** Returns the text on the gateway of this user; undefined if none runs. */
async function stateText(terminal: Terminal, deadlineMs: number): Promise<string | undefined> {
  const loaded = await loadConfig({ file: undefined, values: [] }, terminal).catch(() => undefined);
  if (loaded === undefined) return undefined;
  const { config, dataDir } = loaded;
  const { secret } = await secretFindings(dataDir, terminal.env, config.memory);
  const user = await portUser(config, secret, deadlineMs);
  if (user.kind !== 'leporello' || !user.isOurs) return undefined;
  const url = urlFor(config);
  const totals = await getJson(`${url}/_leporello/totals`, deadlineMs);
  const sums =
    totals.status === 'ok'
      ? spelledSums((totals.value as { readonly total: WrapSums }).total)
      : 'its totals need a credential';
  const command = (words: string) =>
    gatewayCommand(words, { port: config.port, dataDir, home: homeOf(terminal.env) });
  return spelledState(user.state, url, sums, command);
}

function spelledState(
  gateway: GatewayState,
  url: string,
  sums: string,
  command: (words: string) => string,
): string {
  const { leporello, since, mode, store, wraps, endsWithWraps } = gateway;
  const until = endsWithWraps ? '; it ends with the last of them' : '';
  return `Leporello ${leporello} runs on ${url} for ${ago(Date.now() - since)}${mode === 'observe' ? ', and only observes' : ''}
  requests  ${sums}
  store     ${store ?? 'only in memory'}
  wraps     ${wraps}${wraps > 0 ? until : ''}
  page      ${url}/

  ${command('wrap claude')}   connects an agent for one run
  ${command('doctor')}        checks the set-up
  ${ownCommand} help          shows all commands
`;
}
