/** Request bodies of Anthropic Messages for the codec suite. */
import type { NeutralRequest, NeutralTurn, OddSpelling, RequestFixture } from '../fixture.ts';

const encoder = new TextEncoder();

export const model = 'claude-opus-4-6';

function bytes(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

export function body({ turns, tools, stream }: NeutralRequest): Uint8Array {
  const system = turns.flatMap((turn) => (turn.say === 'system' ? [turn.text] : []));
  const marked = {
    model,
    max_tokens: 4096,
    ...(system.length === 0 ? {} : { system: system.map((text) => ({ type: 'text', text })) }),
    // Arguments are in the body as the model spelled them, which no JavaScript object could hold.
    messages: turns.filter((turn) => turn.say !== 'system').map(messageOf),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map((name) => ({ name, input_schema: { type: 'object' } })) }),
    ...(stream ? { stream: true } : {}),
  };
  const inputs = turns.flatMap((turn) => (turn.say === 'assistant' ? turn.calls : []));
  let next = 0;
  return encoder.encode(
    JSON.stringify(marked).replaceAll(`"${inputMark}"`, () => inputs[next++]!.argumentsJson),
  );
}

const inputMark = 'the input of a call stands here';

function messageOf(turn: NeutralTurn): unknown {
  switch (turn.say) {
    case 'system':
    case 'user':
      return { role: 'user', content: turn.text };
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...(turn.reasoning === undefined
            ? []
            : [{ type: 'thinking', thinking: turn.reasoning, signature: 'EqQBCkYIBxgC' }]),
          ...(turn.text === undefined ? [] : [{ type: 'text', text: turn.text }]),
          ...turn.calls.map(({ id, name }) => ({ type: 'tool_use', id, name, input: inputMark })),
        ],
      };
    case 'results':
      return {
        role: 'user',
        content: turn.results.map(({ id, text }) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: text,
        })),
      };
  }
}

export const oddBodies: Readonly<Record<OddSpelling, string>> = {
  'big integers':
    '{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"n":12345678901234567890,"f":0.1000000000000000055}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r","size":9007199254740993}]}]}',
  'key order':
    '{"tools":[{"input_schema":{},"name":"f"}],"messages":[{"content":[{"text":"a","type":"text"},{"input":{"b":1,"a":2,"10":3,"9":4},"name":"f","id":"1","type":"tool_use"}],"role":"assistant"},{"content":[{"content":"r","tool_use_id":"1","type":"tool_result"}],"role":"user"}],"system":"s","10":1,"2":2}',
  'unicode escapes':
    '{"model":"\\u006d","system":"\\u00e9","messages":[{"role":"\\u0075ser","\\u0063ontent":[{"\\u0074ype":"te\\u0078t","text":"\\ud83d\\ude00\\/\\u0022 é😀"}]}]}',
  'duplicate keys':
    '{"model":"m","messages":[{"role":"user","content":"a","content":"b"},{"role":"user","content":[{"type":"text","text":"a","text":"b"},{"type":"text","text":"c"}]},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"x":1,"x":2}}]}]}',
  'unknown fields':
    '{"model":"m","x_new":{"a":[1,{"b":null}]},"messages":[{"role":"user","content":[{"type":"text","text":"a","mood":"calm"},{"type":"sculpture","stone":true}],"weight":0.5},{"role":"system","content":"Mind the time.","clear_at":"never"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s","depth":3},{"type":"text","text":"b"}]}]}',
  'lone surrogates':
    '{"model":"m","messages":[{"role":"user","content":"\\ud800"},{"role":"assistant","content":[{"type":"text","text":"a\\udc00b"},{"type":"tool_use","id":"\\ud83d","name":"f","input":{"s":"\\ud800"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"\\ud83d","content":[{"type":"text","text":"\\ude00\\ud83d"}]}]}]}',
  'white space':
    ' \r\n{\t"model" : "m" ,\n"system" : [ { "type" : "text" , "text" : "s" } ] , "messages" : [ { "role" : "user" , "content" : [ { "type" : "text" , "text" : "a" } , { "type":"text","text":"b"} ] } ,\n\n {"role":"assistant","content":"c"}\t] , "tools":[ ] } \n',
  'messages first and last':
    '{"messages":[{"content":"a","role":"user"},{"role":"assistant","content":"b"}]}',
  'numbers spelled oddly':
    '{"model":"m","temperature":1.0,"top_p":1E-0,"max_tokens":40e2,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"n":1.50,"e":1e400,"z":-0}}]}]}',
};

