/** Request bodies of OpenAI Responses for the codec suite. */
import type { NeutralRequest, NeutralTurn, OddSpelling, RequestFixture } from '../fixture.ts';

const encoder = new TextEncoder();

export const model = 'responses-large';

export function bytes(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

export function body({ turns, tools, stream }: NeutralRequest): Uint8Array {
  return bytes({
    model,
    input: turns.flatMap(itemsOf),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map((name) => ({
            type: 'function',
            name,
            parameters: { type: 'object' },
            strict: false,
          })),
        }),
    ...(stream ? { stream: true } : {}),
    store: false,
    include: ['reasoning.encrypted_content'],
  });
}

function itemsOf(turn: NeutralTurn): readonly unknown[] {
  switch (turn.say) {
    case 'system':
      return [{ role: 'developer', content: turn.text }];
    case 'user':
      return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: turn.text }] }];
    case 'assistant':
      return [
        ...(turn.reasoning === undefined ? [] : [reasoningItem(turn.reasoning)]),
        ...(turn.text === undefined ? [] : [messageItem(turn.text)]),
        ...turn.calls.map(({ id, name, argumentsJson }) => ({
          type: 'function_call',
          call_id: id,
          name,
          arguments: argumentsJson,
        })),
      ];
    case 'results':
      return turn.results.map(({ id, text }) => ({
        type: 'function_call_output',
        call_id: id,
        output: text,
      }));
  }
}

export function reasoningItem(text: string, id = 'rs_1_0') {
  return {
    id,
    type: 'reasoning',
    summary: [{ type: 'summary_text', text }],
    encrypted_content: 'gAAAAABo',
  };
}

export function messageItem(text: string, id = 'msg_1') {
  return {
    id,
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', annotations: [], logprobs: [], text }],
  };
}

export const oddBodies: Readonly<Record<OddSpelling, string>> = {
  'big integers':
    '{"model":"m","seed":12345678901234567890,"input":[{"role":"user","content":"a","n":9007199254740993}]}',
  'key order':
    '{"tools":[{"parameters":{},"name":"f","type":"function"}],"input":[{"content":[{"text":"a","type":"output_text"}],"role":"assistant"},{"arguments":"{}","name":"f","call_id":"1","type":"function_call"},{"output":"r","call_id":"1","type":"function_call_output"}],"model":"m","10":1,"2":2}',
  'unicode escapes':
    '{"model":"\\u006d","input":[{"role":"\\u0075ser","\\u0063ontent":"\\u00e9\\ud83d\\ude00\\/\\u0022 é😀"}]}',
  'duplicate keys':
    '{"model":"m","input":[{"role":"user","content":"a","content":"b"},{"role":"user","content":[{"type":"input_text","text":"a","text":"b"},{"type":"input_text","text":"c"}]},{"role":"user","content":"c","x":{"y":1,"y":2}},{"type":"reasoning","summary":[{"text":"a","text":"b"}]},{"type":"message","role":"assistant","content":"d"}]}',
  'unknown fields':
    '{"model":"m","x_new":{"a":[1,{"b":null}]},"input":[{"role":"user","content":[{"type":"input_text","text":"a","mood":"calm"},{"type":"sculpture","stone":true}],"weight":0.5},{"type":"dream","of":[{"sheep":1}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}","namespace":"n","extra":{"signature":"abc"}}]}',
  'lone surrogates':
    '{"model":"m","instructions":"\\udbff","input":[{"role":"user","content":"\\ud800"},{"type":"custom_tool_call","call_id":"\\ud83d","name":"f","input":"a\\udc00b"},{"type":"custom_tool_call_output","call_id":"\\ud83d","output":[{"type":"input_text","text":"\\ude00\\ud83d"}]}]}',
  'white space':
    ' \r\n{\t"model" : "m" ,\n"input" : [ { "role" : "user" , "content" : [ { "type" : "input_text" , "text" : "a" } , { "type":"input_text","text":"b"} ] } ,\n\n {"role":"assistant","content":"c"}\t] , "tools":[ ] } \n',
  'messages first and last': '{"input":[{"content":"a","role":"user"},{"role":"assistant","content":"b"}]}',
  'numbers spelled oddly':
    '{"model":"m","temperature":1.0,"top_p":1E-0,"max_output_tokens":-0,"input":[{"role":"user","content":"a","w":1e400},{"type":"function_call","call_id":"1","index":0.0,"name":"f","arguments":"{\\"n\\":1.50}"}]}',
};

export const refused: RequestFixture['refused'] = {
  'messages that are no list': '{"model":"m","input":{}}',
  'messages of null': '{"model":"m","input":null}',
  'a message that is no object': '{"model":"m","input":[1]}',
  'a message without a role': '{"model":"m","input":[{"type":"message","content":"a"}]}',
  'a message of an unknown role': '{"model":"m","input":[{"role":"narrator","content":"a"}]}',
  'a message of a role that means something to JavaScript':
    '{"model":"m","input":[{"role":"toString","content":"a"}]}',
  'messages twice': '{"model":"m","input":[],"input":[]}',
};

const mark = { mode: 'explicit' };
const spelled = (content: unknown, output: unknown = 'r') =>
  bytes({
    model: 'm',
    input: [
      { role: 'user', content },
      { type: 'function_call', call_id: '1', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: '1', output },
    ],
  });
const part = (text: string, more: object = {}) => ({ type: 'input_text', text, ...more });
const marked = { prompt_cache_breakpoint: mark };

export const sameMeaning = [
  ['a mark on a part', spelled([part('a'), part('b')]), spelled([part('a'), part('b', marked)])],
  ['a text spelled as a string or as one part', spelled('a'), spelled([part('a')])],
  [
    'a text that is spelled as a part to carry a mark',
    spelled('a "b"\n'),
    spelled([part('a "b"\n', marked)]),
  ],
  ['an output that is spelled as a part to carry a mark', spelled('a'), spelled('a', [part('r', marked)])],
] as const;

const user = { role: 'user', content: 'secret' };
const thought = (id: string) => reasoningItem('secret', id);
const said = messageItem('secret');
const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '"secret"' });
const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'secret' });
const broken = (...input: readonly unknown[]) => bytes({ model: 'm', input });

export const brokenBodies: Readonly<Record<string, Uint8Array>> = {
  'messages-not-empty': broken(),
  'calls-answered-next': broken(user, call('1'), call('2'), output('2'), user),
  'results-answer-calls': broken(user, said, output('1'), user),
  'one-result-a-call': broken(user, call('1'), output('1'), user, output('1')),
  'call-ids-differ': broken(user, call('1'), call('1'), output('1')),
  'approvals-answer-requests': broken(user, {
    type: 'mcp_approval_response',
    approval_request_id: 'mcpr_1',
    approve: true,
    reason: 'secret',
  }),
  'reasoning-is-followed': broken(user, thought('rs_1'), thought('rs_2'), said),
  'compaction-trigger-is-last': broken(user, { type: 'compaction_trigger' }, user),
};
