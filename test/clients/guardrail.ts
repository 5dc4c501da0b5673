/**
 * Runs real gateways of others beside ours: LiteLLM's proxy with its guardrail `headroom` and Portkey's with its webhook guardrail, which call `/v1/compress`, and the
 * proxies of LiteLLM and Portkey in front of and behind a gateway. Installs each once, from PyPI, which needs python3 with venv, and from npm.
 */
import { once } from 'node:events';
import {
  installPeer,
  liteLlm,
  liteLlmVersion,
  type Peer,
  peers,
  type RunningPeer,
  startPeer,
} from '../../bench/peers/peers.ts';
import { startStack } from '../e2e/stack.ts';
import { startFakeProvider } from '../support/fake-provider/fake-provider.ts';
import type { Script } from '../support/fake-provider/script.ts';
import { reactorLog, readsLogs } from '../support/reactor-logs.ts';

/** `passed` is undefined for what could not be played. */
type GuardrailResult = { readonly check: string; readonly passed: boolean | undefined };

const settings = { triggers: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } } };

/** Plays one conversation through LiteLLM's guardrail, plain and streamed. Rejects if the proxy cannot be installed or started. */
export async function playGuardrail(): Promise<readonly GuardrailResult[]> {
  await using stack = await startStack(script, settings);
  const parameters = { guardrail: 'headroom', mode: 'pre_call', default_on: true };
  const peer = liteLlm({
    version: liteLlmVersion,
    model: 'gpt-4o',
    guardrails: [
      {
        guardrail_name: 'leporello',
        litellm_params: { ...parameters, api_base: stack.url, api_key: 'dummy' },
      },
    ],
  });
  const failed = installPeer(peer);
  if (failed !== undefined) throw new Error(`LiteLLM is not installed: ${failed} failed.`);
  const proxy = await startPeer(peer, stack.provider.url);
  try {
    const results: GuardrailResult[] = [];
    for (const stream of [false, true]) {
      const response = await fetch(`${proxy.origin}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...peer.headers?.(stack.provider.url) },
        body: JSON.stringify({ model: 'gpt-4o', stream, messages: conversation }),
      });
      const answer = await response.text();
      const [asked = [], retrieved = []] = stack.provider.requests
        .slice(-2)
        .map(({ body }) => contentsIn(JSON.parse(new TextDecoder().decode(body))));
      const kind = `LiteLLM's guardrail, ${kindOf(stream)}`;
      results.push(
        {
          check: `${kind}: the model gets the first result as a stub`,
          passed: hashIn(asked) !== undefined && !asked.includes(reactorLog(0)),
        },
        { check: `${kind}: it gets the original back`, passed: retrieved.includes(reactorLog(0)) },
        { check: `${kind}: the client gets the answer`, passed: response.ok && answer.includes('reactor 0') },
      );
    }
    return results;
  } finally {
    await ended(proxy);
  }
}

/** Plays one conversation through Portkey, whose webhook guardrail asks our gateway. Portkey does not answer recalls, so there is none. */
export async function playWebhook(): Promise<readonly GuardrailResult[]> {
  const peer = peers.find(({ name }) => name === 'Portkey')!;
  const failed = installPeer(peer);
  if (failed !== undefined) throw new Error(`Portkey is not installed: ${failed} failed.`);
  await using stack = await startStack(
    () => ({ type: 'turn', parts: [{ type: 'text', text: 'The pump of reactor 0 is blocked.' }] }),
    settings,
  );
  const proxy = await startPeer(peer, stack.provider.url);
  try {
    const headers = JSON.stringify({ authorization: 'Bearer dummy' });
    const parameters = { webhookURL: `${stack.url}/v1/compress`, headers };
    const config = {
      provider: 'openai',
      api_key: 'dummy',
      custom_host: `${stack.provider.url}/v1`,
      before_request_hooks: [
        { type: 'guardrail', id: 'leporello', checks: [{ id: 'default.webhook', parameters }] },
      ],
    };
    const response = await fetch(`${proxy.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-portkey-config': JSON.stringify(config) },
      body: JSON.stringify({ model: 'gpt-4o', messages: conversation, tools: [readLog] }),
    });
    const answer = await response.text();
    const [sent] = stack.provider.requests.map(({ body }) =>
      contentsIn(JSON.parse(new TextDecoder().decode(body))),
    );
    const hash = hashIn(sent ?? []) ?? '';
    const original = await fetch(`${stack.url}/v1/retrieve/${hash}`, {
      headers: { authorization: 'Bearer dummy' },
    });
    const { original_content: content } = (await original.json()) as { readonly original_content?: string };
    const kind = `${nameOf(peer)}'s webhook guardrail, plain`;
    return [
      {
        check: `${kind}: the model gets old results as stubs`,
        passed: sent !== undefined && hash !== '' && !sent.includes(reactorLog(0)),
      },
      { check: `${kind}: the original is in reach`, passed: content === reactorLog(0) },
      { check: `${kind}: the client gets the answer`, passed: response.ok && answer.includes('reactor 0') },
    ];
  } finally {
    await ended(proxy);
  }
}

/** Plays one conversation through another gateway and ours, one behind the other, in both orders, plain and streamed. */
export async function playInARow(): Promise<readonly GuardrailResult[]> {
  const results: GuardrailResult[] = [];
  const inARow = [
    peers.find(({ name }) => name === 'Portkey')!,
    liteLlm({ version: liteLlmVersion, model: 'gpt-4o' }),
  ];
  for (const peer of inARow) {
    const failed = installPeer(peer);
    if (failed !== undefined) throw new Error(`${peer.name} is not installed: ${failed} failed.`);
    for (const stream of [false, true]) {
      const problem = await problemAlone(peer, stream);
      if (problem === undefined)
        results.push(await playBehind(peer, stream), await playInFront(peer, stream));
      else results.push({ check: `${nameOf(peer)}, ${kindOf(stream)}: ${problem}`, passed: undefined });
    }
  }
  return results;
}

/** Returns why the other gateway cannot answer even without ours; undefined if it does. */
async function problemAlone(peer: Peer, stream: boolean): Promise<string | undefined> {
  const provider = await startFakeProvider({ script: recalling });
  const other = await startPeer(peer, provider.url);
  try {
    const answer = await ask(other.origin, provider.url, peer, stream);
    return answer.includes('reactor')
      ? undefined
      : `it answers ${answer.slice(0, 100)}, also without our gateway`;
  } finally {
    await ended(other);
    await provider.close();
  }
}

function nameOf({ name, version }: Peer): string {
  return `${name} ${version}`;
}

function kindOf(stream: boolean): string {
  return stream ? 'streamed' : 'plain';
}

/** Our gateway is the provider of the other one. */
async function playBehind(peer: Peer, stream: boolean): Promise<GuardrailResult> {
  await using stack = await startStack(recalling, settings);
  const other = await startPeer(peer, stack.url);
  try {
    const answer = await ask(other.origin, stack.url, peer, stream);
    return rowResult(`our gateway behind ${nameOf(peer)}`, stream, answer, stack.provider.requests);
  } finally {
    await ended(other);
  }
}

/** The other gateway is the provider of ours. */
async function playInFront(peer: Peer, stream: boolean): Promise<GuardrailResult> {
  const provider = await startFakeProvider({ script: recalling });
  const other = await startPeer(peer, provider.url);
  try {
    await using stack = await startStack(recalling, settings, { upstreamUrl: other.origin });
    const answer = await ask(stack.url, provider.url, peer, stream);
    return rowResult(`our gateway in front of ${nameOf(peer)}`, stream, answer, provider.requests);
  } finally {
    await ended(other);
    await provider.close();
  }
}

async function ask(origin: string, upstream: string, peer: Peer, stream: boolean): Promise<string> {
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer dummy',
      ...peer.headers?.(upstream),
    },
    body: JSON.stringify({ model: 'gpt-4o', stream, messages: conversation, tools: [readLog] }),
  });
  return response.text();
}

