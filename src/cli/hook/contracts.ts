/**
 * Describes the post-tool hooks of agent CLIs: the file that an entry belongs in, the result in the JSON that the client gives to the hook,
 * and the reply that puts another text in its place. Pure. docs/hooks.md says which version of which client this was tried with.
 */
import { join } from 'node:path';
import { LeporelloError } from '../../errors.ts';
import { type JsonRecord, isRecord, parseRecord } from '../../conversation/json-scan.ts';
import type { Environment } from '../terminal.ts';
import type { SettingsObject } from '../wrap/read-settings.ts';

/** A client whose hook can replace a result. */
export type HookedClient = (typeof hookedClients)[number];

export const hookedClients = ['claude', 'codex', 'cursor'] as const;

/** A tool result as a hook receives it. */
export type HookedResult = {
  readonly tool: string;
  /** The JSON text of the call's arguments. */
  readonly input: string;
  readonly text: string;
  /** Returns what to print, so that the client shows this text to the model in place of the result. */
  readonly replyWith: (text: string) => object;
};

/** The contract of one client's hook. */
export type HookContract = {
  readonly title: string;
  /** Returns the file of the user's settings, which a variable can put into another folder than the home. */
  readonly file: (home: string, env: Environment) => string;
  /** Returns the content of the file with nothing but the entry. */
  readonly entry: (command: string) => SettingsObject;
  /** Says in one sentence what else the user must do; undefined if nothing. */
  readonly note?: string;
  /** Returns the result; undefined if it must stay as it is: a failure, an image, or not of a kind that this client replaces. */
  readonly read: (payload: JsonRecord) => HookedResult | undefined;
};

/** Seconds after which a client gives up the hook and keeps the result. */
const timeout = 20;

export const hookContracts: Readonly<Record<HookedClient, HookContract>> = {
  claude: {
    title: 'Claude Code',
    file: (home, env) => join(env['CLAUDE_CONFIG_DIR'] || join(home, '.claude'), 'settings.json'),
    entry: (command) => ({
      hooks: {
        PostToolUse: [{ matcher: 'Bash|mcp__.*', hooks: [{ type: 'command', command, timeout }] }],
      },
    }),
    read: readClaude,
  },
  codex: {
    title: 'Codex',
    file: (home, env) => join(env['CODEX_HOME'] || join(home, '.codex'), 'hooks.json'),
    entry: (command) => ({ hooks: { PostToolUse: [{ hooks: [{ type: 'command', command, timeout }] }] } }),
    note: 'Codex runs the hook once you have trusted it: open /hooks in Codex. It then shows each shortened result as blocked; the model sees the shorter text.',
    read: readCodex,
  },
  cursor: {
    title: 'Cursor',
    file: (home) => join(home, '.cursor', 'hooks.json'),
    entry: (command) => ({ version: 1, hooks: { postToolUse: [{ command, matcher: '^MCP:', timeout }] } }),
    note: 'Cursor lets a hook replace results of MCP tools only, not of the shell.',
    read: readCursor,
  },
};

/** Returns the client that the operands of `hook` name. Throws `bad-usage` for another name. */
export function hookedClientIn(operands: readonly string[]): HookedClient {
  const [word, extra] = operands;
  const named = hookedClients.find((name) => name === word);
  if (named !== undefined && extra === undefined) return named;
  const given = word === undefined ? 'hook needs a client' : `hook does not take ${operands.join(' ')}`;
  const gemini =
    word === 'gemini'
      ? ' Gemini CLI marks each result that a hook replaces as failed; use leporello wrap gemini.'
      : '';
  throw new LeporelloError('bad-usage', `${given}: leporello hook ${hookedClients.join('|')}.${gemini}`);
}

/** Claude Code takes a replacement only in the shape of the tool's own result. */
function readClaude(payload: JsonRecord): HookedResult | undefined {
  const { tool_response: response, cursor_version: cursor } = payload;
  // Cursor runs the hooks of Claude Code too, and would take the reply for something else.
  if (payload['hook_event_name'] !== 'PostToolUse' || cursor !== undefined) return undefined;
  if (payload['tool_name'] !== 'Bash') return resultOf(payload, contentIn(response), claudeReply);
  if (!isRecord(response)) return undefined;
  const { stdout, interrupted, isImage, persistedOutputPath } = response;
  // Claude Code shows the model only the beginning of a long output, which it keeps in a file.
  const isWhole = interrupted !== true && isImage !== true && persistedOutputPath === undefined;
  if (typeof stdout !== 'string' || !isWhole) return undefined;
  return resultOf(
    payload,
    { text: stdout, withText: (text) => ({ ...response, stdout: text }) },
    claudeReply,
  );
}

function claudeReply(value: unknown): object {
  return { hookSpecificOutput: { hookEventName: 'PostToolUse', updatedToolOutput: value } };
}

/** Codex has one way to replace a result: it is blocked, and the reason takes its place. The model sees no failure. */
function readCodex(payload: JsonRecord): HookedResult | undefined {
  if (payload['hook_event_name'] !== 'PostToolUse') return undefined;
  const content = contentIn(payload['tool_response']);
  return resultOf(payload, content && { ...content, withText: (text) => text }, (reason) => ({
    decision: 'block',
    reason,
  }));
}

/** Cursor gives results as JSON in a text, and replaces those of MCP tools. */
function readCursor(payload: JsonRecord): HookedResult | undefined {
  const { hook_event_name: event, tool_name: tool, tool_output: output } = payload;
  if (event !== 'postToolUse' || typeof tool !== 'string' || !tool.startsWith('MCP:')) return undefined;
  const parsed = typeof output === 'string' ? (parseRecord(output) ?? output) : output;
  return resultOf(payload, contentIn(parsed), (value) => ({ updated_mcp_tool_output: value }));
}

/** The only text of a result, and how the result looks with another one. */
type HookedContent = { readonly text: string; readonly withText: (text: string) => unknown };

/** Returns the content of a text, of a list with one text block, or of an MCP result; undefined for a failure and for anything else. */
function contentIn(response: unknown): HookedContent | undefined {
  if (typeof response === 'string') return { text: response, withText: (text) => text };
  if (Array.isArray(response)) {
    const [block, ...others] = response as readonly unknown[];
    if (!isRecord(block) || block['type'] !== 'text' || others.length > 0) return undefined;
    const { text: shown } = block;
    return typeof shown === 'string' ? { text: shown, withText: (text) => [{ ...block, text }] } : undefined;
  }
  if (!isRecord(response) || response['isError'] === true || 'structuredContent' in response)
    return undefined;
  const inside = contentIn(response['content']);
  return inside && { ...inside, withText: (text) => ({ ...response, content: inside.withText(text) }) };
}

function resultOf(
  { tool_name: tool, tool_input: input }: JsonRecord,
  content: HookedContent | undefined,
  replyWith: (value: unknown) => object,
): HookedResult | undefined {
  if (typeof tool !== 'string' || content === undefined) return undefined;
  return {
    tool,
    input: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
    text: content.text,
    replyWith: (text) => replyWith(content.withText(text)),
  };
}
