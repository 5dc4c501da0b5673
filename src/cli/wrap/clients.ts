/**
 * Lists the agent CLIs that Leporello connects: their command and settings files, and how one is connected for a single run.
 * `wrap`, `doctor` and the text at the start of `serve` use the same table. Reads settings only through the functions of a `ClientPlace`.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nearest } from '../../checks.ts';
import { LeporelloError } from '../../errors.ts';
import type { UpstreamUrls } from '../../gateway/routing/routes.ts';
import type { ClientSnippet } from '../../page/setup.ts';
import { mergedJson, objectAt, parsedJson, textAt, tomlTexts } from './read-settings.ts';
import type { Environment } from '../terminal.ts';

/** An agent CLI. */
export type AgentCli = {
  readonly name: AgentCliName;
  readonly title: string;
  /** The command that starts it. */
  readonly binary: string;
  readonly npmPackage: string;
  /** Connects it without `wrap`: a command line, or the content of `file`. */
  readonly setting: (url: string) => string;
  /** The settings file that `setting` belongs in. */
  readonly file?: string;
  /** Says how a run of it is connected. */
  readonly plan: (place: ClientPlace) => ClientPlan;
};

export type AgentCliName = 'claude' | 'codex' | 'gemini' | 'opencode' | 'pi' | 'qwen';

/** The user's shell and files, as a client would find them. */
export type ClientPlace = {
  readonly env: Environment;
  readonly home: string;
  readonly cwd: string;
  /** Returns a file's text; undefined if there is none or it cannot be read. */
  readonly read: (path: string) => string | undefined;
  /** The user's own arguments for the client. */
  readonly rest?: readonly string[];
};

/** How a run of a client is connected. */
export type ClientPlan = {
  /** The providers that it may call, each with a base URL that the user has set for it; undefined means the configured upstream. */
  readonly providers: Readonly<Partial<Record<keyof UpstreamUrls, string | undefined>>>;
  /** Base URLs that the user has set, and where. */
  readonly baseUrls: readonly PlacedUrl[];
  /** Why its requests cannot go through the gateway; it is then started unchanged. */
  readonly past?: string;
  /** Returns additions to the environment and to the beginning of the arguments. `url` is the gateway's, without a slash at its end. */
  readonly connect: (url: string) => ClientConnection;
};

export type ClientConnection = {
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
};

/** A base URL and the place that sets it, such as `ANTHROPIC_BASE_URL` or a file. */
export type PlacedUrl = { readonly where: string; readonly url: string };

/** Returns the client with this name. */
export function agentCliNamed(name: AgentCliName): AgentCli {
  return agentClis.find((client) => client.name === name)!;
}

/** Returns the settings files of Claude Code, the strongest first. */
export function claudeSettings({ env, home, cwd }: Omit<ClientPlace, 'read'>): readonly string[] {
  return [
    join(cwd, '.claude', 'settings.local.json'),
    join(cwd, '.claude', 'settings.json'),
    join(env['CLAUDE_CONFIG_DIR'] || join(home, '.claude'), 'settings.json'),
  ];
}

function planClaude(place: ClientPlace): ClientPlan {
  const { env, read } = place;
  const files = claudeSettings(place);
  const inFile = (file: string, name: string) => textAt(parsedJson(read(file)), 'env', name);
  const valuesOf = (name: string) => [env[name], ...files.map((file) => inFile(file, name))];
  const isSearchSet = valuesOf('ENABLE_TOOL_SEARCH').some((value) => value !== undefined);
  const set = files.flatMap((where): readonly PlacedUrl[] => {
    const url = inFile(where, 'ANTHROPIC_BASE_URL');
    return url === undefined ? [] : [{ where, url }];
  });
  const baseUrls = [...set, ...variable(env, 'ANTHROPIC_BASE_URL')];
  const cloud = ['CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY'].find(
    (name) => valuesOf(name).some(isOn),
  );
  return {
    providers: { anthropic: baseUrls[0]?.url },
    baseUrls,
    ...(cloud !== undefined && {
      past: `${cloud} is set, so Claude Code calls a cloud provider whose requests Leporello cannot serve`,
    }),
    connect(url) {
      // Without it, some versions send all tool definitions in every request. A value of the user's own stays.
      const search = isSearchSet ? {} : { ENABLE_TOOL_SEARCH: 'true' };
      const variables = { ANTHROPIC_BASE_URL: url, ...search };
      // A settings file is stronger than a variable, and this flag is stronger than a settings file.
      const args = set.length === 0 ? [] : ['--settings', JSON.stringify({ env: variables })];
      return { env: variables, args };
    },
  };
}

