import { describe, expect, it } from 'vitest';
import { chatRefusal } from './chat-rules.ts';
import { messagesRefusal } from './messages-rules.ts';
import type { JsonObject } from './script.ts';

const user = { role: 'user', content: 'go' };
const say = (content: unknown): JsonObject => ({ role: 'assistant', content });

describe('Chat Completions refuses', () => {
  const call = (id: string): JsonObject => ({
    id,
    type: 'function',
    function: { name: 'f', arguments: '{}' },
  });
  const calls = (...ids: string[]): JsonObject => ({ ...say(null), tool_calls: ids.map(call) });
  const answer = (id: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: 'r' });
  const refusal = (...messages: unknown[]): string | undefined =>
    chatRefusal({ model: 'm', messages })?.message;

  it.each<[string, JsonObject, string]>([
    ['no model', { messages: [user] }, 'you must provide a model parameter'],
    ['no messages', { model: 'm' }, "Missing required parameter: 'messages'."],
    [
      'empty messages',
      { model: 'm', messages: [] },
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    ],
    [
      'empty tools',
      { model: 'm', messages: [user], tools: [] },
      "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    ],
    [
      'stream options without a stream',
      { model: 'm', messages: [user], stream_options: {} },
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    ],
  ])('%s', (_, body, message) => {
    expect(chatRefusal(body)?.message).toBe(message);
  });

  it.each<[string, unknown[], string]>([
    ['an unknown role', [{ role: 'model' }], "Invalid value: 'model'."],
    ['no content', [user, say(null)], "Invalid value for 'content': expected a string."],
    [
      'empty tool calls',
      [user, { ...say('x'), tool_calls: [] }],
      "Invalid 'messages[1].tool_calls': empty array.",
    ],
    [
      'arguments that are no string',
      [user, { ...say(null), tool_calls: [{ ...call('a'), function: { name: 'f', arguments: {} } }] }],
      "Invalid 'messages[1].tool_calls[0]': expected an id, and a function with a name and arguments that are a string.",
    ],
    [
      'a call without its result before the next message',
      [user, calls('a', 'b'), answer('a'), user],
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: b",
    ],
    [
      'a call without its result at the end',
      [user, calls('a')],
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: a",
    ],
    [
      'a result without its call',
      [user, answer('a')],
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    ],
    [
      'two results of one call',
      [user, calls('a'), answer('a'), answer('a')],
      "Duplicate value for 'tool_call_id' of 'a'.",
    ],
  ])('%s', (_, messages, message) => {
    expect(refusal(...messages)).toBe(message);
  });

  it('nothing of a valid conversation', () => {
    const parts = [{ type: 'text', text: 'x' }];
    const system = { role: 'system', content: 's' };
    expect(
      refusal(
        system,
        user,
        user,
        calls('a', 'b'),
        answer('b'),
        answer('a'),
        calls('a'),
        answer('a'),
        say(parts),
      ),
    ).toBeUndefined();
  });
});

