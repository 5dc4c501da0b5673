/**
 * Drops calls of tools that do not exist, with their errors: they teach the model nothing and invite it to try again. A call counts if its name is
 * not among the offered tools and its result is an error.
 */
import { type Part, textOf, textsOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Pair, type PartPlace, pairCalls } from '../conversation/turns.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { placesEdited } from './lib/editable-texts.ts';

export const dropFailedCalls: Strategy = { name: 'drop-failed-calls', reach: 'history', propose };

function propose(view: FoldView): readonly Edit[] {
  const offered = new Set(view.conversation.toolNames);
  if (offered.size === 0) return [];
  const gone = placesEdited(view.edits);
  return pairCalls(view.conversation).pairs.flatMap((pair) => {
    if (offered.has(pair.name) || !pair.result || gone.parts.has(`${pair.call.message}.${pair.call.part}`))
      return [];
    if (gone.messages.has(pair.call.message)) return [];
    const edits = [dropPart(pair.call), dropPart(pair.result)];
    return isOld(view, pair, pair.result) && failed(view, pair.result, pair.name) && edits.every(view.mayEdit)
      ? edits
      : [];
  });
}

function dropPart({ message, part }: PartPlace): Edit {
  return { kind: 'drop-part', message, part, memory: undefined };
}

/** True if nothing protects the call. A call in a message with signed reasoning stays, because the reasoning must not be left alone. */
function isOld(view: FoldView, pair: Pair, result: PartPlace): boolean {
  const asking = view.conversation.messages[pair.call.message]!;
  return (
    !asking.parts.some((part) => part.type === 'reasoning' && part.signed) &&
    [pair.call, result].every(
      (place) => !view.protects.message(place.message) && !view.protects.part(place.message, place.part),
    )
  );
}

function failed(view: FoldView, place: PartPlace, name: string): boolean {
  const message = view.conversation.messages[place.message]!;
  const part: Part | undefined = message.parts[place.part];
  if (part?.type !== 'tool-result' || part.isError === false) return false;
  if (part.isError) return true;
  const text = textsOf(part)
    .map((span) => textOf(view.conversation.body, message, span))
    .join('\n');
  return saysNoSuchTool(text, name);
}

// Recognizes results in which an agent says that a tool does not exist, for wire formats that do not mark errors. The table
// names the source of each wording. Pure.

/** True if the whole text says that the called tool does not exist. */
function saysNoSuchTool(text: string, called: string): boolean {
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
  {
    source: 'AI SDK, ai/dist/index.js (NoSuchToolError)',
    pattern: /^Model tried to call unavailable tool '(?<tool>[^'\n]{1,200})'\./,
    listsTools: true,
  },
  {
    // The client renames the call to its tool `invalid`, which is not offered to the model.
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
    source: 'others, with their usual wording',
    pattern:
      /^(?:the )?(?:tool|function) (?<tool>\S{1,200}) (?:was not found|is not (?:available|registered|supported)|is unavailable|does not exist|doesn't exist)\b/i,
  },
  {
    source: 'others, with the name last',
    pattern:
      /^(?:unknown|invalid|unrecognized|unsupported|nonexistent|no such) (?:tool|function)(?: name| call)?:? (?<tool>\S{1,200})/i,
  },
];

/** A wording for a missing tool. */
export type Wording = {
  /** The project, and the file with the wording. */
  readonly source: string;
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