function planCodex({ env, home, read, rest = [] }: ClientPlace): ClientPlan {
  const folder = env['CODEX_HOME'] || join(home, '.codex');
  const file = join(folder, 'config.toml');
  const config = tomlTexts(read(file) ?? '');
  const [, given] = /(?:^|\n)(?:-p\n?|--profile[\n=])([^\n]+)/.exec(rest.join('\n')) ?? [];
  const profile = given ?? config.get('profile');
  const provider = config.get(`profiles.${profile}.model_provider`) ?? config.get('model_provider');
  const key =
    provider === undefined || provider === 'openai'
      ? 'openai_base_url'
      : `model_providers.${provider}.base_url`;
  const url = config.get(key);
  return {
    providers: { openai: url },
    baseUrls: url === undefined ? [] : [{ where: file, url }],
    connect: (to) => ({ env: {}, args: ['-c', `${key}="${to}/v1"`] }),
  };
}

function planGemini({ env, home, cwd, read }: ClientPlace): ClientPlan {
  const folder = join(env['GEMINI_CLI_HOME'] || home, '.gemini');
  const settings = [join(cwd, '.gemini', 'settings.json'), join(folder, 'settings.json')].map((file) =>
    parsedJson(read(file)),
  );
  const [login] = settings.flatMap(
    (one) => textAt(one, 'security', 'auth', 'selectedType') ?? textAt(one, 'selectedAuthType') ?? [],
  );
  const baseUrls = variable(env, 'GOOGLE_GEMINI_BASE_URL');
  return {
    providers: { gemini: baseUrls[0]?.url },
    baseUrls,
    ...(login !== undefined &&
      login !== 'gemini-api-key' && {
        past: `Gemini CLI is logged in with ${login}, whose requests do not use a base URL (with an API key they do)`,
      }),
    connect: (url) => ({ env: { GOOGLE_GEMINI_BASE_URL: url }, args: [] }),
  };
}

/** The providers of opencode and pi that can use the gateway: their key in the environment, and the path of their base URL. */
const vendors = [
  { id: 'anthropic', of: 'anthropic', keys: ['ANTHROPIC_API_KEY'] },
  { id: 'openai', of: 'openai', keys: ['OPENAI_API_KEY'] },
  { id: 'google', of: 'gemini', keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'] },
] as const;

function planOpencode({ env, home, cwd, read }: ClientPlace): ClientPlan {
  const config = join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'opencode');
  const data = join(env['XDG_DATA_HOME'] || join(home, '.local', 'share'), 'opencode');
  const files = [
    ...(env['OPENCODE_CONFIG'] ? [env['OPENCODE_CONFIG']] : []),
    ...[cwd, config].flatMap((folder) => [join(folder, 'opencode.json'), join(folder, 'opencode.jsonc')]),
  ];
  const settings = files.map((where) => ({ where, value: parsedJson(read(where)) }));
  const inline = parsedJson(env['OPENCODE_CONFIG_CONTENT']);
  const logins = parsedJson(read(join(data, 'auth.json')));
  const used = vendors.flatMap((vendor) => {
    const { id, keys } = vendor;
    const set = settings.find(({ value }) => textAt(value, 'provider', id, 'options', 'baseURL'));
    const url = set && textAt(set.value, 'provider', id, 'options', 'baseURL');
    const hasKey =
      keys.some((name) => !!env[name]) ||
      textAt(logins, id, 'type') === 'api' ||
      settings.some(({ value }) => objectAt(value, 'provider', id) !== undefined) ||
      objectAt(inline, 'provider', id) !== undefined;
    return hasKey ? [{ ...vendor, url, where: set?.where ?? '' }] : [];
  });
  return {
    providers: Object.fromEntries(used.map(({ of, url }) => [of, url])),
    baseUrls: used.flatMap(({ where, url }) => (url === undefined ? [] : [{ where, url }])),
    ...(used.length === 0 && {
      past: 'opencode has no API key of Anthropic, OpenAI or Google, and requests of other providers and of logins do not go through Leporello',
    }),
    connect(url) {
      const base = (id: string): string => `${url}${id === 'google' ? '/v1beta' : '/v1'}`;
      const provider = Object.fromEntries(
        used.map(({ id }) => [id, { options: { baseURL: base(id) } }] as const),
      );
      return {
        env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(mergedJson(inline ?? {}, { provider })) },
        args: [],
      };
    },
  };
}

