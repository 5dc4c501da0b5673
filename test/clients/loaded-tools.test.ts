/** Tests that a missing tool reference or call is found. */
import { describe, expect, it } from 'vitest';
import { loadProblems } from './loaded-tools.ts';

const tools = [
  { name: 'ToolSearch', input_schema: {} },
  { name: 'look_up', input_schema: {}, defer_loading: true },
];
const asked = {
  role: 'assistant',
  content: [{ type: 'tool_use', id: 'toolu_1', name: 'ToolSearch', input: {} }],
};
const loaded = {
  role: 'user',
  content: [
    {
      type: 'tool_result',
      tool_use_id: 'toolu_1',
      content: [{ type: 'tool_reference', tool_name: 'look_up' }],
    },
  ],
};
const first = { role: 'user', content: 'Look it up.' };

const body = (messages: readonly object[], offered: readonly object[] = tools) =>
  Buffer.from(JSON.stringify({ tools: offered, messages }));

describe('loadProblems', () => {
  it('finds nothing if the reference stays', () => {
    const complete = body([first, asked, loaded]);
    expect(loadProblems([body([first]), complete, complete])).toEqual([]);
  });

  it('requires the reference and its call in each later request', () => {
    expect(loadProblems([body([first, asked, loaded]), body([first])])).toEqual([
      'request 2 lacks the references of toolu_1',
      'request 2 lacks the call toolu_1',
    ]);
  });

  it('requires the reference byte for byte', () => {
    const spaced = body([first, asked, loaded])
      .toString()
      .replace('[{"type":"tool_reference"', '[ {"type":"tool_reference"');
    expect(loadProblems([body([first, asked, loaded]), Buffer.from(spaced)])).toEqual([
      'request 2 lacks the references of toolu_1',
      'request 2 spells toolu_1 in an unknown way',
    ]);
  });

  it('requires definitions of the tools that a request refers to', () => {
    const others = [tools[0]!, { name: 'Read', input_schema: {} }];
    expect(loadProblems([body([first, asked, loaded], others)])).toEqual([
      'request 1 refers to look_up and does not define it',
    ]);
  });

  it('fails if nothing was loaded', () => {
    expect(loadProblems([body([first])])).toEqual(['no request holds a tool_reference']);
  });
});
