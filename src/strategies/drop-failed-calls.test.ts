import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Edit } from '../conversation/edit.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import {
  chatBody,
  chatMessages,
  freshReading,
  readChat,
  type Step,
} from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite, written } from '../../test/support/strategy-suite.ts';
import { dropFailedCalls } from './drop-messages.ts';
import { wordings } from './lib/no-such-tool.ts';

strategySuite(dropFailedCalls());

const tools = ['read_file'];
const good = { name: 'read_file', result: 'text' };
const bad = { name: 'open_file', result: "Error: tool 'open_file' not found. Available tools: read_file" };

/** The source of the wording, the called tool, and the result as the client sends it. */
const said: readonly (readonly [source: string, name: string, result: string])[] = [
  [
    'AI SDK, ai/dist/index.js (NoSuchToolError)',
    'open_file',
    "Model tried to call unavailable tool 'open_file'. Available tools: read_file, list_files.",
  ],
  [
    'AI SDK, ai/dist/index.js (NoSuchToolError)',
    'open_file',
    "Model tried to call unavailable tool 'open_file'. No tools are available.",
  ],
  [
    'opencode, packages/opencode/src/tool/invalid.ts',
    'invalid',
    `The arguments provided to the tool are invalid: Model tried to call unavailable tool 'ls'. Available tools: ${'bash, '.repeat(500)}read.`,
  ],
  ['Codex', 'open_file', 'unsupported call: open_file'],
  ['Codex', 'apply_patch', 'unsupported custom tool call: apply_patch'],
  [
    'CrewAI, crewai/tools/tool_usage.py',
    'open_file',
    `Action 'Open file' don't exist, these are the only available Actions:\n${"Tool Name: read_file\nTool Arguments: {'path': {'type': 'str'}}\n".repeat(60)}`,
  ],
  [
    'CrewAI, crewai/translations/en.json (wrong_tool_name)',
    'open_file',
    "You tried to use the tool open_file, but it doesn't exist. You must use one of the following tools, use one at time: read_file.",
  ],
  ['CrewAI, crewai/agents/crew_agent_executor.py', 'open_file', 'Tool not found'],
  [
    'LangChain, langchain/dist/agents/nodes/ToolNode.js',
    'open_file',
    'Error: open_file is not a valid tool, try one of [read_file].',
  ],
  ['smolagents, smolagents/agents.py', 'open_file', 'Unknown tool open_file, should be one of: read_file.'],
  [
    'Pydantic AI, pydantic_ai/_tool_manager.py',
    'open_file',
    "Unknown tool name: 'open_file'. Available tools: 'read_file'\n\nFix the errors and try again.",
  ],
  [
    'MCP Python SDK, mcp/server/mcpserver/tools/tool_manager.py',
    'mcp__files__open_file',
    'Unknown tool: open_file',
  ],
  [
    'Claude Code, results of its own transcripts',
    'mcp__files__open_file',
    '<tool_use_error>Error: No such tool available: mcp__files__open_file</tool_use_error>',
  ],
  [
    'OpenAI Agents, @openai/agents-core/dist/runner/turnResolution.js',
    'open_file',
    "Tool 'open_file' not found.",
  ],
  // The MCP TypeScript SDK.
  [
    'OpenAI Agents, @openai/agents-core/dist/runner/turnResolution.js',
    'open_file',
    'MCP error -32602: Tool open_file not found',
  ],
  // gemini-cli.
  [
    'OpenAI Agents, @openai/agents-core/dist/runner/turnResolution.js',
    'open_file',
    '{"error":"Tool \\"open_file\\" not found. Did you mean \\"read_file\\"?"}',
  ],
  // LlamaIndex.
  [
    'OpenAI Agents, @openai/agents-core/dist/runner/turnResolution.js',
    'open_file',
    'Tool open_file not found. Please select a tool that is available.',
  ],
  // AutoGen.
  [
    'OpenAI Agents, @openai/agents-core/dist/runner/turnResolution.js',
    'open_file',
    "Error: tool 'open_file' not found in any workbench",
  ],
  // The tool runner of the Anthropic SDK.
  [
    'OpenAI Agents, @openai/agents-core/dist/runner/turnResolution.js',
    'open_file',
    "Error: Tool 'open_file' not found",
  ],
  ['others, with their usual wording', 'open_file', 'The function open_file is not available.'],
  ['others, with the name last', 'open_file', 'invalid function: `open_file`'],
];

