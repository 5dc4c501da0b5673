/** Notes of the model: calls of `save_context` are answered here, and the notes stay in view after folds. */
import { GoogleGenAI, type Content, type Part } from '@google/genai';
import { describe, expect, it } from 'vitest';
import type { ScriptRequest, Turn, TurnPart } from '../support/fake-provider/script.ts';
import { type AgentOptions, type Run, runAnthropic, runOpenai, runResponses } from './agent.ts';
import { hasStub } from '../support/stub-texts.ts';
import { startStack } from './stack.ts';

const files = ['a.log', 'b.log', 'c.log', 'd.log', 'e.log', 'f.log', 'g.log', 'h.log', 'i.log', 'j.log'];

/** Returns about 1,500 tokens of log lines. */
const contentOf = (path: string) =>
  Array.from({ length: 120 }, (_, at) => `${path} ${at}: all is well\n`).join('');

const notes = ['The deadline is on Friday.', 'The build needs two cores.'] as const;
const save = (id: string, text: string): TurnPart => ({
  type: 'tool-call',
  id,
  name: 'save_context',
  arguments: { text },
});

/** A model that saves a note alone, reads all files, saves another note beside a call, and answers. */
function script({ body }: ScriptRequest): Turn {
  const text = JSON.stringify(body);
  const said = (...parts: readonly TurnPart[]): Turn => ({ type: 'turn', parts });
  if (!text.includes(notes[0])) return said({ type: 'text', text: 'I note it. ' }, save('n1', notes[0]));
  const next = files.find((file) => !text.includes(file));
  if (next === undefined) return said({ type: 'text', text: 'Done.' });
  const call: TurnPart = {
    type: 'tool-call',
    id: `call_${next}`,
    name: 'read_file',
    arguments: { path: next },
  };
  return next === 'c.log' ? said(save('n2', notes[1]), call) : said(call);
}

async function runGemini({ url, model, streaming, task, runTool }: AgentOptions): Promise<Run> {
  const client = new GoogleGenAI({ apiKey: 'dummy', httpOptions: { baseUrl: url } });
  const contents: Content[] = [{ role: 'user', parts: [{ text: task }] }];
  const toolsRun: string[] = [];
  const config = {
    tools: [
      {
        functionDeclarations: [
          {
            name: 'read_file',
            parametersJsonSchema: { type: 'object', properties: { path: { type: 'string' } } },
          },
        ],
      },
    ],
  };
  for (;;) {
    const parts: Part[] = [];
    if (streaming) {
      for await (const chunk of await client.models.generateContentStream({ model, contents, config }))
        parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
    } else {
      const reply = await client.models.generateContent({ model, contents, config });
      parts.push(...(reply.candidates?.[0]?.content?.parts ?? []));
    }
    contents.push({ role: 'model', parts });
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
    if (calls.length === 0)
      return { answer: parts.map(({ text = '' }) => text).join(''), toolsRun, outcomes: [], usage: [] };
    const results = calls.map(({ id, name, args }) => {
      toolsRun.push(name!);
      const response = { output: runTool(name!, args) };
      return { functionResponse: { ...(id !== undefined && { id }), name: name!, response } };
    });
    contents.push({ role: 'user', parts: results });
  }
}

const clients: readonly [string, (options: AgentOptions) => Promise<Run>, string][] = [
  ['openai', runOpenai, 'gpt-4o'],
  ['openai (Responses)', runResponses, 'gpt-4o'],
  ['@anthropic-ai/sdk', runAnthropic, 'claude-sonnet-5'],
  ['@google/genai', runGemini, 'gemini-2.5-flash'],
];

const settings = {
  models: { '*': { windowTokens: 9_000 } },
  offerRecall: 'always',
  offerNotes: true,
} as const;

describe.each(clients)('the official %s client', (_, run, model) => {
  it.each([
    ['streamed', true],
    ['plain', false],
  ])('sees no note, and the model sees all of them after folds, %s', async (__, streaming) => {
    await using stack = await startStack(script, settings);
    const seen = await run({
      url: stack.url,
      model,
      streaming,
      task: 'Read the logs.',
      runTool: (_name, input) => contentOf((input as { path: string }).path),
    });
    expect(seen.toolsRun).toEqual(files.map(() => 'read_file'));
    expect(seen.answer).toBe('Done.');
    const bodies = stack.provider.requests.map((request) => new TextDecoder().decode(request.body));
    const last = bodies.at(-1)!;
    expect(hasStub(last)).toBe(true);
    expect(last).not.toContain('a.log 5: all is well');
    for (const note of notes) expect(last).toContain(note);
    expect(last.split('Saved. The newest saved texts stay in view.').length - 1).toBe(notes.length);
    // The tool is offered in every request, so that the prefix never changes.
    expect(bodies.filter((body) => !body.includes('Keeps a text in view'))).toEqual([]);
  });
});

it("a client's own tool of that name is the client's when no notes are offered", async () => {
  await using stack = await startStack(() => ({ type: 'turn', parts: [save('n1', notes[0])] }), {
    offerRecall: 'always',
  });
  const response = await fetch(`${stack.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'gpt-4o',
      tools: [{ type: 'function', function: { name: 'save_context', parameters: { type: 'object' } } }],
      messages: [{ role: 'user', content: 'Note it.' }],
    }),
  });
  const sent = new TextDecoder().decode(stack.provider.requests[0]!.body);
  expect(sent).toContain('"name":"read_memory"');
  expect(await response.text()).toContain('"name":"save_context"');
});
