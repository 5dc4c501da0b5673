/**
 * Checks of `leporello doctor` on the agent CLIs: base URLs in this shell and in settings files, the traps of single clients, and logins whose
 * tokens rotate. Reads settings, and changes none.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type ClientPlan, type PlacedUrl, agentClis, claudeSettings } from '../wrap/clients.ts';
import type { Config } from '../config/schema.ts';
import { gatewaySettings } from '../config/to-settings.ts';
import { homeOf, ownCommand } from '../home.ts';
import { objectAt, parsedJson, readSettings, textAt } from '../wrap/read-settings.ts';
import { portUser, urlFor } from '../running-gateway.ts';
import type { Environment, Terminal } from '../terminal.ts';
import type { Finding } from './setup-checks.ts';

export async function clientFindings(
  config: Config,
  { env, cwd }: Pick<Terminal, 'env' | 'cwd'>,
  deadlineMs: number,
  wrap: string,
): Promise<readonly Finding[]> {
  const home = homeOf(env) ?? cwd;
  const plans = new Map(
    agentClis.map((client) => [client.name, client.plan({ env, home, cwd, read: readSettings })] as const),
  );
  const shell = ['OPENAI_BASE_URL', 'ANTHROPIC_BASE_URL', 'GOOGLE_GEMINI_BASE_URL'].flatMap((where) =>
    env[where] ? [{ where, url: env[where] }] : [],
  );
  const placed = new Map(
    [...shell, ...[...plans.values()].flatMap(({ baseUrls }) => baseUrls)].map(
      (one) => [`${one.where} ${one.url}`, one] as const,
    ),
  );
  const urls: Finding[] = [];
  for (const one of placed.values()) urls.push(await urlFinding(one, deadlineMs));
  const none: Finding = {
    check: 'base-url',
    level: 'ok',
    says: 'No base URL is set in this shell or in a settings file of a client.',
    fix: `${wrap}, or docs/clients.md for a permanent setting.`,
  };
  return [
    ...(urls.length === 0 ? [none] : urls),
    ...toolSearchFindings(plans.get('claude')!, env, home, cwd),
    ...codexFindings(plans.get('codex')!, env, home),
    ...cacheMarkFindings(plans.get('qwen')!, config, env),
    ...pastFindings(plans),
    ...tenantFindings(config, env, home),
  ];
}

/** Checks that a base URL on this machine leads to a gateway. */
async function urlFinding({ where, url }: PlacedUrl, deadlineMs: number): Promise<Finding> {
  const check = 'base-url';
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    const fix = `Set it to http://127.0.0.1:8787 (see docs/clients.md), or remove it.`;
    return { check, level: 'failure', says: `The base URL in ${where} is not a URL: ${url}.`, fix };
  }
  const { hostname, port, protocol, pathname } = new URL(url);
  if (!isThisMachine(hostname))
    return { check, level: 'ok', says: `The base URL in ${where} is ${url}, not this machine.` };
  const address = { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
  if (protocol === 'https:') {
    const fix = `Use http in ${where}.`;
    return {
      check,
      level: 'failure',
      says: `The base URL in ${where} is ${url}, but the gateway has no TLS.`,
      fix,
    };
  }
  const user = await portUser(address, undefined, deadlineMs);
  if (pathname.startsWith('/_leporello/')) {
    const fix = `Remove the base URL from ${where}.`;
    const says = `The base URL in ${where} is one that leporello wrap gave to a single run: ${url}.`;
    return { check, level: user.kind === 'leporello' ? 'warning' : 'failure', says, fix };
  }
  if (user.kind === 'leporello')
    return {
      check,
      level: 'ok',
      says: `The base URL in ${where} leads to the gateway on ${urlFor(address)}.`,
    };
  if (user.kind === 'nobody') {
    const says = `The base URL in ${where} is ${url}, but nothing listens there: clients that use it fail.`;
    return {
      check,
      level: 'failure',
      says,
      fix: `${ownCommand} serve --port ${address.port}, or remove it from ${where}.`,
    };
  }
  const says = `The base URL in ${where} is ${url}, where a program listens that is not Leporello.`;
  return { check, level: 'warning', says, fix: `If you expected Leporello there, correct ${where}.` };
}

function isThisMachine(hostname: string): boolean {
  return ['localhost', '[::1]'].includes(hostname) || hostname.startsWith('127.');
}

