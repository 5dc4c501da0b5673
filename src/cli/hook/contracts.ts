/**
 * Describes the post-tool hooks of agent CLIs: the file that an entry belongs in, the result in the JSON that the client gives to the hook,
 * and the reply that puts another text in its place. Pure. docs/hooks.md says which version of which client this was tried with.
 */
import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import { LeporelloError } from '../../errors.ts';
import { type JsonRecord, isRecord, parseRecord } from '../../conversation/json-scan.ts';
import type { Environment } from '../terminal.ts';
import { objectAt, type SettingsObject } from '../wrap/read-settings.ts';

/** A client whose hook can replace a result. */
export type HookedClient = (typeof hookedClients)[number];

export const hookedClients = ['claude', 'codex', 'cursor', 'gemini'] as const;

/** A tool result as a hook receives it. */
export type HookedResult = {
  readonly tool: string;
  /** The JSON text of the call's arguments. */
  readonly input: string;
  readonly text: string;
  /** The folder that the client works in; undefined if it does not matter. */
  readonly folder?: string;
  /** Returns a reply with which the client shows this text to the model in place of the result; undefined if it cannot show it whole. */
  readonly replyWith: (text: string, memory: string) => HookReply | undefined;
};

export type HookReply = {
  /** The JSON to print. */
  readonly json: object;
  /** A file that the client reads right after the hook has ended. */
  readonly file?: { readonly path: string; readonly text: string };
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
  /** Returns true if these settings, of the user or of a project, keep the client from showing another text. Default: none do. */
  readonly isKeptBy?: (settings: SettingsObject) => boolean;
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
  gemini: {
    title: 'Gemini CLI',
    file: (home, env) => join(geminiFolder(home, env), 'settings.json'),
    entry: (command) => ({
      hooks: {
        AfterTool: [
          {
            matcher: '^(run_shell_command|mcp_.*)$',
            // Its timeout is in milliseconds.
            hooks: [{ name: 'leporello', type: 'command', command, timeout: timeout * 1_000 }],
          },
        ],
      },
    }),
    note: 'Gemini CLI shows the shorter text as a file that it has read.',
    read: readGemini,
    isKeptBy: withholdsReadFile,
  },
};

/** Returns the client that the operands of `hook` name. Throws `bad-usage` for another name. */
export function hookedClientIn(operands: readonly string[]): HookedClient {
  const [word, extra] = operands;
  const named = hookedClients.find((name) => name === word);
  if (named !== undefined && extra === undefined) return named;
  const given = word === undefined ? 'hook needs a client' : `hook does not take ${operands.join(' ')}`;
  throw new LeporelloError('bad-usage', `${given}: leporello hook ${hookedClients.join('|')}.`);
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

/**
 * Gemini CLI runs another tool in place of the one that has run, if a hook asks for it, and gives the model that result under the name of
 * the first call. So it reads a file with the shorter text, which lies in its own folder for temporary files: there it needs no approval.
 */
function readGemini(payload: JsonRecord): HookedResult | undefined {
  const { hook_event_name: event, tool_response: response, cwd } = payload;
  const { transcript_path: transcript, original_request_name: replaced } = payload;
  if (event !== 'AfterTool' || replaced !== undefined || !isRecord(response)) return undefined;
  if (typeof cwd !== 'string' || typeof transcript !== 'string' || response['error'] !== undefined)
    return undefined;
  const temporary = temporaryFolder(transcript, cwd);
  const content = geminiContentIn(response['llmContent']);
  const result = resultOf(payload, content, (value) => ({ value }));
  if (temporary === undefined || content === undefined || result === undefined) return undefined;
  return {
    ...result,
    folder: cwd,
    replyWith(text, memory) {
      const shown = content.withText(text);
      const lines = shown.split('\n');
      if (lines.length > maxFileLines || lines.some(({ length }) => length > maxLineLength)) return undefined;
      const path = join(temporary, 'leporello', `${memory}.txt`);
      const tailToolCallRequest = { name: 'read_file', args: { file_path: path } };
      return {
        json: { hookSpecificOutput: { hookEventName: event, tailToolCallRequest } },
        file: { path, text: shown },
      };
    },
  };
}

/** Lines of a file, and UTF-16 units of a line, that `read_file` of Gemini CLI shows without cutting. */
const maxFileLines = 2_000;
const maxLineLength = 2_000;

/** Returns the project's temporary folder, in which the transcript is; undefined if the project's ignore files could apply to it. */
function temporaryFolder(transcript: string, folder: string): string | undefined {
  const chats = dirname(transcript);
  const temporary = dirname(chats);
  const isOutside = relative(folder, temporary).startsWith('..');
  return isAbsolute(transcript) && basename(chats) === 'chats' && isOutside ? temporary : undefined;
}

/**
 * Returns the output of a command that succeeded, or of an MCP tool, inside the frame in which Gemini CLI gives it to the model: a mark that it
 * is not to be trusted, and what it says of the process. The frame stays.
 */
function geminiContentIn(content: unknown): HookedContent<string> | undefined {
  const [part, ...others] = Array.isArray(content) ? (content as readonly unknown[]) : [{ text: content }];
  const whole = isRecord(part) && others.length === 0 ? part['text'] : undefined;
  const [, start, text, end] = (typeof whole === 'string' && geminiFrame.exec(whole)) || [];
  if (text === undefined || /\n(?:Error|Exit Code|Signal): [^\n]*$/.test(text)) return undefined;
  return { text, withText: (shorter) => start + shorter + end };
}

const geminiFrame =
  /^((?:<untrusted_context>\n)?(?:Output: )?)(.*?)((?:\nBackground PIDs: [\d, ]+)?(?:\nProcess Group PGID: \d+)?(?:\n<\/untrusted_context>)?)$/s;

/** True for settings of Gemini CLI that take away the tool that shows the shorter text. */
function withholdsReadFile(settings: SettingsObject): boolean {
  const { core, exclude } = objectAt(settings, 'tools') ?? {};
  const isOnlyOthers = Array.isArray(core) && !core.includes('read_file');
  return isOnlyOthers || (Array.isArray(exclude) && exclude.includes('read_file'));
}

function geminiFolder(home: string, env: Environment): string {
  return join(env['GEMINI_CLI_HOME'] || home, '.gemini');
}

/** The only text of a result, and how the result looks with another one. */
type HookedContent<T = unknown> = { readonly text: string; readonly withText: (text: string) => T };

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
    replyWith: (text) => ({ json: replyWith(content.withText(text)) }),
  };
}