const readLog = { type: 'function', function: { name: 'read_log', parameters: { type: 'object' } } };

function rowResult(
  check: string,
  stream: boolean,
  answer: string,
  requests: readonly { readonly body: Uint8Array }[],
): GuardrailResult {
  const sent = requests
    .filter(({ body }) => body.length > 0)
    .map(({ body }) => contentsIn(JSON.parse(new TextDecoder().decode(body))));
  const [asked = [], retrieved = []] = sent;
  const isFolded = memoryIn(asked) !== undefined && !asked.includes(reactorLog(0));
  // A stream has the answer in pieces.
  const isAnswered = /reactor/.test(answer) && !answer.includes('read_memory');
  return {
    check: `${check}, ${kindOf(stream)}: a fold, a hidden recall and the answer`,
    passed: isFolded && retrieved.includes(reactorLog(0)) && isAnswered && sent.length === 2,
  };
}

/** Reads the first folded result back, and then says what it holds. */
const recalling: Script = ({ body }) => {
  const contents = contentsIn(body);
  const id = memoryIn(contents);
  if (id === undefined || contents.includes(reactorLog(0)))
    return {
      type: 'turn',
      chunkSize: 100,
      parts: [{ type: 'text', text: 'The pump of reactor 0 is blocked.' }],
    };
  return { type: 'turn', parts: [{ type: 'tool-call', name: 'read_memory', arguments: { id } }] };
};

/** Returns the id in the first stub of a result. */
function memoryIn(contents: readonly string[]): string | undefined {
  return contents.map((text) => /^\[Folded.*"(mem_[a-z0-9]{16})"/.exec(text)?.[1]).find(Boolean);
}

async function ended({ child }: RunningPeer): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Returns the texts of the messages of a request. */
function contentsIn({ messages }: { readonly messages?: unknown }): readonly string[] {
  return (messages as readonly { readonly content?: unknown }[]).map(({ content }) =>
    typeof content === 'string' ? content : '',
  );
}

/** Returns the first hash that a stub names. */
function hashIn(contents: readonly string[]): string | undefined {
  return contents
    .map((text) => /headroom_retrieve \{"hash":"([0-9a-f]{20})"\}/.exec(text)?.[1])
    .find(Boolean);
}

/** The messages of 12 steps, an answer, and a question about the first result. */
const conversation = [
  ...readsLogs(12),
  { role: 'assistant', content: 'I have read twelve logs.' },
  { role: 'user', content: 'What did the first log say?' },
];

/** Asks for the first folded result, and then says what it holds. */
const script: Script = ({ body }) => {
  const contents = contentsIn(body);
  const hash = hashIn(contents);
  if (hash === undefined || contents.at(-1) === reactorLog(0))
    return { type: 'turn', parts: [{ type: 'text', text: 'The pump of reactor 0 is blocked.' }] };
  return {
    type: 'turn',
    parts: [{ type: 'tool-call', id: 'retrieve-1', name: 'headroom_retrieve', arguments: { hash } }],
  };
};
