/**
 * Recognizes results in which an agent says that a tool does not exist: the mark of an error does not say why. A comment names the project
 * and the file of each wording. Pure.
 */

/** True if the whole text says that the called tool does not exist. */
export function saysNoSuchTool(text: string, called: string): boolean {
  if (text.length > maxList) return false;
  const said = text.replace(inFront, '').trimEnd();
  return wordings.some(({ pattern, listsTools }) => {
    const found = text.length > (listsTools ? maxList : maxError) ? null : pattern.exec(said);
    const tool = found?.groups?.['tool'];
    return found !== null && (tool === undefined || isSameTool(tool, called));
  });
}

/** Compares two names. Agents write names with or without the server's name before them, and in their own case. */
function isSameTool(said: string, called: string): boolean {
  const [one, other] = [said, called].map((name) => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, ''));
  return one !== '' && other !== '' && (one!.endsWith(other!) || other!.endsWith(one!));
}

/**
 * The wordings of agents for a missing tool. Each is at the start of the result and names the called tool, so a result that quotes one does not
 * match. A list of all tools may follow.
 */
export const wordings: readonly Wording[] = [
  // AI SDK, ai/dist/index.js (NoSuchToolError)
  { pattern: /^Model tried to call unavailable tool '(?<tool>[^'\n]{1,200})'\./, listsTools: true },
  // opencode, packages/opencode/src/tool/invalid.ts. The client renames the call to its tool `invalid`, which is not offered to the model.
  {
    pattern:
      /^The arguments provided to the tool are invalid: Model tried to call unavailable tool '[^'\n]{1,200}'\./,
    listsTools: true,
  },
  // Codex, the file of its tool registry
  { pattern: /^unsupported (?:custom tool )?call: (?<tool>\S{1,200})$/ },
  // CrewAI, crewai/tools/tool_usage.py
  {
    pattern: /^Action '(?<tool>[^'\n]{1,200})' don't exist, these are the only available Actions:/,
    listsTools: true,
  },
  // CrewAI, crewai/translations/en.json (wrong_tool_name)
  {
    pattern: /^You tried to use the tool (?<tool>[^,\n]{1,200}), but it doesn't exist\./,
    listsTools: true,
  },
  // CrewAI, crewai/agents/crew_agent_executor.py
  { pattern: /^Tool not found$/ },
  // LangChain, langchain/dist/agents/nodes/ToolNode.js
  { pattern: /^(?<tool>\S{1,200}) is not a valid tool, try one of /, listsTools: true },
  // smolagents, smolagents/agents.py
  { pattern: /^Unknown tool (?<tool>\S{1,200}), should be one of: /, listsTools: true },
  // Pydantic AI, pydantic_ai/_tool_manager.py
  { pattern: /^Unknown tool name: '(?<tool>[^'\n]{1,200})'\./, listsTools: true },
  // MCP Python SDK, mcp/server/mcpserver/tools/tool_manager.py
  { pattern: /^Unknown tool: (?<tool>\S{1,200})$/ },
  // Claude Code, results of its own transcripts
  { pattern: /^No such tool available: (?<tool>[^\s.<]{1,200})/ },
  // OpenAI Agents, @openai/agents-core/dist/runner/turnResolution.js; also the MCP TypeScript SDK, gemini-cli, LlamaIndex, AutoGen and the tool runner
  // of the Anthropic SDK
  { pattern: /^Tool (?<tool>\S{1,200}) not found\b/i },
  // Others, with their usual wording
  {
    pattern:
      /^(?:the )?(?:tool|function) (?<tool>\S{1,200}) (?:was not found|is not (?:available|registered|supported)|is unavailable|does not exist|doesn't exist)\b/i,
  },
  // Others, with the name last
  {
    pattern:
      /^(?:unknown|invalid|unrecognized|unsupported|nonexistent|no such) (?:tool|function)(?: name| call)?:? (?<tool>\S{1,200})/i,
  },
];

/** A wording for a missing tool. */
type Wording = {
  /** The group `tool` matches the called tool. */
  readonly pattern: RegExp;
  /** True if a list of the existing tools follows. */
  readonly listsTools?: true;
};

/** Allowed text before the wording: a tag, the word "Error", a protocol's code, or a field of a JSON object. */
const inFront = /^(?:\s|<tool_use_error>|error:|MCP error -?\d{1,6}:|\{"\w{1,20}":\s?")+/i;

/** Maximum lengths in UTF-16 units, without and with a list of all tools. Longer texts are something else. */
const maxError = 2_000;
const maxList = 50_000;