function planPi({ env, home, read }: ClientPlace): ClientPlan {
  const file = join(env['PI_CODING_AGENT_DIR'] || join(home, '.pi', 'agent'), 'models.json');
  const models = parsedJson(read(file));
  const used = vendors.map(({ id, of }) => ({ of, url: textAt(models, 'providers', id, 'baseUrl') }));
  return {
    providers: Object.fromEntries(used.map(({ of, url }) => [of, url])),
    baseUrls: used.flatMap(({ url }) => (url === undefined ? [] : [{ where: file, url }])),
    connect: (url) => ({ env: { PI_LEPORELLO_URL: url }, args: ['--extension', piExtension()] }),
  };
}

/** Returns the path of the extension that sets pi's base URLs: TypeScript in a checkout, JavaScript in the package. */
function piExtension(): string {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`./pi-extension.${ending}`, import.meta.url));
}

const dashScope = 'https://dashscope.aliyuncs.com/compatible-mode/v1';

function planQwen({ env, home, cwd, read }: ClientPlace): ClientPlan {
  const files = [join(cwd, '.qwen', 'settings.json'), join(home, '.qwen', 'settings.json')];
  const settings = files.map((where) => ({ where, value: parsedJson(read(where)) }));
  const baseUrls = [
    ...variable(env, 'OPENAI_BASE_URL'),
    ...settings.flatMap(({ where, value }) => {
      const url = textAt(value, 'security', 'auth', 'baseUrl');
      return url === undefined ? [] : [{ where, url }];
    }),
  ];
  const upstream = baseUrls[0]?.url;
  const [login] = settings.flatMap(({ value }) => textAt(value, 'security', 'auth', 'selectedType') ?? []);
  return {
    providers: { openai: upstream ?? dashScope },
    baseUrls,
    ...(login !== undefined &&
      login !== 'openai' && {
        past: `Qwen Code is logged in with ${login}, whose requests do not use a base URL (with an API key they do)`,
      }),
    connect(url) {
      const base = `${url}/v1`;
      // It sends cache marks only to a host that it recognizes; the second variable makes it recognize this one.
      const marks = /dashscope|aliyuncs/.test(upstream ?? dashScope)
        ? { DASHSCOPE_PROXY_BASE_URL: base }
        : {};
      return { env: { OPENAI_BASE_URL: base, ...marks }, args: [] };
    },
  };
}

/** All clients, in the order of docs/clients.md. */
export const agentClis: readonly AgentCli[] = [
  {
    name: 'claude',
    title: 'Claude Code',
    binary: 'claude',
    npmPackage: '@anthropic-ai/claude-code',
    setting: (url) => `ANTHROPIC_BASE_URL=${url} ENABLE_TOOL_SEARCH=true claude`,
    plan: planClaude,
  },
  {
    name: 'codex',
    title: 'Codex',
    binary: 'codex',
    npmPackage: '@openai/codex',
    setting: (url) => `openai_base_url = "${url}/v1"`,
    file: '~/.codex/config.toml',
    plan: planCodex,
  },
  {
    name: 'gemini',
    title: 'Gemini CLI',
    binary: 'gemini',
    npmPackage: '@google/gemini-cli',
    setting: (url) => `GOOGLE_GEMINI_BASE_URL=${url} gemini`,
    plan: planGemini,
  },
  {
    name: 'opencode',
    title: 'opencode',
    binary: 'opencode',
    npmPackage: 'opencode-ai',
    setting: (url) => `{ "provider": { "anthropic": { "options": { "baseURL": "${url}/v1" } } } }`,
    file: 'opencode.json',
    plan: planOpencode,
  },
  {
    name: 'pi',
    title: 'pi',
    binary: 'pi',
    npmPackage: '@mariozechner/pi-coding-agent',
    setting: (url) => `{ "providers": { "anthropic": { "baseUrl": "${url}" } } }`,
    file: '~/.pi/agent/models.json',
    plan: planPi,
  },
  {
    name: 'qwen',
    title: 'Qwen Code',
    binary: 'qwen',
    npmPackage: '@qwen-code/qwen-code',
    setting: (url) => `OPENAI_BASE_URL=${url}/v1 DASHSCOPE_PROXY_BASE_URL=${url}/v1 qwen`,
    plan: planQwen,
  },
];

