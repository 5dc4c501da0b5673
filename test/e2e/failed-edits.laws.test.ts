/**
 * Runs a coding agent whose first edit fails, because the file that it must quote was folded: the gateway adds the folded lines to the failed
 * result, the scripted model quotes them, and the second edit succeeds. In four wire formats, plain and streamed.
 */
import { describe, expect, it } from 'vitest';
import type { ScriptFormat, ScriptRequest, Turn } from '../support/fake-provider/script.ts';
import { startStack } from './stack.ts';

const path = 'src/clock.ts';
const line = (at: number) => `  const tick${at} = start + ${at * 7919};`;
const file = Array.from({ length: 60 }, (_, at) => line(at)).join('\n');
const listed = file
  .split('\n')
  .map((text, at) => `${String(at + 1).padStart(6)}→${text}`)
  .join('\n');
const log = (step: number) =>
  Array.from({ length: 120 }, (_, at) => `job ${step}: part ${at} took ${(at * 37 + step) % 101} ms`).join(
    '\n',
  );

/** The number of calls before the edit, and the line that it changes. */
const runs = 8;
const edited = 41;

type Call = { readonly name: string; readonly args: Readonly<Record<string, unknown>> };

/** A model that reads the file, runs jobs, edits the file from memory, and then edits it with a line that it sees. */
function agent() {
  const calls: Call[] = [];
  const script = ({ body }: ScriptRequest): Turn => {
    const text = JSON.stringify(body);
    const seen = /( {2}const tick41 = start \+ \d+;)/.exec(text)?.[1];
    const edit = (old: string): Call => ({
      name: 'edit',
      args: { file_path: path, old_string: old, new_string: '  const tick41 = start;' },
    });
    const call =
      calls.length === 0
        ? { name: 'read_file', args: { file_path: path } }
        : calls.length <= runs
          ? { name: 'run', args: { job: calls.length } }
          : calls.length === runs + 1
            ? edit('const tick40 = start + 1;\nconst tick41 = start + 2;\nconst tick42 = start + 3;')
            : calls.length === runs + 2
              ? edit(seen ?? 'nothing seen')
              : { name: 'run', args: { job: calls.length } };
    calls.push(call);
    const id = `call_${calls.length}`;
    return { type: 'turn', parts: [{ type: 'tool-call', id, name: call.name, arguments: call.args }] };
  };
  return { script, calls };
}

/** Answers a call as the client does. */
function resultOf({ name, args }: Call, step: number): string {
  if (name === 'read_file') return listed;
  if (name === 'run') return log(step);
  const { old_string: old } = args as { old_string: string };
  return file.includes(old)
    ? 'The file was updated.'
    : `String to replace not found in file.\nString: ${old}`;
}

const parameters = { type: 'object', properties: {} };
const names = ['read_file', 'run', 'edit'];
const task = 'Mend the clock.';

type Wire = {
  readonly path: (streaming: boolean) => string;
  readonly step: (id: string, call: Call, result: string) => readonly object[];
  readonly body: (messages: readonly object[], stream: boolean) => object;
  readonly list: string;
};

const wires: Readonly<Record<ScriptFormat, Wire>> = {
  chat: {
    path: () => '/v1/chat/completions',
    step: (id, { name, args }, result) => [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
      },
      { role: 'tool', tool_call_id: id, content: result },
    ],
    body: (messages, stream) => ({
      model: 'gpt-4o',
      stream,
      tools: names.map((name) => ({ type: 'function', function: { name, parameters } })),
      messages: [{ role: 'user', content: task }, ...messages],
    }),
    list: 'messages',
  },
  responses: {
    path: () => '/v1/responses',
    step: (id, { name, args }, output) => [
      { type: 'function_call', call_id: id, name, arguments: JSON.stringify(args) },
      { type: 'function_call_output', call_id: id, output },
    ],
    body: (messages, stream) => ({
      model: 'gpt-4o',
      stream,
      store: false,
      tools: names.map((name) => ({ type: 'function', name, parameters, strict: false })),
      input: [{ type: 'message', role: 'user', content: task }, ...messages],
    }),
    list: 'input',
  },
  messages: {
    path: () => '/v1/messages',
    step: (id, { name, args }, content) => [
      { role: 'assistant', content: [{ type: 'tool_use', id, name, input: args }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] },
    ],
    body: (messages, stream) => ({
      model: 'claude-sonnet-4-5',
      stream,
      max_tokens: 1_024,
      tools: names.map((name) => ({ name, input_schema: parameters })),
      messages: [{ role: 'user', content: task }, ...messages],
    }),
    list: 'messages',
  },
  gemini: {
    path: (streaming) =>
      `/v1beta/models/gemini-2.5-pro:${streaming ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    step: (id, { name, args }, output) => [
      { role: 'model', parts: [{ functionCall: { id, name, args } }] },
      { role: 'user', parts: [{ functionResponse: { id, name, response: { output } } }] },
    ],
    body: (messages) => ({
      tools: [{ functionDeclarations: names.map((name) => ({ name, parametersJsonSchema: parameters })) }],
      contents: [{ role: 'user', parts: [{ text: task }] }, ...messages],
    }),
    list: 'contents',
  },
};

const note = `[Lines 38-60 of ${path} as last shown. They were folded when the edit was made:`;

describe.each(Object.keys(wires) as ScriptFormat[])(
  'An agent whose edit fails after a fold, in %s',
  (format) => {
    it.each([
      ['plain', false],
      ['streamed', true],
    ])('gets the folded lines and succeeds at once: %s', async (_, streaming) => {
      const wire = wires[format];
      const { script, calls } = agent();
      await using stack = await startStack(
        script,
        { triggers: { tokenBudget: { triggerTokens: 7_000, targetTokens: 3_000 } }, calibration: false },
        { secret: new Uint8Array(32).fill(5) },
      );
      const messages: object[] = [];
      const results: string[] = [];
      for (let step = 1; step <= runs + 4; step++) {
        const response = await fetch(stack.url + wire.path(streaming), {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
          body: JSON.stringify(wire.body(messages, streaming)),
        });
        const text = await response.text();
        expect([response.status, text.slice(0, 300)]).toEqual([200, text.slice(0, 300)]);
        const call = calls[step - 1]!;
        results.push(resultOf(call, step));
        messages.push(...wire.step(`call_${step}`, call, results.at(-1)!));
      }
      expect(results.slice(runs + 1, runs + 3).map((text) => text.split('\n')[0])).toEqual([
        'String to replace not found in file.',
        'The file was updated.',
      ]);
      expect(calls[runs + 2]!.args).toMatchObject({ old_string: line(edited) });

      const sent = stack.provider.requests.map(({ body }) => new TextDecoder().decode(body));
      // The lines were not in the request in which the edit was made, and stay in all later ones, in the same bytes.
      expect(sent[runs + 1]!.includes(line(edited))).toBe(false);
      const repaired = sent.slice(runs + 2).map((text) => {
        const { [wire.list]: list } = JSON.parse(text) as Record<string, readonly unknown[]>;
        return list!.map((message) => JSON.stringify(message)).find((message) => message.includes(note));
      });
      expect(repaired.length).toBe(2);
      expect(repaired[0]?.includes(line(edited))).toBe(true);
      const unmarked = repaired.map((text) => text?.replaceAll(/,"cache_control":\{[^}]*\}/g, ''));
      expect(new Set(unmarked).size).toBe(1);
    });
  },
);
