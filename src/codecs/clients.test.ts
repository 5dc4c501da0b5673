/**
 * Shows how bodies of real clients are read: agent command lines and SDKs, with our words in place of the vendors'
 * (test/clients/anonymize.ts). The codec suite runs its cases on each; this table describes each one.
 */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Conversation, Message } from '../conversation/conversation.ts';
import { textsOf } from '../conversation/messages.ts';
import { pairCalls } from '../conversation/turns.ts';
import { outline } from '../../test/support/codec-suite/outline.ts';
import { bytesOfBlock, shown, view } from '../../test/support/codec-suite/views.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec } from './codec.ts';
import { geminiFor } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

const gemini = geminiFor({ model: 'gemini-3-pro-preview', streaming: true });

/**
 * `messages` has a letter for each message: System, User, Assistant, Tool results. `mayTake` says which part of each the format lets a fold
 * remove: x all of it, t only its texts, a point nothing. The engine also keeps the newest content. `tools` are the client's own.
 */
type Row = readonly [client: string, messages: string, mayTake: string, tools: string];

const sent: readonly (readonly [Codec, readonly Row[]])[] = [
  [
    anthropicMessages,
    [
      ['claude-code', 'uatatauat', 'xxxxxxx.x', 'Agent Bash Read DeferredToolPlaceholder Write'],
      ['claude-code-bound', 'usatatauat', 't.xxxxtx.x', 'Agent Bash Read DeferredToolPlaceholder Write'],
      // Its reminders are system messages after each result; the words around them stay.
      [
        'claude-code-system',
        'usatsatsausats',
        't.xx.xx.tt..x.',
        'Agent Bash Read DeferredToolPlaceholder Write',
      ],
      ['opencode', 'uatatauat', 'xxxxxxx.x', 'bash edit read todowrite write'],
      ['pi', 'uatatauat', 'xxxxxxx.x', 'read'],
      ['sdk-ai-sdk', 'uatatau', 'xxxxx.x', 'read_file'],
      ['sdk-anthropic', 'uatatau', 'xxxxx.x', 'read_file'],
      ['sdk-langchain', 'uatatau', 'xxxxx.x', 'read_file'],
    ],
  ],
  [
    openaiChat,
    [
      ['opencode', 'suatattauat', '.xxxxxxxxxx', 'apply_patch bash read todowrite webfetch'],
      ['pi', 'suatattauat', '.xxxxxxxxxx', 'read'],
      ['qwen-code', 'suatatt', '.xxxxxx', 'agent get_goal grep_search read_file write_file'],
      ['sdk-agents', 'suatattau', '.xxxxxxxx', 'read_file'],
      ['sdk-agents-streamed', 'suatattau', '.xxxxxxxx', 'read_file'],
      ['sdk-ai-sdk', 'uatattau', 'xxxxxxxx', 'read_file'],
      ['sdk-langchain', 'uatattau', 'xxxxxxxx', 'read_file'],
      ['sdk-openai', 'uatattau', 'xxxxxxxx', 'read_file'],
      ['sdk-openai-streamed', 'uatattau', 'xxxxxxxx', 'read_file'],
    ],
  ],
  [
    openaiResponses,
    [
      // Its tools are in the first item, in namespaces.
      [
        'codex',
        'sssssuuaaataaaaattaauaaat',
        '.....xxxxxxxxxxxxxxxxxxxx',
        'exec wait request_user_input_async followup_task wait_agent',
      ],
      [
        'codex-own',
        'ssuuaaataaaaattaauaaat',
        '..xxxxxxxxxxxxxxxxxxxx',
        'exec_command close_agent send_input wait_agent create_goal',
      ],
      ['opencode', 'suaaataaaaattaauaaat', '.xxxxxxxxxxxxxxxxxxx', 'apply_patch read todowrite webfetch'],
      ['pi', 'suaaataaaaattaauaaat', '.xxxxxxxxxxxxxxxxxxx', 'read'],
      ['sdk-agents', 'uaaataaattaau', 'xxxxxxxxxxxxx', 'read_file'],
      ['sdk-ai-sdk', 'uaaataaattaau', 'xxxxxxxxxxxxx', 'read_file'],
      // Items that the provider keeps are only referred to.
      ['sdk-ai-sdk-references', 'uaaataaattaau', 'x..xx.xxxx..x', 'read_file'],
      ['sdk-langchain', 'uaaataaattaau', 'xxxxxxxxxxxxx', 'read_file'],
      ['sdk-openai', 'uaaataaattaau', 'xxxxxxxxxxxxx', 'read_file'],
      ['sdk-openai-streamed', 'uaaataaattaau', 'xxxxxxxxxxxxx', 'read_file'],
    ],
  ],
  [
    gemini,
    [
      ['gemini-cli', 'uatat', 'xxxxx', 'update_topic list_directory read_file activate_skill'],
      ['opencode', 'uatatauat', 'xxxxxxxxx', 'bash edit read todowrite write'],
      ['pi', 'uatatauat', 'xxxxxxxxx', 'read'],
      ['sdk-ai-sdk', 'uatatau', 'xxxxxxx', 'read_file'],
      ['sdk-google-genai', 'uatatau', 'xxxxxxx', 'read_file'],
      // A content for each chunk of the stream.
      ['sdk-google-genai-chats-streamed', 'uaaaataaataaaau', 'xxxxxxxxxxxxxxx', 'read_file'],
      ['sdk-google-genai-streamed', 'uatatau', 'xxxxxxx', 'read_file'],
    ],
  ],
];

