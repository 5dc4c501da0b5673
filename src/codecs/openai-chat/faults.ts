/**
 * Finds the rules that a Chat Completions body breaks, with `JSON.parse` alone.
 * https://platform.openai.com/docs/api-reference/chat/create
 */
import type { JsonRecord } from '../../conversation/json-record.ts';
import { isRecord } from '../../conversation/json-record.ts';
import { isFilled, objectsOf, parsedBody, wordAt } from '../parsed-body.ts';

export function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const messages = objectsOf(parsed['messages']);
  if (messages.length === 0) return ['messages-not-empty'];
  const found: string[] = [];
  /** Calls of the last assistant message by id, each with the number of results it still waits for. */
  let open = new Map<string, number>();
  let isAsked = false;
  const close = () => {
    for (const left of open.values()) if (left > 0) found.push('calls-answered-next');
    open = new Map();
  };
  for (const [index, message] of messages.entries()) {
    if (message['role'] === 'tool') {
      const id = String(message['tool_call_id']);
      const left = open.get(id);
      if (left === undefined || !isAsked) found.push('results-answer-calls');
      else if (left === 0) found.push('one-result-a-call');
      else open.set(id, left - 1);
      if (message['content'] === undefined) found.push('content-not-empty');
      continue;
    }
    close();
    found.push(...messageFaults(message, messages[index - 1]));
    const calls = objectsOf(message['tool_calls']).map(({ id }) => String(id));
    isAsked = message['role'] === 'assistant';
    open = new Map(calls.map((id) => [id, 1]));
    if (open.size < calls.length) found.push('call-ids-differ');
  }
  close();
  return found;
}

function messageFaults(message: JsonRecord, before: JsonRecord | undefined): readonly string[] {
  const { role, content } = message;
  const found: string[] = [];
  if (Array.isArray(message['tool_calls']) && message['tool_calls'].length === 0)
    found.push('calls-not-empty');
  if (role === 'function' && !isAnswer(message, before)) found.push('results-answer-calls');
  const isSaid = typeof content === 'string' || isFilled(content);
  const isElse = ['tool_calls', 'function_call', 'refusal', 'audio'].some((key) => message[key]);
  if (!isSaid && !(role === 'assistant' && isElse)) found.push('content-not-empty');
  return found;
}

/** True for a result of the legacy function form: it names its function and comes right behind the call. */
function isAnswer(message: JsonRecord, before: JsonRecord | undefined): boolean {
  const called = before?.['function_call'];
  return isRecord(called) && wordAt(called, 'name') === wordAt(message, 'name');
}
