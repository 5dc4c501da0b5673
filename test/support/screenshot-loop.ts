/**
 * Builds the requests of a computer-use agent in each wire format: in every step the model calls `computer`, and the result holds a
 * screenshot. In Chat Completions, whose tool messages hold text only, the client sends the screenshot as a message of the user after it.
 */
import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { ScriptFormat } from './fake-provider/script.ts';

/** A computer-use agent in one format. */
export type ScreenshotLoop = {
  readonly path: (streaming: boolean) => string;
  /** Returns the messages of one step: the model's call, and its result with the screenshot. */
  readonly step: (number: number) => readonly object[];
  /** Returns the request with these messages after the task. */
  readonly body: (messages: readonly object[], streaming: boolean) => object;
  /** Returns the list of messages of a request. */
  readonly messagesOf: (body: Readonly<Record<string, unknown>>) => readonly unknown[];
  readonly says: (role: 'user' | 'model', text: string) => object;
  /** Returns a reply of the model that only recalls an original, as `ModelReply.turn` has it. */
  readonly recallTurn: (callId: string, id: string) => unknown;
  readonly model: string;
};

/** Width and height of every screenshot, in pixels. */
const [width, height] = [1_280, 800];

/** Returns the base64 of a PNG with the right size in its header and `bytes` bytes that differ with the number. */
export function screenshot(number: number, bytes: number): string {
  const head = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
  const size = Buffer.alloc(8);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  const seed = createHash('sha512').update(`screenshot ${number}`).digest();
  const rest = Buffer.alloc(Math.max(64, bytes - 24), seed);
  return Buffer.concat([head, size, rest]).toString('base64');
}

/** The arguments of the call of a step. */
export function actionOf(number: number): {
  readonly action: string;
  readonly coordinate: readonly number[];
} {
  return { action: 'left_click', coordinate: [(number * 37) % width, (number * 53) % height] };
}

const task = 'Book the cheapest flight from Bern to Porto in May. Compare all dates.';
const description = 'Acts on the screen, and returns a screenshot.';
const parameters = {
  type: 'object',
  properties: {
    action: { type: 'string' },
    coordinate: { type: 'array', items: { type: 'integer' } },
  },
};
const done = 'Clicked.';

/** The formats of the loops: those of the scripts, and OpenAI Responses with its own computer tool, whose calls come after reasoning. */
export type LoopFormat = ScriptFormat | 'computer tool';

