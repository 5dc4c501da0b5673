import { describe, expect, it } from 'vitest';
import { offeredTools, readingCall } from './offered-tools.ts';

const schema = { type: 'object', properties: { limit: {}, file_path: {} } };

describe('the tools that a request offers', () => {
  it.each([
    [
      'of Chat Completions',
      { tools: [{ type: 'function', function: { name: 'read', parameters: schema } }] },
    ],
    ['of Responses', { tools: [{ type: 'function', name: 'read', parameters: schema }] }],
    ['of Messages', { tools: [{ name: 'read', input_schema: schema }] }],
    [
      'of generateContent',
      { tools: [{ functionDeclarations: [{ name: 'read', parametersJsonSchema: schema }] }] },
    ],
  ])('are read with their properties: %s', (_, body) => {
    expect(offeredTools(body)).toEqual([
      { name: 'read', isFreeForm: false, properties: ['limit', 'file_path'] },
    ]);
  });

  it('are found in input items and in namespaces', () => {
    const namespace = { type: 'namespace', name: 'functions', tools: [{ type: 'custom', name: 'exec' }] };
    const body = { input: [{ type: 'additional_tools', tools: [namespace] }] };
    expect(offeredTools(body)).toEqual([{ name: 'exec', isFreeForm: true, properties: [] }]);
  });
});

describe('the call that reads a file', () => {
  it("uses the tool's own name and property", () => {
    const tools = offeredTools({ tools: [{ name: 'Bash' }, { name: 'Read', input_schema: schema }] });
    expect(readingCall(tools, '/a.log')).toEqual({
      type: 'tool-call',
      name: 'Read',
      arguments: '{"file_path": "/a.log"}',
    });
  });

  it('is undefined if no tool can read files', () => {
    expect(readingCall(offeredTools({ tools: [{ name: 'write' }] }), '/a.log')).toBeUndefined();
  });
});
