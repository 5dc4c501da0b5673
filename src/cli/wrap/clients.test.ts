import { describe, expect, it } from 'vitest';
import {
  type AgentCliName,
  agentCliNamed,
  agentClis,
  clientHelp,
  clientSnippets,
  upstreamsOf,
} from './clients.ts';
import { defaultUpstreams as defaults } from '../../gateway/routing/routes.ts';

const url = 'http://127.0.0.1:8787';

/** Plans a run with these variables and files. */
function planned(
  name: AgentCliName,
  env: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
  rest: readonly string[] = [],
) {
  const plan = agentCliNamed(name).plan({
    env,
    rest,
    home: '/home/ada',
    cwd: '/project',
    read: (path) => files[path.replaceAll('\\', '/')],
  });
  const { connect, ...others } = plan;
  return {
    ...others,
    ...connect(url),
    upstreams: upstreamsOf(plan, defaults, defaults, ['127.0.0.1:8787']),
  };
}

describe('a client', () => {
  it('gets its base URL in its own way', () => {
    const keys = { ANTHROPIC_API_KEY: 'k', GEMINI_API_KEY: 'k' };
    const connections = agentClis.map(({ name }) => {
      const { env, args } = planned(name, keys);
      return [name, env, args.map((arg) => arg.replace(/.*\/(?=pi-ext)/, ''))];
    });
    expect(connections).toEqual([
      ['claude', { ANTHROPIC_BASE_URL: url, ENABLE_TOOL_SEARCH: 'true' }, []],
      ['codex', {}, ['-c', `openai_base_url="${url}/v1"`]],
      ['gemini', { GOOGLE_GEMINI_BASE_URL: url }, []],
      [
        'opencode',
        {
          OPENCODE_CONFIG_CONTENT: JSON.stringify({
            provider: {
              anthropic: { options: { baseURL: `${url}/v1` } },
              google: { options: { baseURL: `${url}/v1beta` } },
            },
          }),
        },
        [],
      ],
      ['pi', { PI_LEPORELLO_URL: url }, ['--extension', 'pi-extension.ts']],
      ['qwen', { OPENAI_BASE_URL: `${url}/v1`, DASHSCOPE_PROXY_BASE_URL: `${url}/v1` }, []],
    ]);
  });

  it('is named in the text at the start of the gateway', () => {
    const text = clientHelp(url, (words) => `leporello ${words}`);
    for (const { title, name, setting, file } of agentClis) {
      expect(text).toContain(name);
      const place = file === undefined ? '' : ` in ${file}`;
      expect(text).toContain(`  ${title.padEnd(14)}  ${setting(url)}${place}\n`);
    }
  });

  it('can be copied from the page into its settings file as it is', () => {
    const base = `${url}/v1`;
    const copied = clientSnippets(url, 'leporello wrap claude').filter(({ note }) => note?.startsWith('In '));
    expect(copied).toEqual([
      { name: 'Codex', text: `openai_base_url = "${base}"`, note: 'In ~/.codex/config.toml.' },
      { name: 'opencode', text: expect.any(String) as string, note: 'In opencode.json.' },
      { name: 'pi', text: expect.any(String) as string, note: 'In ~/.pi/agent/models.json.' },
    ]);
    expect(copied.slice(1).map(({ text }) => JSON.parse(text) as unknown)).toEqual([
      { provider: { anthropic: { options: { baseURL: base } } } },
      { providers: { anthropic: { baseUrl: url } } },
    ]);
  });
});

describe('Claude Code', () => {
  const file = '/home/ada/.claude/settings.json';

  it('gets a settings flag where a settings file sets a base URL, which is stronger than the variable', () => {
    const set = JSON.stringify({ env: { ANTHROPIC_BASE_URL: 'https://proxy.example' } });
    expect(planned('claude', { ANTHROPIC_BASE_URL: 'https://other.example' }, { [file]: set })).toMatchObject(
      {
        baseUrls: [
          { where: file, url: 'https://proxy.example' },
          { where: 'ANTHROPIC_BASE_URL', url: 'https://other.example' },
        ],
        upstreams: { anthropic: 'https://proxy.example' },
        args: [
          '--settings',
          JSON.stringify({ env: { ANTHROPIC_BASE_URL: url, ENABLE_TOOL_SEARCH: 'true' } }),
        ],
      },
    );
  });

  it('keeps a tool search setting of the user', () => {
    expect(planned('claude', { ENABLE_TOOL_SEARCH: 'auto:5' }).env).toEqual({ ANTHROPIC_BASE_URL: url });
    const set = { ANTHROPIC_BASE_URL: 'https://proxy.example', ENABLE_TOOL_SEARCH: 'false' };
    expect(planned('claude', {}, { [file]: JSON.stringify({ env: set }) })).toMatchObject({
      env: { ANTHROPIC_BASE_URL: url },
      args: ['--settings', JSON.stringify({ env: { ANTHROPIC_BASE_URL: url } })],
    });
  });

  it('starts unchanged with another cloud', () => {
    const past = 'is set, so Claude Code calls a cloud provider whose requests Leporello cannot serve';
    expect(planned('claude', { CLAUDE_CODE_USE_BEDROCK: '1' }).past).toBe(`CLAUDE_CODE_USE_BEDROCK ${past}`);
    expect(planned('claude', {}, { [file]: '{"env":{"CLAUDE_CODE_USE_VERTEX":"true"}}' }).past).toBe(
      `CLAUDE_CODE_USE_VERTEX ${past}`,
    );
    expect(planned('claude', { CLAUDE_CODE_USE_BEDROCK: '0' }).past).toBeUndefined();
  });
});