/** Returns the loop of a format with screenshots of so many bytes. */
export function screenshotLoop(format: LoopFormat, bytes: number): ScreenshotLoop {
  const url = (number: number) => `data:image/png;base64,${screenshot(number, bytes)}`;
  const listOf =
    (key: string): ScreenshotLoop['messagesOf'] =>
    (body) =>
      body[key] as readonly unknown[];
  switch (format) {
    case 'chat':
      return {
        model: 'gpt-4o',
        path: () => '/v1/chat/completions',
        says: (role, content) => ({ role: role === 'model' ? 'assistant' : role, content }),
        recallTurn: (callId, id) => ({
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: callId,
              type: 'function',
              function: { name: 'read_memory', arguments: JSON.stringify({ id }) },
            },
          ],
        }),
        step: (number) => [
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                id: `call_${number}`,
                type: 'function',
                function: { name: 'computer', arguments: JSON.stringify(actionOf(number)) },
              },
            ],
          },
          { role: 'tool', tool_call_id: `call_${number}`, content: done },
          { role: 'user', content: [{ type: 'image_url', image_url: { url: url(number) } }] },
        ],
        body: (messages, stream) => ({
          model: 'gpt-4o',
          stream,
          tools: [{ type: 'function', function: { name: 'computer', description, parameters } }],
          messages: [{ role: 'user', content: task }, ...messages],
        }),
        messagesOf: listOf('messages'),
      };
    case 'responses':
      return {
        model: 'gpt-4o',
        path: () => '/v1/responses',
        says: (role, content) => ({ type: 'message', role: role === 'model' ? 'assistant' : role, content }),
        recallTurn: (callId, id) => [
          { type: 'function_call', call_id: callId, name: 'read_memory', arguments: JSON.stringify({ id }) },
        ],
        step: (number) => [
          {
            type: 'function_call',
            call_id: `call_${number}`,
            name: 'computer',
            arguments: JSON.stringify(actionOf(number)),
          },
          {
            type: 'function_call_output',
            call_id: `call_${number}`,
            output: [
              { type: 'input_text', text: done },
              { type: 'input_image', image_url: url(number) },
            ],
          },
        ],
        body: (messages, stream) => ({
          model: 'gpt-4o',
          stream,
          store: false,
          tools: [{ type: 'function', name: 'computer', description, parameters, strict: false }],
          input: [{ type: 'message', role: 'user', content: task }, ...messages],
        }),
        messagesOf: listOf('input'),
      };
    case 'computer tool': {
      const responses = screenshotLoop('responses', bytes);
      return {
        ...responses,
        step: (number) => [
          { type: 'reasoning', id: `rs_${number}`, summary: [], encrypted_content: `c2ln${number}` },
          {
            type: 'computer_call',
            id: `cu_${number}`,
            call_id: `call_${number}`,
            actions: [{ type: 'click', button: 'left', x: number, y: 2 * number }],
            pending_safety_checks: [],
            status: 'completed',
          },
          {
            type: 'computer_call_output',
            call_id: `call_${number}`,
            output: { type: 'computer_screenshot', image_url: url(number) },
          },
        ],
        body: (messages, stream) => ({ ...responses.body(messages, stream), tools: [{ type: 'computer' }] }),
      };
    }
    case 'messages':
      return {
        model: 'claude-sonnet-4-5',
        path: () => '/v1/messages',
        says: (role, content) => ({ role: role === 'model' ? 'assistant' : role, content }),
        recallTurn: (callId, id) => [{ type: 'tool_use', id: callId, name: 'read_memory', input: { id } }],
        step: (number) => [
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: `call_${number}`, name: 'computer', input: actionOf(number) }],
          },
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: `call_${number}`,
                content: [
                  { type: 'text', text: done },
                  {
                    type: 'image',
                    source: { type: 'base64', media_type: 'image/png', data: screenshot(number, bytes) },
                  },
                ],
              },
            ],
          },
        ],
        body: (messages, stream) => ({
          model: 'claude-sonnet-4-5',
          stream,
          max_tokens: 1_024,
          tools: [{ name: 'computer', description, input_schema: parameters }],
          messages: [{ role: 'user', content: task }, ...messages],
        }),
        messagesOf: listOf('messages'),
      };
    case 'gemini':
      return {
        model: 'gemini-3-pro',
        path: (streaming) =>
          `/v1beta/models/gemini-3-pro:${streaming ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        says: (role, text) => ({ role, parts: [{ text }] }),
        recallTurn: (callId, id) => ({
          role: 'model',
          parts: [
            { functionCall: { id: callId, name: 'read_memory', args: { id } }, thoughtSignature: 'c2ln' },
          ],
        }),
        step: (number) => [
          {
            role: 'model',
            parts: [
              {
                functionCall: { id: `call_${number}`, name: 'computer', args: actionOf(number) },
                thoughtSignature: 'c2ln',
              },
            ],
          },
          {
            role: 'user',
            parts: [
              {
                functionResponse: {
                  id: `call_${number}`,
                  name: 'computer',
                  response: { output: done },
                  parts: [{ inlineData: { mimeType: 'image/png', data: screenshot(number, bytes) } }],
                },
              },
            ],
          },
        ],
        body: (messages) => ({
          tools: [
            { functionDeclarations: [{ name: 'computer', description, parametersJsonSchema: parameters }] },
          ],
          contents: [{ role: 'user', parts: [{ text: task }] }, ...messages],
        }),
        messagesOf: listOf('contents'),
      };
  }
}
