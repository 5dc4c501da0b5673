import { describe, expect, it } from 'vitest';
import type { ScriptRequest, Turn } from '../support/fake-provider/script.ts';
import { type AgentOptions, type Run, runAnthropic, runOpenai, runResponses } from './agent.ts';
import { masked } from './replies.ts';
import { startStack } from './stack.ts';
import { stubIdsIn } from '../support/stub-texts.ts';

const files = ['a.log', 'b.log', 'c.log', 'd.log', 'e.log', 'f.log', 'g.log', 'h.log', 'i.log', 'j.log'];

/** Returns about 1,500 tokens of log lines, one with a secret. */
const contentOf = (path: string) =>
  Array.from(
    { length: 120 },
    (_, at) =>
      `${path} ${at}: ${at === 77 ? `the secret of ${path} is ${path.length * 1_111}` : 'all is well'}\n`,
  ).join('');

/** A model that reads all files one after the other, recalls the first, then answers. */
function script({ body }: ScriptRequest): Turn {
  const text = JSON.stringify(body);
  const results = text.match(/"tool_result"|"role":"tool"|"function_call_output"/g)?.length ?? 0;
  const next = files[results];
  if (next !== undefined) {
    return {
      type: 'turn',
      parts: [
        { type: 'text', text: `I read ${next}.` },
        { type: 'tool-call', id: `call_${results}`, name: 'read_file', arguments: { path: next } },
      ],
    };
  }
  const id = stubIdsIn(text)[0];
  if (id !== undefined && !text.includes('the secret of a.log')) {
    return {
      type: 'turn',
      parts: [
        { type: 'text', text: 'Let me look again. ' },
        {
          type: 'tool-call',
          id: 'recall_0',
          name: 'read_memory',
          arguments: { id, query: 'secret of a.log' },
        },
      ],
    };
  }
  const secret = /the secret of a\.log is (\d+)/.exec(text)?.[1] ?? 'nowhere';
  return { type: 'turn', parts: [{ type: 'text', text: `The secret is ${secret}.` }] };
}

const clients: readonly [string, (options: AgentOptions) => Promise<Run>, string][] = [
  ['openai', runOpenai, 'gpt-4o'],
  ['openai (Responses)', runResponses, 'gpt-4o'],
  ['@anthropic-ai/sdk', runAnthropic, 'claude-sonnet-5'],
];

describe.each(clients)('the official %s client', (_, run, model) => {
  it.each([
    ['streaming', true, {}],
    ['not streaming', false, {}],
    ['streaming, with each body folded in a worker thread', true, { foldThreadBytes: 1 }],
  ] as const)('finishes a tool loop through folds and a private recall, %s', async (__, streaming, deps) => {
    await using stack = await startStack(script, { models: { '*': { windowTokens: 9_000 } } }, deps);
    const seen = await run({
      url: stack.url,
      model,
      streaming,
      task: 'Find the secret number.',
      runTool: (_name, input) => contentOf((input as { path: string }).path),
    });
    expect(seen.toolsRun).toEqual(files.map(() => 'read_file'));
    expect(seen.answer).toBe('Let me look again. The secret is 5555.');
    const bodies = stack.provider.requests.map((request) => new TextDecoder().decode(request.body));
    expect(bodies.length).toBe(files.length + 2);
    expect(bodies.at(-2)).not.toContain('the secret of a.log');
    expect(bodies.at(-1)).toContain('the secret of a.log');
  });

  it('continues after a restart of the gateway with the same prefix', async () => {
    await using stack = await startStack(script, { models: { '*': { windowTokens: 9_000 } } });
    const options: AgentOptions = {
      url: stack.url,
      model,
      streaming: true,
      task: 'Find the secret number.',
      runTool: (_name, input) => contentOf((input as { path: string }).path),
    };
    await run(options);
    const before = stack.provider.requests.length;
    await stack.restart();
    await run({ ...options, url: stack.url });
    // The provider numbers its items and returns them a second time.
    const bodies = stack.provider.requests.map((request) => masked(new TextDecoder().decode(request.body)));
    expect(bodies.slice(before).map((body, at) => body === bodies[at])).toEqual(
      bodies.slice(before).map(() => true),
    );
  });
});
