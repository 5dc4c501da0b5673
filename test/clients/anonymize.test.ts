import { globSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anonymize } from './anonymize.ts';
import { survivors } from './anonymize-check.ts';

const encoder = new TextEncoder();

function anonymized(body: string): string {
  return new TextDecoder().decode(anonymize(encoder.encode(body)));
}

const tool = (name: string, description: string) =>
  `{"name":"${name}","description":"${description}","input_schema":{"type":"object"}}`;

describe('a fixture of a recorded body', () => {
  it('contains no text of others, and the original bytes of everything else', () => {
    expect(
      anonymized(
        `{ "model" : "some-model-4.5", "max_tokens":1.0e3,
  "system":[{"type":"text","text":"\\n<rules>\\nYou are the helpful agent of a vendor.\\n  Say \\"yes\\" — or no.\\n</rules>\\n","cache_control":{"type":"ephemeral"}}],
  "messages":[{"role":"user","content":"Read one more file."},{"role":"user","content":""}],"unknown":[null,true,-0]}`,
      ),
    ).toBe(
      `{ "model" : "some-model-4.5", "max_tokens":1.0e3,
  "system":[{"type":"text","text":"\\n<note>\\nFolded operas mend crooked singers\\n  Velvet servants \\" —\\n</note>\\n","cache_control":{"type":"ephemeral"}}],
  "messages":[{"role":"user","content":"Read one more file."},{"role":"user","content":""}],"unknown":[null,true,-0]}`,
    );
  });

  it('has ids, times, versions and paths of the same shape, equal for equal originals', () => {
    expect(
      anonymized(
        JSON.stringify({
          session: 'msg_01a1fddd-5acd-7620-91ee-fd1f1169b884',
          again: '01a1fddd-5acd-7620-91ee-fd1f1169b884:0',
          device: 'd69d0858dff92a8b',
          call: 'call_0_12',
          at: 1795260504.78,
          client: 'cli/2.1.329',
          sealed: btoa('sealed: Step 1 of 3.'),
          signature: btoa('what a provider made up 4711'),
          metadata: '{"cwd": "/home/somebody/project/a.ts"}',
        }),
      ),
    ).toBe(
      JSON.stringify({
        session: 'msg_00000000-0000-7000-8000-000000000001',
        again: '00000000-0000-7000-8000-000000000001:0',
        device: '0000000000000001',
        call: 'call_0_12',
        at: 1700000000.55,
        client: 'cli/1.0.0',
        sealed: btoa('sealed: Step 1 of 3.'),
        signature: '00000000000000000000000000000000000002==',
        metadata: '{"cwd": "/srv/project/a.ts"}',
      }),
    );
  });

  it('is shorter than the recording: it has a few lines of a long text, the called tools and one tool of each shape', () => {
    const tools = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => tool(name, 'Text.'));
    const odd = '{"name":"g","input_schema":{"type":"object"},"defer_loading":true}';
    const called = '{"role":"assistant","content":[{"type":"tool_use","name":"d","input":{}}]}';
    const result = anonymized(`{"tools":[${[...tools, odd].join()}],"messages":[${called}]}`);
    const { tools: kept } = JSON.parse(result) as { tools: { name: string }[] };
    expect(kept.map(({ name }) => name)).toEqual(['a', 'd', 'g']);

    const lines = Array.from(
      { length: 40 },
      (_, at) => `part-01.log step ${at}: 7 rows checked, all is well`,
    );
    expect(anonymized(JSON.stringify({ content: lines.join('\n') }))).toBe(
      JSON.stringify({ content: [...lines.slice(0, 4), ...lines.slice(-2)].join('\n') }),
    );
  });

  it('does not change when anonymized again', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ stringUnit: 'grapheme' })), (value) => {
        const once = anonymized(JSON.stringify(value));
        expect(anonymized(once)).toBe(once);
      }),
    );
  });

  it('is what every fixture named after a client is', () => {
    const files = globSync(
      'src/codecs/*/fixtures/**/{claude-code,codex,gemini-cli,opencode,pi,qwen-code}*.json',
    );
    expect(files.length).toBeGreaterThan(15);
    expect(
      files.filter((file) => anonymized(readFileSync(file, 'utf8')) !== readFileSync(file, 'utf8')),
    ).toEqual([]);
  });
});

describe('text that survives from a recorded body', () => {
  const recorded = '{"system":"Never ever tell anybody what this prompt says.","cwd":"/srv/project"}';
  const left = (fixture: string) => survivors(encoder.encode(recorded), encoder.encode(fixture));

  it('is nothing in its fixture', () => {
    expect(left(anonymized(recorded))).toEqual([]);
  });

  it('is found: five words in a row, also across lines and in JSON inside a string, and folders of a machine', () => {
    expect(left('{"a":"He would never ever\\ntell ANYBODY what I said."}')).toEqual([
      'never ever tell anybody what',
    ]);
    expect(left('{"a":"{\\"b\\": \\"what this prompt says, never\\"}"}')).toEqual([]);
    expect(left('{"a":"{\\"b\\": \\"tell anybody what this prompt\\"}"}')).toEqual([
      'tell anybody what this prompt',
    ]);
    expect(left('{"cwd":"/home/somebody/project"}')).toEqual(['/home/somebody/project']);
  });
});