describe('Messages refuses', () => {
  const use = (id: string): JsonObject => ({ type: 'tool_use', id, name: 'f', input: {} });
  const result = (id: string): JsonObject => ({ type: 'tool_result', tool_use_id: id, content: 'r' });
  const tell = (...content: JsonObject[]): JsonObject => ({ role: 'user', content });
  const words = { type: 'text', text: 'x' };
  const system = (content: unknown, more: JsonObject = {}): JsonObject => ({
    role: 'system',
    content,
    ...more,
  });
  const setting = system([], { output_config: { effort: 'low' } });
  const anywhere = 'the directive-only form (content: [] with output_config) is accepted at any position';
  const mark = { ...words, cache_control: { type: 'ephemeral' } };
  const loose = { maxTokens: true, strictRoles: false };
  const refusal = (messages: unknown[], more: JsonObject = {}, strictRoles = false): string | undefined =>
    messagesRefusal({ model: 'm', max_tokens: 1, messages, ...more }, { ...loose, strictRoles })?.message;
  const unanswered = (at: number, ids: string): string =>
    `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;

  it('missing fields, except for the token limit of a count', () => {
    const body = { model: 'm', messages: [user] };
    expect(messagesRefusal({ messages: [user] }, loose)?.message).toBe('model: Field required');
    expect(messagesRefusal(body, loose)?.message).toBe('max_tokens: Field required');
    expect(messagesRefusal(body, { ...loose, maxTokens: false })).toBeUndefined();
    expect(messagesRefusal({ model: 'm', max_tokens: 1 }, loose)?.message).toBe('messages: Field required');
  });

  it.each<[string, unknown[], string]>([
    ['no messages', [], 'messages: at least one message is required'],
    [
      'an unknown role',
      [{ role: 'tool', content: 'x' }],
      "messages.0.role: Input should be 'user' or 'assistant'",
    ],
    [
      'empty content',
      [user, say([]), user],
      'messages.1: all messages must have non-empty content except for the optional final assistant message',
    ],
    ['an empty text', [tell({ type: 'text', text: '' })], 'messages: text content blocks must be non-empty'],
    [
      'unsigned thinking',
      [user, say([{ type: 'thinking', thinking: 'x' }])],
      'messages.1.content.0.thinking.signature: Field required',
    ],
    ['a call without its result', [user, say([use('a'), use('b')]), tell(result('a'))], unanswered(1, 'b')],
    ['a call at the end', [user, say([use('a')])], unanswered(1, 'a')],
    ['a result after a text', [user, say([use('a')]), tell(words, result('a'))], unanswered(1, 'a')],
    ['a result after a message', [user, say([use('a')]), user, tell(result('a'))], unanswered(1, 'a')],
    [
      'a result without its call',
      [user, say('x'), tell(words, result('a'))],
      'messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: a. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
    ],
    [
      'two results of one call',
      [user, say([use('a')]), tell(result('a'), result('a'))],
      'messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a',
    ],
    ['one id for two calls', [user, say([use('a'), use('a')])], 'messages.1: `tool_use` ids must be unique'],
    [
      'five cache marks',
      [tell(mark, mark, mark, mark, mark)],
      'A maximum of 4 blocks with cache_control may be provided. Found 5.',
    ],
    [
      'a cache mark too many in a result',
      [user, say([use('a')]), tell({ ...result('a'), content: [mark, mark, mark, mark, mark] })],
      'A maximum of 4 blocks with cache_control may be provided. Found 5.',
    ],
    [
      'a cache mark on thinking',
      [
        user,
        say([{ type: 'thinking', thinking: 'x', signature: 's', cache_control: { type: 'ephemeral' } }]),
      ],
      'messages.1.content.0.thinking.cache_control: Extra inputs are not permitted',
    ],
  ])('%s', (_, messages, message) => {
    expect(refusal(messages)).toBe(message);
  });

  it.each<[string, JsonObject, string]>([
    [
      'an empty text',
      { system: [{ ...mark, text: '' }] },
      'system.0.text: cache_control cannot be set for empty text blocks',
    ],
    [
      'a tool that is loaded when it is searched for',
      { tools: [{ name: 'f', defer_loading: true, cache_control: { type: 'ephemeral' } }] },
      "Tool 'f' cannot have both defer_loading=true and cache_control set.",
    ],
  ])('a cache mark on %s', (_, more, message) => {
    expect(refusal([user], more)).toBe(message);
  });

  it.each<[string, unknown[], string]>([
    [
      'at the beginning',
      [system('s'), user],
      `messages.0: use the top-level 'system' parameter for the initial system prompt; ${anywhere}`,
    ],
    [
      'after an assistant message',
      [user, say('x'), setting, system('s'), system('t'), user],
      `messages.3: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result; ${anywhere}`,
    ],
    [
      'between a call and its result',
      [user, say([use('a')]), system('s'), tell(result('a'))],
      `messages.2: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result; ${anywhere}`,
    ],
    [
      'in front of a user message',
      [user, system('s'), system('t'), setting, user],
      `messages.2: role 'system' must precede an 'assistant' message or end the array; ${anywhere}`,
    ],
    ['without a block', [user, system([])], 'messages.1: system content must contain at least one block'],
  ])('a system message: %s', (_, messages, message) => {
    expect(refusal(messages)).toBe(message);
  });

  it('no system message after user words, results or server tool results, and no setting', () => {
    const searched = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
    const asked = [setting, user, system('s'), setting, system([words]), say([use('a')])];
    const answered = [tell(result('a')), system('t'), say([words, searched]), system('u'), say('x')];
    expect(refusal([...asked, ...answered, setting, user, system('v')])).toBeUndefined();
  });

  it('two tools of one name', () => {
    expect(refusal([user], { tools: [{ name: 'a' }, { name: 'a' }] })).toBe(
      'tools: Tool names must be unique.',
    );
  });

  it('roles that do not alternate only when it is strict', () => {
    const twice = [user, user, system('s'), say('x'), user];
    expect(refusal(twice)).toBeUndefined();
    expect(refusal(twice, {}, true)).toBe(
      'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
    );
    expect(refusal([say('x'), user], {}, true)).toBe('messages: first message must use the "user" role');
  });

  it('nothing of a valid conversation', () => {
    const calls = say([{ type: 'thinking', thinking: '', signature: 's' }, words, use('a'), use('b')]);
    expect(
      refusal([
        user,
        calls,
        tell(result('b'), result('a'), mark),
        say([use('a')]),
        tell(result('a')),
        say(''),
      ]),
    ).toBeUndefined();
  });
});
