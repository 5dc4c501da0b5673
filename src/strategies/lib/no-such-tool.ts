/**
 * Recognizes results by which agents say that a tool does not exist, for formats that do not flag errors. The table names where each
 * wording comes from. Pure.
 */

/** True where the whole text answers a call of this tool by saying that there is no such tool. */
export function saysNoSuchTool(text: string, called: string): boolean {
  if (text.length > longestList) return false;
  const said = text.replace(inFront, '').trimEnd();
  return wordings.some(({ pattern, listsTools }) => {
    const found = text.length > (listsTools ? longestList : longestError) ? null : pattern.exec(said);
    const tool = found?.groups?.['tool'];
    return found !== null && (tool === undefined || isSameTool(tool, called));
  });
}

/** Agents spell names with or without the server in front, and in their own case. */
function isSameTool(said: string, called: string): boolean {
  const [one, other] = [said, called].map((name) => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, ''));
  return one !== '' && other !== '' && (one!.endsWith(other!) || other!.endsWith(one!));
}

/**
 * How agents answer a call of a tool they do not have, for formats that do not flag errors. Each wording stands at the beginning of the
 * result and names the tool that was called, so a result that quotes one is not taken for one. What follows may list every tool.
 */
export const wordings: readonly Wording[] = [
  {
    source: 'AI SDK, ai/dist/index.js (NoSuchToolError)',
    pattern: /^Model tried to call unavailable tool '(?<tool>[^'\n]{1,200})'\./,
    listsTools: true,
  },
  {
    // The client renames the call to its tool `invalid`, which the model is not offered.
    source: 'opencode, packages/opencode/src/tool/invalid.ts',
    pattern:
      /^The arguments provided to the tool are invalid: Model tried to call unavailable tool '[^'\n]{1,200}'\./,
    listsTools: true,
  },
  {
    source: 'Codex, codex-rs/core/src/tools/registry.rs',
    pattern: /^unsupported (?:custom tool )?call: (?<tool>\S{1,200})$/,
  },
  {
    source: 'CrewAI, crewai/tools/tool_usage.py',
    pattern: /^Action '(?<tool>[^'\n]{1,200})' don't exist, these are the only available Actions:/,
    listsTools: true,
  },
  {
    source: 'CrewAI, crewai/translations/en.json (wrong_tool_name)',
    pattern: /^You tried to use the tool (?<tool>[^,\n]{1,200}), but it doesn't exist\./,
    listsTools: true,
  },
  { source: 'CrewAI, crewai/agents/crew_agent_executor.py', pattern: /^Tool not found$/ },
  {
    source: 'LangChain, langchain/dist/agents/nodes/ToolNode.js',
    pattern: /^(?<tool>\S{1,200}) is not a valid tool, try one of /,
    listsTools: true,
  },
  {
    source: 'smolagents, smolagents/agents.py',
    pattern: /^Unknown tool (?<tool>\S{1,200}), should be one of: /,
    listsTools: true,
  },
  {
    source: 'Pydantic AI, pydantic_ai/_tool_manager.py',
    pattern: /^Unknown tool name: '(?<tool>[^'\n]{1,200})'\./,
    listsTools: true,
  },
  {
    source: 'MCP Python SDK, mcp/server/mcpserver/tools/tool_manager.py',
    pattern: /^Unknown tool: (?<tool>\S{1,200})$/,
  },
  {
    source: 'Claude Code, results of its own transcripts',
    pattern: /^No such tool available: (?<tool>[^\s.<]{1,200})/,
  },
  {
    // Also the MCP TypeScript SDK, gemini-cli, LlamaIndex, AutoGen and the tool runner of the Anthropic SDK.
    source: 'OpenAI Agents, @openai/agents-core/dist/runner/turnResolution.js',
    pattern: /^Tool (?<tool>\S{1,200}) not found\b/i,
  },
  {
    source: 'others, as they usually say it',
    pattern:
      /^(?:the )?(?:tool|function) (?<tool>\S{1,200}) (?:was not found|is not (?:available|registered|supported)|is unavailable|does not exist|doesn't exist)\b/i,
  },
  {
    source: 'others, the other way round',
    pattern:
      /^(?:unknown|invalid|unrecognized|unsupported|nonexistent|no such) (?:tool|function)(?: name| call)?:? (?<tool>\S{1,200})/i,
  },
];

export type Wording = {
  /** The project, and the file that says it. */
  readonly source: string;
  /** Group `tool`: the tool that was called. */
  readonly pattern: RegExp;
  /** Whether the tools there are follow, described. */
  readonly listsTools?: true;
};

/** Allowed beginnings of such a text: a tag, the word "Error", the code of a protocol, the field of a JSON object. */
const inFront = /^(?:\s|<tool_use_error>|error:|MCP error -?\d{1,6}:|\{"\w{1,20}":\s?")+/i;

/** UTF-16 units. Longer texts are something else, unless the wording goes on with a list of all tools and their descriptions. */
const longestError = 2_000;
const longestList = 50_000;
