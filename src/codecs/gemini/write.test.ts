import { describe, expect, it } from 'vitest';
import type { ModelReply } from '../codec.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import { gemini } from './index.ts';

const encoder = new TextEncoder();
const recallTool = {
  name: 'read_memory',
  description: 'Reads.',
  parameters: {
    type: 'object',
    properties: {
      id: { type: 'string', description: 'Id' },
      lines: { type: 'array', items: { type: 'string', minLength: 1 } },
    },
    required: ['id'],
    additionalProperties: false,
  },
};

const body = (tools: string) => `{"contents":[],"tools":${tools}}`;
const withTool = (tools: string) => shown(gemini.write(view(gemini, body(tools)), [], { recallTool }));

describe('the recall tool', () => {
  const plain =
    '{"name":"read_memory","description":"Reads.","parametersJsonSchema":{"type":"object","properties":{"id":{"type":"string","description":"Id"},"lines":{"type":"array","items":{"type":"string","minLength":1}}},"required":["id"],"additionalProperties":false}}';
  const schema =
    '{"name":"read_memory","description":"Reads.","parameters":{"type":"OBJECT","properties":{"id":{"type":"STRING","description":"Id"},"lines":{"type":"ARRAY","items":{"type":"STRING"}}},"required":["id"]}}';

  it('is spelled as the client spells its own', () => {
    expect(withTool('[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]}]')).toBe(
      body(`[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}},${plain}]}]`),
    );
    expect(withTool('[{"functionDeclarations":[{"name":"f","parameters":{}}]}]')).toBe(
      body(`[{"functionDeclarations":[{"name":"f","parameters":{}},${schema}]}]`),
    );
    expect(withTool('[{"function_declarations":[{"name":"f"}]}]')).toBe(
      body(`[{"function_declarations":[{"name":"f"},${schema}]}]`),
    );
  });

  it('is added to the last list of functions, whatever other tools there are', () => {
    expect(
      withTool(
        '[{"functionDeclarations":[{"name":"f"}]},{"functionDeclarations":[{"name":"g"}],"urlContext":{}},{"googleSearch":{}}]',
      ),
    ).toBe(
      body(
        `[{"functionDeclarations":[{"name":"f"}]},{"functionDeclarations":[{"name":"g"},${schema}],"urlContext":{}},{"googleSearch":{}}]`,
      ),
    );
    expect(withTool('{"functionDeclarations":[ {"name":"f"} ]}')).toBe(
      body(`{"functionDeclarations":[ {"name":"f"},${schema} ]}`),
    );
  });

  it('is not added to a request with only tools of the provider', () => {
    expect(() => withTool('[{"googleSearch":{}}]')).toThrow(expect.objectContaining({ code: 'bad-edit' }));
  });
});

describe('the next request after a recall', () => {
  const sent = encoder.encode('{"contents":[{"parts":[{"text":"a"}],"role":"user"}],"tools":[]}');
  const after = (content: string) => {
    const response = `{"candidates":[{"content":${content},"finishReason":"STOP"}]}`;
    const reply: ModelReply = gemini.readResponse(encoder.encode(response), new Set(['read_memory']));
    return shown(
      gemini.continueWith(
        sent,
        reply,
        reply.recalls.map((call) => ({ call, text: `of ${call.id}` })),
      ),
    );
  };

  it('keeps signatures, and answers with the ids the calls had', () => {
    const content =
      '{"parts":[{"text":"hm","thought":true},{"functionCall":{"name":"read_memory","args":{"id":"m"},"id":"c7"},"thoughtSignature":"s"}],"role":"model"}';
    expect(after(content)).toBe(
      `{"contents":[{"parts":[{"text":"a"}],"role":"user"},${content},{"role":"user","parts":[{"functionResponse":{"id":"c7","name":"read_memory","response":{"output":"of c7"}}}]}],"tools":[]}`,
    );
  });

  it('writes no id when the call had none, and adds a missing role', () => {
    expect(
      after('{"parts":[{"functionCall":{"name":"read_memory"}},{"functionCall":{"name":"read_memory"}}]}'),
    ).toBe(
      '{"contents":[{"parts":[{"text":"a"}],"role":"user"},{"parts":[{"functionCall":{"name":"read_memory"}},{"functionCall":{"name":"read_memory"}}],"role":"model"},{"role":"user","parts":[{"functionResponse":{"name":"read_memory","response":{"output":"of #0"}}},{"functionResponse":{"name":"read_memory","response":{"output":"of #1"}}}]}],"tools":[]}',
    );
  });
});
