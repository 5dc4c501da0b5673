/**
 * Reads the session files of the agent CLIs. Each reader takes the records of one file and returns its conversations. Records of unknown kinds
 * are skipped, because clients add some in every version. Pure.
 */
import type { Usage } from '../../conversation/conversation.ts';
import { groupBy } from '../../es2024.ts';
import { type SettingsObject, objectAt, textAt } from '../wrap/read-settings.ts';
import { createSession, type SessionBuilder, type SessionConversation } from './session.ts';

type SessionRecord = SettingsObject;
type SessionReader = (records: readonly SessionRecord[]) => readonly SessionConversation[];

/** Returns the objects in a file of JSON lines. A line that is cut off or damaged is skipped. */
export function recordsIn(text: string): readonly SessionRecord[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith('{')) return [];
    try {
      return [JSON.parse(line) as SessionRecord];
    } catch {
      return [];
    }
  });
}

/** Claude Code: lines with a `message` of the Messages format; a reply is several lines with one message id. */
export const readClaudeCode: SessionReader = (records) => {
  // A sub-agent's lines may be in the file of the main conversation.
  const agents = groupBy(records, (record) =>
    record['isSidechain'] === true ? `agent ${nameAt(record, 'agentId')}` : 'main',
  );
  return [...agents.values()].flatMap((lines) => {
    const session = createSession();
    for (const record of lines) {
      const message = objectAt(record, 'message');
      if (record['subtype'] === 'compact_boundary') session.restart();
      if (!message || record['isApiErrorMessage'] === true) continue;
      const at = timeOf(record['timestamp']);
      const id = textAt(message, 'id');
      for (const block of blocksOf(message['content'])) addClaudeBlock(session, record, block, id, at);
      const usage = objectAt(message, 'usage');
      if (record['type'] !== 'assistant' || !usage || textAt(message, 'model') === '<synthetic>') continue;
      session.call({ id, at, model: textAt(message, 'model'), usage: claudeUsage(usage) });
    }
    return session.done();
  });
};

function addClaudeBlock(
  session: SessionBuilder,
  record: SessionRecord,
  block: SessionRecord,
  id: string | undefined,
  at: number,
): void {
  const text = textAt(block, 'text') ?? '';
  if (block['type'] === 'tool_result')
    session.result(nameAt(block, 'tool_use_id'), plainText(block['content']));
  else if (record['type'] === 'user') session.user(text);
  else if (block['type'] === 'tool_use') {
    const use = { id: nameAt(block, 'id'), name: nameAt(block, 'name'), argumentsJson: json(block['input']) };
    session.assistant(id, at, { use });
  } else if (record['type'] === 'assistant') session.assistant(id, at, { text });
}

function claudeUsage(usage: SessionRecord): Usage {
  const cacheRead = numberAt(usage, 'cache_read_input_tokens');
  const cacheWrite = numberAt(usage, 'cache_creation_input_tokens');
  const long = numberAt(objectAt(usage, 'cache_creation'), 'ephemeral_1h_input_tokens');
  return {
    input: numberAt(usage, 'input_tokens') + cacheRead + cacheWrite,
    cacheRead,
    cacheWrite,
    ...(long === 0 ? {} : { cacheWriteLong: long }),
    output: numberAt(usage, 'output_tokens'),
  };
}

/** Codex: `response_item` lines of the Responses format; usage in `token_usage_record` lines, in older versions in `token_count` events. */
export const readCodex: SessionReader = (records) => {
  const session = createSession();
  const hasRecords = records.some(({ type }) => type === 'token_usage_record');
  let model: string | undefined;
  let total = '';
  for (const record of records) {
    const payload = objectAt(record, 'payload');
    if (!payload) continue;
    const at = timeOf(record['timestamp']);
    if (record['type'] === 'turn_context') model = textAt(payload, 'model') ?? model;
    if (record['type'] === 'compacted') {
      session.restart();
      session.user(textAt(payload, 'message') ?? '');
    }
    if (record['type'] === 'response_item') addCodexItem(session, payload, at);
    if (record['type'] === 'token_usage_record') {
      const usage = objectAt(payload, 'usage');
      if (usage) session.call({ id: textAt(payload, 'response_id'), at, model, usage: openAiUsage(usage) });
    }
    const last = objectAt(payload, 'info', 'last_token_usage');
    if (hasRecords || payload['type'] !== 'token_count' || !last) continue;
    // The event is repeated when only the rate limits have changed.
    const now = JSON.stringify(objectAt(payload, 'info', 'total_token_usage') ?? at);
    if (now !== total) session.call({ id: undefined, at, model, usage: openAiUsage(last) });
    total = now;
  }
  return session.done();
};

