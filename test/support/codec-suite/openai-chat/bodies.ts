/** Request bodies of Chat Completions for the codec suite. */
import type { NeutralRequest, NeutralTurn, OddSpelling, RequestFixture } from '../fixture.ts';

const encoder = new TextEncoder();

export const model = 'chat-large';

export function bytes(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

export function body({ turns, tools, stream }: NeutralRequest): Uint8Array {
  return bytes({
    model,
    messages: turns.flatMap(messagesOf),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map((name) => ({
            type: 'function',
            function: { name, parameters: { type: 'object' } },
          })),
        }),
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    temperature: 0.7,
  });
}

function messagesOf(turn: NeutralTurn): readonly unknown[] {
  switch (turn.say) {
    case 'system':
    case 'user':
      return [{ role: turn.say, content: turn.text }];
    case 'assistant':
      return [
        {
          role: 'assistant',
          ...(turn.reasoning === undefined ? {} : { reasoning_content: turn.reasoning }),
          content: turn.text ?? null,
          ...(turn.calls.length === 0 ? {} : { tool_calls: turn.calls.map(callOf) }),
        },
      ];
    case 'results':
      return turn.results.map(({ id, text }) => ({ role: 'tool', tool_call_id: id, content: text }));
  }
}

function callOf(call: { readonly id: string; readonly name: string; readonly argumentsJson: string }) {
  return { id: call.id, type: 'function', function: { name: call.name, arguments: call.argumentsJson } };
}

export const oddBodies: Readonly<Record<OddSpelling, string>> = {
  'big integers':
    '{"model":"m","seed":12345678901234567890,"messages":[{"role":"user","content":"a","id":9007199254740993}]}',
  'key order':
    '{"tools":[{"function":{"parameters":{},"name":"f"},"type":"function"}],"messages":[{"tool_calls":[{"function":{"arguments":"{}","name":"f"},"type":"function","id":"1"}],"content":"a","role":"assistant"},{"content":"r","tool_call_id":"1","role":"tool"}],"model":"m","10":1,"2":2}',
  'unicode escapes':
    '{"model":"\\u006d","messages":[{"role":"\\u0075ser","\\u0063ontent":"\\u00e9\\ud83d\\ude00\\/\\u0022 é😀"}]}',
  'duplicate keys':
    '{"model":"m","messages":[{"role":"user","content":"a","content":"b"},{"role":"user","content":[{"type":"text","text":"a","text":"b"},{"type":"text","text":"c"}]},{"role":"user","content":"c","x":{"y":1,"y":2}}]}',
  'unknown fields':
    '{"model":"m","x_new":{"a":[1,{"b":null}]},"messages":[{"role":"user","content":[{"type":"text","text":"a","mood":"calm"},{"type":"sculpture","stone":true}],"weight":0.5},{"role":"assistant","content":null,"thoughts":{"n":1},"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}","strict":true},"extra_content":{"signature":"abc"}}]}]}',
  'lone surrogates':
    '{"model":"m","messages":[{"role":"user","content":"\\ud800"},{"role":"assistant","content":"a\\udc00b","tool_calls":[{"id":"\\ud83d","type":"function","function":{"name":"f","arguments":"\\"\\\\ud800\\""}}]},{"role":"tool","tool_call_id":"\\ud83d","content":[{"type":"text","text":"\\ude00\\ud83d"}]}]}',
  'white space':
    ' \r\n{\t"model" : "m" ,\n"messages" : [ { "role" : "user" , "content" : [ { "type" : "text" , "text" : "a" } , { "type":"text","text":"b"} ] } ,\n\n {"role":"assistant","content":"c"}\t] , "tools":[ ] } \n',
  'messages first and last':
    '{"messages":[{"content":"a","role":"user"},{"role":"assistant","content":"b"}]}',
  'numbers spelled oddly':
    '{"model":"m","temperature":1.0,"top_p":1E-0,"max_tokens":-0,"messages":[{"role":"user","content":"a","w":1e400},{"role":"assistant","tool_calls":[{"id":"1","index":0.0,"type":"function","function":{"name":"f","arguments":"{\\"n\\":1.50}"}}]}]}',
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

const withMarks = (content: unknown, more: object = {}) =>
  bytes({
    model: 'm',
    messages: [
      { role: 'user', content, ...more },
      { role: 'assistant', content: 'b' },
    ],
  });
const mark = { type: 'ephemeral' };

export const sameMeaning = [
  [
    'a mark on a part',
    withMarks([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]),
    withMarks([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b', cache_control: mark },
    ]),
  ],
  ['a mark on a message', withMarks('a'), withMarks('a', { cache_control: mark })],
  ['a text spelled as a string or as one part', withMarks('a'), withMarks([{ type: 'text', text: 'a' }])],
  [
    'a text that is spelled as a part to carry a mark',
    withMarks('a "b"\n'),
    withMarks([{ cache_control: mark, text: 'a "b"\n', type: 'text' }]),
  ],
] as const;

const asked = (...calls: readonly string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: calls.map((id) => callOf({ id, name: 'f', argumentsJson: '{"a":"secret"}' })),
});
const answered = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'secret' });
const user = { role: 'user', content: 'secret' };
const broken = (...messages: readonly unknown[]) => bytes({ model: 'm', messages });

export const brokenBodies: Readonly<Record<string, Uint8Array>> = {
  'content-not-empty': broken(user, { role: 'assistant', reasoning_content: 'secret', content: null }, user),
  'call-ids-differ': broken(user, asked('1', '1'), answered('1')),
  'results-answer-calls': broken(user, asked('1'), answered('1'), user, answered('1')),
  'calls-answered-next': broken(
    user,
    asked('1', '2'),
    answered('2'),
    { role: 'system', content: 'secret' },
    user,
  ),
};