function afterDropping(steps: readonly Step[]) {
  const conversation = readChat(chatBody(steps, { tools }));
  const after = written(conversation, dropFailedCalls().propose(foldView(conversation)));
  return (JSON.parse(new TextDecoder().decode(after.body)) as { messages: unknown }).messages;
}

describe('drop-failed-calls', () => {
  it('drops a call to a tool that does not exist, with its error', () => {
    expect(afterDropping([{ user: 'Go' }, { calls: [bad] }, { assistant: 'Hm.' }])).toEqual(
      chatMessages([{ user: 'Go' }, { assistant: 'Hm.' }]),
    );
  });

  it.each(said)('recognizes the wording of %s', (_source, name, result) => {
    expect(afterDropping([{ user: 'Go' }, { calls: [{ name, result }] }])).toEqual(
      chatMessages([{ user: 'Go' }]),
    );
  });

  it('has an example of each wording', () => {
    // Examples may begin with a tag or the word "Error".
    const anywhere = ({ source, flags }: RegExp) => new RegExp(source.slice(1), flags);
    const unused = wordings.filter(
      ({ pattern }) => !said.some(([, , result]) => anywhere(pattern).test(result)),
    );
    expect(unused).toEqual([]);
  });

  it.each([
    ['a file that quotes such an error', `# Notes\n\nModel tried to call unavailable tool 'open_file'.`],
    ['a file that begins with such an error of another tool', "Tool 'search' not found.\nThen what?"],
    [
      'a program that cannot find something else',
      'Function parse_date does not exist in module dates.\nSee open_file.',
    ],
    ['a program that fails', 'Error: file not found: open_file.txt'],
    [
      'a long list after a wording that lists nothing',
      `Tool 'open_file' not found.\n${'line\n'.repeat(400)}`,
    ],
    ['a large file', `Unknown tool name: 'open_file'. Available tools: ${'a, '.repeat(20_000)}`],
  ])('keeps the result of %s', (_what, result) => {
    const steps = [{ user: 'Go' }, { calls: [{ name: 'open_file', result }] }];
    expect(afterDropping(steps)).toEqual(chatMessages(steps));
  });

  it('keeps the other calls of the same message', () => {
    expect(afterDropping([{ user: 'Go' }, { calls: [good, bad] }])).toEqual(
      chatMessages([{ user: 'Go' }, { calls: [good] }]),
    );
  });

  it("keeps the assistant's text before the call", () => {
    expect(afterDropping([{ user: 'Go' }, { text: 'I look.', calls: [bad] }])).toEqual([
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'I look.' },
    ]);
  });

  it.each([
    ['a tool that is offered, whatever it answers', { name: 'read_file', result: 'Unknown tool: x' }],
    [
      'a tool that answered something else than that it does not exist',
      { name: 'open_file', result: 'contents' },
    ],
    [
      'a long text that happens to mention it',
      { name: 'open_file', result: `Unknown tool: x${' '.repeat(2_000)}` },
    ],
  ])('keeps a call to %s', (_, call) => {
    const steps = [{ user: 'Go' }, { calls: [call] }];
    expect(afterDropping(steps)).toEqual(chatMessages(steps));
  });

  it('keeps an error of a tool that was offered earlier, also where the format marks errors', () => {
    const failing = { name: 'insert', result: 'Error: duplicate key 4711' };
    const steps = [{ user: 'Go' }, { text: 'I insert.', calls: [failing] }, { assistant: 'Hm.' }];
    const body = new TextDecoder()
      .decode(asAnthropic(chatBody(steps, { tools })))
      .replace('"type":"tool_result"', '"type":"tool_result","is_error":true');
    const proposed = (text: string) => {
      const conversation = anthropicMessages.read(new TextEncoder().encode(text), freshReading());
      expect(conversation.messages.flatMap(({ parts }) => parts)).toContainEqual(
        expect.objectContaining({ type: 'tool-result', isError: true }),
      );
      const mayEdit = (edit: Edit) => anthropicMessages.rules.mayEdit(conversation, edit);
      return dropFailedCalls().propose(foldView(conversation, { mayEdit })).length;
    };
    expect(proposed(body)).toBe(0);
    expect(proposed(body.replace('duplicate key 4711', "Tool 'insert' not found"))).toBe(2);
  });

  it('does nothing if the request offers no tools, since existing tools are unknown then', () => {
    const conversation = readChat(chatBody([{ calls: [bad] }]));
    expect(dropFailedCalls().propose(foldView(conversation))).toEqual([]);
  });
});
