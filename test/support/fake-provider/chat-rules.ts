/** Finds what Chat Completions refuses with a 400: the rules that an edited conversation could break, in the provider's words. */
import { isObject, objectsIn } from './json.ts';
import type { JsonObject, Refusal } from './script.ts';

/** Returns the first broken rule. */
export function chatRefusal(body: JsonObject): Refusal | undefined {
  return topLevelRefusal(body) ?? messagesRefusal(body['messages'] as readonly unknown[]);
}

function topLevelRefusal(body: JsonObject): Refusal | undefined {
  if (typeof body['model'] !== 'string') return { message: 'you must provide a model parameter' };
  const { messages, tools } = body;
  if (!Array.isArray(messages)) {
    return {
      message: "Missing required parameter: 'messages'.",
      param: 'messages',
      code: 'missing_required_parameter',
    };
  }
  for (const [name, list] of Object.entries({ messages, tools })) {
    if (Array.isArray(list) && list.length === 0) {
      return {
        message: `Invalid '${name}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
        param: name,
        code: 'empty_array',
      };
    }
  }
  if (body['stream_options'] !== undefined && body['stream'] !== true) {
    return {
      message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      param: 'stream_options',
    };
  }
  return undefined;
}

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function'];

function messagesRefusal(messages: readonly unknown[]): Refusal | undefined {
  /** The calls of the last assistant message; `open` are those still without an answer. */
  let called: ReadonlySet<string> = new Set();
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const at = `messages.[${index}]`;
    const role = isObject(message) ? message['role'] : undefined;
    if (!isObject(message) || typeof role !== 'string' || !roles.includes(role)) {
      return { message: `Invalid value: '${String(role)}'.`, param: `${at}.role`, code: 'invalid_value' };
    }
    if (role === 'tool') {
      const id = message['tool_call_id'];
      const refused = answerRefusal(id, called, open, at);
      if (refused !== undefined) return refused;
      open.delete(id as string);
      continue;
    }
    if (open.size > 0) return unanswered(open, at);
    const refused = contentRefusal(message, role, index);
    if (refused !== undefined) return refused;
    called = new Set(objectsIn(message['tool_calls']).map((call) => String(call['id'])));
    open = new Set(called);
  }
  return open.size > 0 ? unanswered(open, `messages.[${messages.length - 1}]`) : undefined;
}

function answerRefusal(
  id: unknown,
  called: ReadonlySet<string>,
  open: ReadonlySet<string>,
  at: string,
): Refusal | undefined {
  if (typeof id !== 'string') {
    return {
      message: `Missing parameter 'tool_call_id': messages with role 'tool' must have it.`,
      param: at,
    };
  }
  if (open.has(id)) return undefined;
  if (called.has(id)) return { message: `Duplicate value for 'tool_call_id' of '${id}'.`, param: at };
  return {
    message:
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    param: `${at}.role`,
  };
}

function unanswered(open: ReadonlySet<string>, at: string): Refusal {
  return {
    message: `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
    param: `${at}.role`,
  };
}

function contentRefusal(message: JsonObject, role: string, index: number): Refusal | undefined {
  const at = `messages[${index}]`;
  const { content, tool_calls: calls } = message;
  const isContent = typeof content === 'string' || (Array.isArray(content) && content.length > 0);
  const { refusal, function_call: called } = message;
  const isElse = Array.isArray(calls) || typeof refusal === 'string' || isObject(called);
  const mayLack = role === 'assistant' && isElse;
  if (!isContent && !(mayLack && (content === null || content === undefined))) {
    return { message: `Invalid value for 'content': expected a string.`, param: `${at}.content` };
  }
  if (role === 'function' && typeof message['name'] !== 'string')
    return {
      message: `Missing parameter 'name': messages with role 'function' must have a 'name'.`,
      param: at,
    };
  if (calls === undefined || calls === null) return undefined;
  if (!Array.isArray(calls) || calls.length === 0) {
    return {
      message: `Invalid '${at}.tool_calls': empty array.`,
      param: `${at}.tool_calls`,
      code: 'empty_array',
    };
  }
  const bad = calls.findIndex((call) => !isCall(call));
  if (bad < 0) return undefined;
  return {
    message: `Invalid '${at}.tool_calls[${bad}]': expected an id, and a function with a name and arguments that are a string.`,
    param: `${at}.tool_calls[${bad}]`,
    code: 'invalid_type',
  };
}

function isCall(call: unknown): boolean {
  if (!isObject(call) || typeof call['id'] !== 'string') return false;
  if (call['type'] === 'custom') return isObject(call['custom']);
  const { function: called } = call;
  return isObject(called) && typeof called['name'] === 'string' && typeof called['arguments'] === 'string';
}