/** Claude Code may send all tool definitions in every request when its base URL is not Anthropic's. */
function toolSearchFindings(
  plan: ClientPlan,
  env: Environment,
  home: string,
  cwd: string,
): readonly Finding[] {
  const check = 'tool-search';
  const [used] = plan.baseUrls;
  if (used === undefined || used.url.startsWith('https://api.anthropic.com')) return [];
  const set = claudeSettings({ env, home, cwd }).flatMap(
    (file) => textAt(parsedJson(readSettings(file)), 'env', 'ENABLE_TOOL_SEARCH') ?? [],
  );
  const value = set[0] ?? env['ENABLE_TOOL_SEARCH'];
  if (value !== undefined && value !== 'false')
    return [{ check, level: 'ok', says: `Claude Code loads tools on demand (ENABLE_TOOL_SEARCH=${value}).` }];
  return [
    {
      check,
      level: 'warning',
      says: `Claude Code has a base URL (${used.where}) without ENABLE_TOOL_SEARCH=true, so some versions send all tool definitions in every request.`,
      fix:
        used.where === 'ANTHROPIC_BASE_URL'
          ? 'export ENABLE_TOOL_SEARCH=true'
          : `Add "ENABLE_TOOL_SEARCH": "true" to "env" in ${used.where}.`,
    },
  ];
}

function codexFindings(plan: ClientPlan, env: Environment, home: string): readonly Finding[] {
  const isUsed = existsSync(env['CODEX_HOME'] || join(home, '.codex'));
  if (!isUsed || !env['OPENAI_BASE_URL'] || plan.baseUrls.length > 0) return [];
  return [
    {
      check: 'codex',
      level: 'warning',
      says: 'Codex ignores OPENAI_BASE_URL, so its requests do not go there.',
      fix: `${ownCommand} wrap codex, or openai_base_url = "${env['OPENAI_BASE_URL']}" in ~/.codex/config.toml.`,
    },
  ];
}

/** Qwen Code sends cache marks only to hosts that it recognizes. */
function cacheMarkFindings(plan: ClientPlan, { openaiUrl }: Config, env: Environment): readonly Finding[] {
  const [used] = plan.baseUrls;
  const isGateway = used !== undefined && URL.canParse(used.url) && isThisMachine(new URL(used.url).hostname);
  const isDashScope = /dashscope|aliyuncs/.test(openaiUrl);
  if (!isGateway || !isDashScope || env['DASHSCOPE_PROXY_BASE_URL'] === used.url) return [];
  return [
    {
      check: 'cache-marks',
      level: 'warning',
      says: 'Qwen Code has a base URL without DASHSCOPE_PROXY_BASE_URL, so it sends no cache marks.',
      fix: `export DASHSCOPE_PROXY_BASE_URL=${used.url}`,
    },
  ];
}

/** Names clients whose requests do not pass through any gateway. */
function pastFindings(plans: ReadonlyMap<string, ClientPlan>): readonly Finding[] {
  return [...plans].flatMap(([name, { past }]) =>
    past === undefined || name === 'opencode'
      ? []
      : [
          {
            check: 'login',
            level: 'warning',
            says: `${past}.`,
            fix: 'Log in with an API key to have its requests folded.',
          } as const,
        ],
  );
}

/** With one tenant for each credential, a login whose token is renewed becomes another tenant each time. */
function tenantFindings(config: Config, env: Environment, home: string): readonly Finding[] {
  const { tenant } = gatewaySettings(config);
  if (tenant !== 'credential') return [];
  const claude = join(env['CLAUDE_CONFIG_DIR'] || join(home, '.claude'), '.credentials.json');
  const codex = join(env['CODEX_HOME'] || join(home, '.codex'), 'auth.json');
  const logins = [
    ...(objectAt(parsedJson(readSettings(claude)), 'claudeAiOauth') ? ['Claude Code'] : []),
    ...(env['CLAUDE_CODE_OAUTH_TOKEN'] ? ['Claude Code'] : []),
    ...(objectAt(parsedJson(readSettings(codex)), 'tokens') ? ['Codex'] : []),
  ];
  const [login] = logins;
  if (login === undefined)
    return [{ check: 'tenant', level: 'ok', says: 'Each credential is a tenant of its own.' }];
  return [
    {
      check: 'tenant',
      level: 'warning',
      says: `Each credential is a tenant of its own, but the token of ${login}'s login is renewed: what was stored under an older token cannot be read with a newer one.`,
      fix: 'Set tenant to local, to a header or to a claim (LEPORELLO_TENANT, docs/tenants.md).',
    },
  ];
}
