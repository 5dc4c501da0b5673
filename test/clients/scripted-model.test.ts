import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../support/fake-provider/script.ts';
import { scriptedModel } from './scripted-model.ts';
import { contentOf } from './secret-files.ts';

const [first, second] = ['part-01.log', 'part-02.log'] as const;
const [firstId, secondId] = ['mem_x1eeavef4r8q159x', 'mem_6v4k5n2k0khszaet'] as const;
const readMemory = (id: string, file: string) => ({ id, query: `secret of ${file}` });
const stub = (id: string) =>
  `[Folded result: 84 lines of the file as it was then. read_memory {"id":"${id}"} shows it]`;

const model = (...parts: readonly JsonObject[]) => ({ role: 'model', parts });
const user = (...parts: readonly JsonObject[]) => ({ role: 'user', parts });
const call = (id: string, name: string, args: JsonObject) => ({ functionCall: { id, args, name } });
const result = (id: string, name: string, output: string) => ({
  functionResponse: { name, response: { output }, id },
});

/** A request of Gemini CLI after a hidden recall of the first file: its stubs name no file, only the calls do. */
const contents = [
  user({ text: 'Read the log files and tell me their secrets.' }),
  model({ text: 'I read it.\n' }, call('call_1', 'read_file', { file_path: `/p/${first}` })),
  user(result('call_1', 'read_file', stub(firstId))),
  model({ text: 'I read it.\n' }, call('call_2', 'read_file', { file_path: `/p/${second}` })),
  user(result('call_2', 'read_file', stub(secondId))),
  model(call('call_3', 'read_memory', readMemory(firstId, first))),
  user(result('call_3', 'read_memory', contentOf(first, 100))),
];

/** Leaves out the ids of calls and results; those of originals are in arguments. */
function withoutIds(sent: unknown): unknown {
  return JSON.parse(JSON.stringify(sent), (key, value: unknown) =>
    key === 'id' && String(value).startsWith('call_') ? undefined : value,
  );
}

const tools = [
  {
    functionDeclarations: [
      { name: 'read_file', parametersJsonSchema: { properties: { file_path: { type: 'string' } } } },
    ],
  },
];

describe('scriptedModel', () => {
  // Gemini CLI sends the ids of calls back, pi and opencode do not.
  it.each([
    ['with ids', contents],
    ['without ids', withoutIds(contents)],
  ])('recalls the stub of the call that read the file in generateContent, %s', (_, sent) => {
    const { script } = scriptedModel([{ recall: second }], '/p', false);
    const turn = script({
      format: 'gemini',
      body: { contents: sent, tools },
      index: 0,
      model: 'gemini-3.8-flash',
      streaming: false,
      history: [],
    });
    expect(turn.parts.at(-1)).toEqual({
      type: 'tool-call',
      name: 'read_memory',
      arguments: readMemory(secondId, second),
    });
  });
});
