/**
 * Runs the real LiteLLM proxy with its guardrail `headroom`, which calls `/v1/compress` and `/v1/retrieve` of a gateway. Installs it from PyPI once,
 * which needs python3 with venv.
 */
import { once } from 'node:events';
import { installPeer, liteLlm, liteLlmVersion, startPeer } from '../../bench/peers/peers.ts';
import { startStack } from '../e2e/stack.ts';
import type { Script } from '../support/fake-provider/script.ts';
import { reactorLog, readsLogs } from '../support/reactor-logs.ts';

type GuardrailResult = { readonly check: string; readonly passed: boolean };

/** Plays one conversation through the proxy, plain and streamed. Rejects if the proxy cannot be installed or started. */
export async function playGuardrail(): Promise<readonly GuardrailResult[]> {
  await using stack = await startStack(script, {
    triggers: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } },
  });
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
      const kind = stream ? 'streamed' : 'plain';
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
    const exited = once(proxy.child, 'exit');
    proxy.child.kill('SIGKILL');
    await exited;
  }
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