export const refused: RequestFixture['refused'] = {
  'messages that are no list': '{"model":"m","messages":{}}',
  'messages of null': '{"model":"m","messages":null}',
  'a message that is no object': '{"model":"m","messages":[1]}',
  'a message without a role': '{"model":"m","messages":[{"content":"a"}]}',
  'a message of an unknown role': '{"model":"m","messages":[{"role":"narrator","content":"a"}]}',
  'a message of a role that means something to JavaScript':
    '{"model":"m","messages":[{"role":"toString","content":"a"}]}',
  'messages twice': '{"model":"m","messages":[],"messages":[]}',
};

const first = (content: unknown) =>
  bytes({
    model: 'm',
    messages: [
      { role: 'user', content },
      { role: 'assistant', content: 'b' },
    ],
  });
const mark = { type: 'ephemeral' };
const text = (said: string, more: object = {}) => ({ type: 'text', text: said, ...more });

function result(content: unknown, more: object = {}): Uint8Array {
  const call = { type: 'tool_use', id: '1', name: 'f', input: {} };
  return bytes({
    model: 'm',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [call] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content, ...more }] },
    ],
  });
}

export const sameMeaning = [
  [
    'a mark on a block',
    first([text('a'), text('b')]),
    first([text('a'), text('b', { cache_control: mark })]),
  ],
  [
    'a mark that moves',
    first([text('a', { cache_control: mark }), text('b')]),
    first([text('a'), text('b', { cache_control: { ...mark, ttl: '1h' } })]),
  ],
  ['a text spelled as a string or as one block', first('a "b"\n'), first([text('a "b"\n')])],
  [
    'a text spelled as a block to carry a mark',
    first('a'),
    first([{ cache_control: mark, text: 'a', type: 'text' }]),
  ],
  ['a mark on a result', result('r'), result('r', { cache_control: mark })],
  ['a mark inside a result', result([text('r')]), result([text('r', { cache_control: mark })])],
  ['a result spelled as a string or as one block', result('r'), result([text('r')])],
] as const;

const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: { a: 'secret' } });
const answer = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'secret' });
const user = (...content: readonly unknown[]) => ({ role: 'user', content });
const assistant = (...content: readonly unknown[]) => ({ role: 'assistant', content });
const secret = text('secret');
const broken = (...messages: readonly unknown[]) => bytes({ model: 'm', max_tokens: 1, messages });

export const brokenBodies: Readonly<Record<string, Uint8Array>> = {
  'first-is-user': broken(assistant(secret), user(secret)),
  'content-not-empty': broken(user(), assistant(secret)),
  'text-not-empty': broken(user(text('')), assistant(secret)),
  'call-ids-differ': broken(
    user(secret),
    assistant(use('1'), secret),
    assistant(use('1')),
    user(answer('1')),
  ),
  'results-come-first': broken(user(secret), assistant(use('1')), user(secret, answer('1'))),
  'results-answer-calls': broken(user(secret), assistant(use('1')), user(answer('1'), answer('2'))),
  'calls-answered-next': broken(user(secret), assistant(use('1'), use('2')), user(answer('2'), secret)),
  'one-result-a-call': broken(user(secret), assistant(use('1')), user(answer('1')), user(answer('1'))),
};