/** Returns the client that the operands of `wrap` name. `flags` may be meant for the client, too. Throws `bad-usage` for another name, and for arguments of the client. */
export function agentCliIn(operands: readonly string[], flags: readonly string[]): AgentCliName {
  const names = agentClis.map(({ name }) => name);
  const [word, extra] = operands;
  if (word === undefined)
    throw new LeporelloError(
      'bad-usage',
      `wrap needs a client: leporello wrap ${names.join('|')} [-- ARGUMENTS].`,
    );
  if (extra !== undefined) {
    const hint = `leporello wrap ${word} -- ${[...flags, extra].join(' ')} ...`;
    throw new LeporelloError('bad-usage', `Arguments of ${word} come after --, as in ${hint}`);
  }
  const named = names.find((name) => name === word);
  if (named !== undefined) return named;
  const meant = nearest(word, names);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  throw new LeporelloError(
    'bad-usage',
    `Leporello knows no client ${word}.${hint} It can wrap ${names.join(', ')}; set the base URL of any other client yourself (leporello serve).`,
  );
}

/** Explains how to connect clients and SDKs. `url` is the gateway's, without a path and a slash at its end; `command` spells a command for it. */
export function clientHelp(url: string, command: (words: string) => string): string {
  const names = agentClis.map(({ name }) => name);
  const rows = [
    ...agentClis.map(
      ({ title, setting, file }) =>
        [title, `${setting(url)}${file === undefined ? '' : ` in ${file}`}`] as const,
    ),
    ['OpenAI SDK', `OPENAI_BASE_URL=${url}/v1   (or baseURL / base_url; chat and responses)`],
    ['Anthropic SDK', `ANTHROPIC_BASE_URL=${url}   (or baseURL / base_url)`],
    ['Gemini SDK', `httpOptions: { baseUrl: '${url}' }`],
  ] as const;
  return `Connect an agent for one run, without changing its settings:

  ${command('wrap claude')}   (or ${names.slice(1).join(', ')}; arguments of the agent come after --)
  ${command('doctor')}        checks the set-up

Or set the base URL of a client to this gateway. The client keeps its key.

${rows.map(([title, setting]) => `  ${title.padEnd(14)}  ${setting}\n`).join('')}
  More about each client: docs/clients.md
  What happens to each request: ${url}/ in a browser, and ${url}/_leporello/receipts for programs
`;
}

/** Explains the same for the page: one text to copy for each client. */
export function clientSnippets(url: string, wrap: string): readonly ClientSnippet[] {
  const toolSearch = 'Without ENABLE_TOOL_SEARCH, some versions send all tool definitions in every request.';
  return [
    { name: 'For one run', text: wrap, note: 'Or codex, gemini, opencode, pi, qwen.' },
    ...agentClis.map(({ name, title, setting, file }) => ({
      name: title,
      text: setting(url),
      ...(name === 'claude' ? { note: toolSearch } : {}),
      ...(file === undefined ? {} : { note: `In ${file}.` }),
    })),
    { name: 'OpenAI SDK', text: `OPENAI_BASE_URL=${url}/v1`, note: 'Chat Completions and Responses.' },
    { name: 'Anthropic SDK', text: `ANTHROPIC_BASE_URL=${url}` },
    { name: 'Gemini SDK', text: `httpOptions: { baseUrl: '${url}' }`, note: 'An option of GoogleGenAI.' },
  ];
}

/**
 * Returns the upstream of each provider that a client uses: an upstream that is configured, else the user's base URL unless it is on a host in
 * `ignored`, else the default.
 */
export function upstreamsOf(
  plan: ClientPlan,
  configured: UpstreamUrls,
  defaults: UpstreamUrls,
  ignored: readonly string[],
): Partial<UpstreamUrls> {
  return Object.fromEntries(
    Object.entries(plan.providers).map(([key, url]) => {
      const provider = key as keyof UpstreamUrls;
      const isConfigured = configured[provider] !== defaults[provider];
      const isUsable =
        url !== undefined &&
        URL.canParse(url) &&
        !ignored.includes(new URL(url).host) &&
        !url.includes('/_leporello/');
      return [provider, isConfigured || !isUsable ? configured[provider] : url];
    }),
  );
}

function variable(env: Environment, name: string): readonly PlacedUrl[] {
  const url = env[name];
  return url ? [{ where: name, url }] : [];
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && !['', '0', 'false', 'no', 'off'].includes(value.toLowerCase());
}