function addCodexItem(session: SessionBuilder, item: SessionRecord, at: number): void {
  const type = nameAt(item, 'type');
  const text = plainText(item['content']);
  if (type === 'message' && item['role'] === 'assistant') session.assistant(undefined, at, { text });
  // Instructions and the environment are sent as messages, too.
  else if (type === 'message') session.user(text);
  else if (type.endsWith('_call_output'))
    session.result(nameAt(item, 'call_id'), plainText(item['output']) || json(item['output']));
  else if (type.endsWith('_call') && item['call_id'] !== undefined) {
    const given = item['arguments'] ?? item['input'] ?? item['action'];
    const argumentsJson = type === 'function_call' ? String(given) : json({ input: given });
    session.assistant(undefined, at, {
      use: { id: nameAt(item, 'call_id'), name: textAt(item, 'name') ?? type, argumentsJson },
    });
  }
}

function openAiUsage(usage: SessionRecord): Usage {
  return {
    input: numberAt(usage, 'input_tokens'),
    cacheRead: numberAt(usage, 'cached_input_tokens'),
    cacheWrite: numberAt(usage, 'cache_write_input_tokens'),
    output: numberAt(usage, 'output_tokens'),
  };
}

/** Gemini CLI: a line for each message; a repeated id replaces the message, and `$rewindTo` drops all after one. */
export const readGeminiCli: SessionReader = (records) => {
  let messages: SessionRecord[] = [];
  const put = (message: SessionRecord): void => {
    const known = messages.findIndex(({ id }) => id !== undefined && id === message['id']);
    if (known < 0) messages.push(message);
    else messages[known] = { ...messages[known], ...message };
  };
  for (const record of records) {
    const rewound = textAt(record, '$rewindTo');
    if (rewound !== undefined) {
      const at = messages.findIndex(({ id }) => id === rewound);
      messages = at < 0 ? [] : messages.slice(0, at);
    }
    const changes = objectAt(record, '$set') ?? objectAt(record, '$patch');
    for (const list of [record['messages'], changes?.['messages']]) {
      if (Array.isArray(list)) messages = (list as readonly SessionRecord[]).slice();
    }
    if (record['type'] === 'user' || record['type'] === 'gemini') put(record);
  }
  const session = createSession();
  for (const message of messages) {
    const at = timeOf(message['timestamp']);
    const text = plainText(message['content']);
    if (message['type'] === 'user') session.user(text);
    if (message['type'] !== 'gemini') continue;
    const id = textAt(message, 'id');
    session.assistant(id, at, { text });
    const uses = Array.isArray(message['toolCalls'])
      ? (message['toolCalls'] as readonly SessionRecord[])
      : [];
    for (const use of uses) {
      const argumentsJson = json(use['args']);
      session.assistant(id, at, { use: { id: nameAt(use, 'id'), name: nameAt(use, 'name'), argumentsJson } });
    }
    for (const use of uses) session.result(nameAt(use, 'id'), geminiResult(use['result']));
    const tokens = objectAt(message, 'tokens');
    if (tokens) session.call({ id, at, model: textAt(message, 'model'), usage: geminiUsage(tokens) });
  }
  return session.done();
};

function geminiResult(result: unknown): string {
  const parts = (Array.isArray(result) ? result : [result]) as readonly unknown[];
  return parts
    .map((part) => {
      const response = objectAt(part, 'functionResponse', 'response');
      return textAt(response, 'output') ?? (response ? json(response) : plainText(part));
    })
    .join('\n');
}

function geminiUsage(tokens: SessionRecord): Usage {
  return {
    input: numberAt(tokens, 'input') + numberAt(tokens, 'tool'),
    cacheRead: numberAt(tokens, 'cached'),
    cacheWrite: 0,
    output: numberAt(tokens, 'output') + numberAt(tokens, 'thoughts'),
  };
}

/** pi: a tree of entries by `parentId`, of which the path to the newest entry is the conversation; all branches were paid. */
export const readPi: SessionReader = (records) => {
  const byId = new Map(records.map((record) => [record['id'], record] as const));
  const path: SessionRecord[] = [];
  let entry = records.findLast(({ parentId }) => parentId !== undefined);
  while (entry !== undefined && path.length <= records.length) {
    path.unshift(entry);
    entry = byId.get(entry['parentId']);
  }
  const onPath = new Set(path.map(({ id }) => id));
  const session = createSession();
  for (const record of records) {
    const message = objectAt(record, 'message');
    const at = timeOf(record['timestamp']);
    if (onPath.has(record['id'])) {
      if (record['type'] === 'compaction') {
        session.restart();
        session.user(textAt(record, 'summary') ?? '');
      }
      if (message) addPiMessage(session, message, nameAt(record, 'id'), at);
    }
    const usage = objectAt(message, 'usage');
    if (message?.['role'] !== 'assistant' || !usage) continue;
    const cacheRead = numberAt(usage, 'cacheRead');
    const cacheWrite = numberAt(usage, 'cacheWrite');
    const input = numberAt(usage, 'input') + cacheRead + cacheWrite;
    const output = numberAt(usage, 'output');
    const id = nameAt(record, 'id');
    session.call({
      id,
      at,
      model: textAt(message, 'model'),
      usage: { input, cacheRead, cacheWrite, output },
    });
  }
  return session.done();
};