describe('Codex', () => {
  const auth = '/home/ada/.codex/auth.json';
  const config = '/home/ada/.codex/config.toml';

  it('is connected with an API key and with a ChatGPT login', () => {
    const login = '{"OPENAI_API_KEY": null, "tokens": {"access_token": "t"}}';
    for (const files of [{}, { [auth]: login }]) {
      const { past, args } = planned('codex', {}, files);
      expect({ past, args }).toEqual({ past: undefined, args: ['-c', `openai_base_url="${url}/v1"`] });
    }
  });

  it('has the base URL of its own provider replaced', () => {
    const toml = `model_provider = "mine" # a comment
[model_providers.mine]
base_url = "https://models.example/v1"
wire_api = "responses"
`;
    expect(planned('codex', {}, { [config]: toml })).toMatchObject({
      args: ['-c', `model_providers.mine.base_url="${url}/v1"`],
      upstreams: { openai: 'https://models.example/v1' },
      baseUrls: [{ where: config, url: 'https://models.example/v1' }],
    });
  });

  it('has the base URL of the provider of its profile replaced', () => {
    const toml = `profile = "work"
model_provider = "openai"
[profiles.work]
model_provider = "azure"
[profiles.home]
model = "small"
[model_providers.azure]
base_url = "https://azure.example/v1"
`;
    const key = (rest: readonly string[]) => {
      const { args, upstreams } = planned('codex', {}, { [config]: toml }, rest);
      return [args[1]?.split('=')[0], upstreams.openai];
    };
    const azure = ['model_providers.azure.base_url', 'https://azure.example/v1'];
    const own = ['openai_base_url', defaults.openai];
    expect([[], ['exec', '-p', 'work', 'fix it'], ['--profile=work']].map(key)).toEqual([
      azure,
      azure,
      azure,
    ]);
    expect(
      [
        ['-p', 'home'],
        ['--profile', 'home'],
      ].map(key),
    ).toEqual([own, own]);
  });

  it('reads another folder, if a variable names one', () => {
    const files = { '/codex/config.toml': `openai_base_url = 'https://proxy.example/v1'` };
    expect(planned('codex', { CODEX_HOME: '/codex' }, files).upstreams).toEqual({
      openai: 'https://proxy.example/v1',
    });
  });
});

describe('other clients', () => {
  it('start unchanged with logins that use no base URL', () => {
    const login = (selectedType: string) => JSON.stringify({ security: { auth: { selectedType } } });
    expect(
      planned('gemini', {}, { '/home/ada/.gemini/settings.json': login('oauth-personal') }).past,
    ).toMatch(/^Gemini CLI is logged in with oauth-personal/);
    expect(
      planned('gemini', {}, { '/home/ada/.gemini/settings.json': login('gemini-api-key') }).past,
    ).toBeUndefined();
    expect(planned('qwen', {}, { '/home/ada/.qwen/settings.json': login('qwen-oauth') }).past).toMatch(
      /^Qwen Code is logged in with qwen-oauth/,
    );
    expect(planned('opencode').past).toMatch(/^opencode has no API key/);
  });

  it('keep the rest of an inline configuration of opencode, and read comments', () => {
    const inline = '{"model": "openai/gpt-5", "provider": {"openai": {"options": {"timeout": 1}}}}';
    const file = '/project/opencode.jsonc';
    const commented = `{ // mine
      "provider": { "openai": { "options": { "baseURL": "https://a.example/v1", } } } }`;
    const { env, upstreams } = planned(
      'opencode',
      { OPENCODE_CONFIG_CONTENT: inline },
      { [file]: commented },
    );
    expect(JSON.parse(env['OPENCODE_CONFIG_CONTENT']!)).toEqual({
      model: 'openai/gpt-5',
      provider: { openai: { options: { timeout: 1, baseURL: `${url}/v1` } } },
    });
    expect(upstreams).toEqual({ openai: 'https://a.example/v1' });
  });

  it('keep their own upstream', () => {
    const models = '{"providers": {"anthropic": {"baseUrl": "https://a.example"}}}';
    expect(planned('pi', {}, { '/home/ada/.pi/agent/models.json': models }).upstreams).toEqual({
      ...defaults,
      anthropic: 'https://a.example',
    });
    expect(planned('qwen')).toMatchObject({
      upstreams: { openai: 'https://dashscope.aliyuncs.com/compatible-mode/v1' },
    });
    expect(planned('qwen', { OPENAI_BASE_URL: 'https://models.example/v1' })).toMatchObject({
      env: { OPENAI_BASE_URL: `${url}/v1` },
      upstreams: { openai: 'https://models.example/v1' },
    });
  });
});

describe('upstreamsOf', () => {
  it('takes what is configured first, and never the gateway itself', () => {
    const plan = agentCliNamed('gemini').plan({
      env: { GOOGLE_GEMINI_BASE_URL: 'https://a.example' },
      home: '/h',
      cwd: '/c',
      read: () => undefined,
    });
    const configured = { ...defaults, gemini: 'https://b.example' };
    expect(upstreamsOf(plan, configured, defaults, [])).toEqual({ gemini: 'https://b.example' });
    expect(upstreamsOf(plan, defaults, defaults, ['a.example'])).toEqual({ gemini: defaults.gemini });
  });
});