describe.each(sent)('what clients send to $name', (codec, rows) => {
  it('is recorded here completely', () => {
    const files = globSync(
      `src/codecs/${codec.name}/fixtures/{claude-code,codex,gemini-cli,opencode,pi,qwen-code,sdk-}*.json`,
    );
    const names = files.map((file) => file.replace(/^.*\/|\.json$/g, ''));
    const ofOurs = ['sdk-tool-loop', 'sdk-chat-stream'];
    expect(names.filter((name) => !ofOurs.includes(name)).toSorted()).toEqual(
      rows.map(([name]) => name).toSorted(),
    );
  });

  it.each(rows)('%s: is read whole', (name, messages, mayTake, tools) => {
    const conversation = recorded(codec, name);
    expect(conversation.messages.map(({ role }) => role.charAt(0)).join('')).toBe(messages);
    expect(conversation.messages.map((message) => takenOf(codec, conversation, message)).join('')).toBe(
      mayTake,
    );
    expect(conversation.toolNames.join(' ')).toBe(tools);
    const { pairs, orphans } = pairCalls(conversation);
    expect(orphans).toEqual([]);
    expect(pairs.filter(({ result }) => result === undefined)).toEqual([]);
  });

  it.each(rows)('%s: is offered read_memory after its tools', async (name, _, __, tools) => {
    const after = view(codec, (await prepared(codec, name, 1_000_000)).body);
    expect(after.toolNames).toEqual([...tools.split(' '), 'read_memory']);
  });

  it.each(rows)('%s: keeps content that no fold may change, byte for byte', async (name) => {
    const before = recorded(codec, name);
    const { report } = await prepared(codec, name, 1_000_000);
    const { body } = await prepared(codec, name, tightFor(report));
    const after = view(codec, body);
    expect(codec.rules.problems(after)).toEqual([]);
    expect(pairCalls(after).orphans).toEqual([]);
    expect(fixedIn(after)).toEqual(fixedIn(before));
  });
});

/** Titles and choices that clients ask for outside the session. */
const asides: readonly (readonly [Codec, name: string, messages: string])[] = [
  [anthropicMessages, 'claude-code-title', 'u'],
  [anthropicMessages, 'opencode-title', 'u'],
  [openaiChat, 'opencode-title', 'suu'],
  [openaiResponses, 'opencode-title', 'suu'],
  // Two contents of the user in a row, which our rules do not let us write.
  [gemini, 'gemini-cli-routing', 'uu'],
  [gemini, 'opencode-title', 'uu'],
];

describe('a request outside the session', () => {
  it.each(asides)(
    'passes through unchanged, without read_memory: $name, %s',
    async (codec, name, messages) => {
      const file = `side-calls/${name}`;
      const conversation = recorded(codec, file);
      expect(conversation.messages.map(({ role }) => role.charAt(0)).join('')).toBe(messages);
      expect(conversation.toolNames).toEqual([]);
      const { body, outcome } = await prepared(codec, file, 1_000_000);
      expect(outcome.status).toBe('untouched');
      expect(shown(body)).toBe(shown(conversation.body));
    },
  );
});