function addPiMessage(session: SessionBuilder, message: SessionRecord, id: string, at: number): void {
  if (message['role'] === 'user') session.user(plainText(message['content']));
  if (message['role'] === 'toolResult')
    session.result(nameAt(message, 'toolCallId'), plainText(message['content']));
  if (message['role'] !== 'assistant') return;
  for (const block of blocksOf(message['content'])) {
    if (block['type'] === 'text') session.assistant(id, at, { text: textAt(block, 'text') ?? '' });
    if (block['type'] !== 'toolCall') continue;
    const argumentsJson = json(block['arguments']);
    session.assistant(id, at, {
      use: { id: nameAt(block, 'id'), name: nameAt(block, 'name'), argumentsJson },
    });
  }
}

/** Qwen Code: a line for each message of the generateContent format, with its `usageMetadata`. */
export const readQwenCode: SessionReader = (records) => {
  const session = createSession();
  for (const record of records) {
    const at = timeOf(record['timestamp']);
    const id = textAt(record, 'uuid');
    if (record['subtype'] === 'chat_compression') session.restart();
    const message = objectAt(record, 'message');
    const parts = Array.isArray(message?.['parts']) ? (message['parts'] as readonly SessionRecord[]) : [];
    for (const part of parts) {
      const called = objectAt(part, 'functionCall');
      const answered = objectAt(part, 'functionResponse');
      const text = part['thought'] === true ? '' : (textAt(part, 'text') ?? '');
      if (answered) session.result(nameAt(answered, 'id'), geminiResult(part));
      else if (called) {
        const argumentsJson = json(called['args']);
        session.assistant(id, at, {
          use: { id: nameAt(called, 'id'), name: nameAt(called, 'name'), argumentsJson },
        });
      } else if (message?.['role'] === 'model') session.assistant(id, at, { text });
      else session.user(text);
    }
    const usage = objectAt(record, 'usageMetadata');
    if (!usage) continue;
    session.call({
      id,
      at,
      model: textAt(record, 'model'),
      usage: {
        input: numberAt(usage, 'promptTokenCount'),
        cacheRead: numberAt(usage, 'cachedContentTokenCount'),
        cacheWrite: 0,
        output: numberAt(usage, 'candidatesTokenCount') + numberAt(usage, 'thoughtsTokenCount'),
      },
    });
  }
  return session.done();
};

/** opencode: rows of messages and their parts, as `{ message, parts }`; a tool part holds the call and its result. */
export const readOpencode: SessionReader = (records) => {
  const session = createSession();
  for (const { message, parts } of records) {
    const at = numberAt(objectAt(message, 'time'), 'created');
    const id = textAt(message, 'id');
    const isReply = textAt(message, 'role') === 'assistant';
    for (const part of Array.isArray(parts) ? (parts as readonly SessionRecord[]) : []) {
      const text = textAt(part, 'text') ?? '';
      if (part['type'] === 'text') {
        if (isReply) session.assistant(id, at, { text });
        else session.user(text);
      }
      if (part['type'] !== 'tool') continue;
      const state = objectAt(part, 'state');
      const call = nameAt(part, 'callID');
      const argumentsJson = json(state?.['input'] ?? {});
      session.assistant(id, at, { use: { id: call, name: nameAt(part, 'tool'), argumentsJson } });
    }
    for (const part of Array.isArray(parts) ? (parts as readonly SessionRecord[]) : []) {
      const state = objectAt(part, 'state');
      if (part['type'] === 'tool')
        session.result(nameAt(part, 'callID'), textAt(state, 'output') ?? textAt(state, 'error') ?? '');
    }
    const tokens = objectAt(message, 'tokens');
    if (!isReply || !tokens) continue;
    const cacheRead = numberAt(objectAt(tokens, 'cache'), 'read');
    const cacheWrite = numberAt(objectAt(tokens, 'cache'), 'write');
    const input = numberAt(tokens, 'input') + cacheRead + cacheWrite;
    const output = numberAt(tokens, 'output') + numberAt(tokens, 'reasoning');
    session.call({
      id,
      at,
      model: textAt(message, 'modelID'),
      usage: { input, cacheRead, cacheWrite, output },
    });
  }
  return session.done();
};

/** Returns the blocks of a content; a text is one block. */
function blocksOf(content: unknown): readonly SessionRecord[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? (content as readonly SessionRecord[]) : [];
}

/** Returns the text of a content: of all of its text blocks. */
function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  const blocks = Array.isArray(content) ? (content as readonly unknown[]) : [content];
  return blocks
    .flatMap((block) => (typeof block === 'string' ? [block] : (textAt(block, 'text') ?? [])))
    .join('\n');
}

function json(value: unknown): string {
  return JSON.stringify(value ?? {});
}

/** Returns the text of a field; an empty one if there is none. */
function nameAt(value: SessionRecord, key: string): string {
  return textAt(value, key) ?? '';
}

function numberAt(value: SessionRecord | undefined, key: string): number {
  const found = value?.[key];
  return typeof found === 'number' && Number.isFinite(found) ? found : 0;
}

/** Converts a time in a file, text or milliseconds, to milliseconds; 0 if there is none. */
function timeOf(value: unknown): number {
  const ms = typeof value === 'number' ? value : Date.parse(String(value));
  return Number.isNaN(ms) ? 0 : ms;
}