describe('Claude Code', () => {
  it('keeps its cache marks, its deferred tool and the context management it asks for', async () => {
    const { body } = await prepared(anthropicMessages, 'claude-code', 1_000_000);
    const { system, messages, tools, ...others } = JSON.parse(shown(body)) as Record<string, unknown>;
    expect(
      [system, messages].map((list) => JSON.stringify(list).split('"cache_control"').length - 1),
    ).toEqual([2, 1]);
    expect(JSON.stringify(tools)).toContain('"defer_loading":true');
    expect(others).toMatchObject({
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      thinking: { type: 'adaptive', display: 'omitted' },
      output_config: { effort: 'high' },
    });
  });

  // "messages.1: role 'system' must precede an 'assistant' message or end the array"
  it.each(['claude-code-bound', 'claude-code-system'])(
    'has each system message where the provider accepts it, even after a fold: %s',
    async (name) => {
      expect(misplaced(recorded(anthropicMessages, name))).toEqual([]);
      const { report } = await prepared(anthropicMessages, name, 1_000_000);
      const folded = await prepared(anthropicMessages, name, tightFor(report));
      expect(misplaced(view(anthropicMessages, folded.body))).toEqual([]);
    },
  );
});

describe('Codex', () => {
  it('sends its tools in an item, and calls them with free text', () => {
    const [tools] = outline(recorded(openaiResponses, 'codex'));
    const step = outline(recorded(openaiResponses, 'codex')).slice(7, 11);
    expect([tools, ...step]).toEqual([
      'system: opaque additional_tools',
      'assistant: signed reasoning "Step 1 of 5."',
      'assistant: "I read “part-01.log”.\\n"',
      'assistant: call call_0_2 exec("const read = await tools.exec_command({ cmd: \\"cat /srv/project/part-01.log\\" });\\ntext(read.output);\\n")',
      expect.stringMatching(/^tool: result call_0_2 \[".*" "part-01\.log step 0: .*\\n"\]$/),
    ]);
  });
});

function recorded(codec: Codec, name: string): Conversation {
  return view(codec, new Uint8Array(readFileSync(`src/codecs/${codec.name}/fixtures/${name}.json`)));
}

function prepared(codec: Codec, name: string, window: number) {
  const { engine } = testEngine({ window, offerRecall: 'always' });
  return engine.prepare({ codec, body: recorded(codec, name).body, tenant: 'tenant' });
}

function takenOf(codec: Codec, conversation: Conversation, { index, parts }: Message): string {
  const { mayEdit } = codec.rules;
  if (mayEdit(conversation, { kind: 'drop-message', message: index, memory: undefined })) return 'x';
  const hasFreeText = parts.some((part, at) =>
    textsOf(part).some((_, text) =>
      mayEdit(conversation, {
        kind: 'replace-text',
        at: { message: index, part: at, text },
        stub: '',
        memory: '',
      }),
    ),
  );
  return hasFreeText ? 't' : '.';
}

/** A window that forces a fold. */
function tightFor(report: { readonly tokensBefore: number | undefined } | undefined): number {
  return Math.round((report?.tokensBefore ?? 0) * 0.8);
}

/** System messages and opaque parts. */
function fixedIn({ body, messages }: Conversation): readonly string[] {
  return messages
    .filter(({ role, parts }) => role === 'system' || parts.some((part) => part.type === 'opaque'))
    .map((message) => bytesOfBlock(body, message));
}

/** System messages that neither follow the user's side nor precede, with those next to them, an assistant message or the end. */
function misplaced({ messages }: Conversation): readonly number[] {
  const sideOf = (message: Message | undefined) => (message?.role === 'tool' ? 'user' : message?.role);
  return messages.flatMap(({ index, role }) => {
    if (role !== 'system') return [];
    const before = sideOf(messages.findLast((one) => one.index < index && one.role !== 'system'));
    const after = sideOf(messages.find((one) => one.index > index && one.role !== 'system'));
    return before === 'user' && after !== 'user' ? [] : [index];
  });
}
