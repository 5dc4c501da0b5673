/** Exchanges of Chat Completions as its servers stream them, written by hand: comments while one waits, padding, reasoning in details. */
import type { StreamFixture } from '../fixture.ts';

type Said = { readonly id: string; readonly obfuscation?: string };

const chunk = ({ id, obfuscation }: Said, choices: string, usage = 'null') =>
  `data: {"id":"${id}","object":"chat.completion.chunk","created":1790000000,"model":"chat-large-2026","service_tier":"default","system_fingerprint":null,"choices":[${choices}],"usage":${usage}${obfuscation === undefined ? '' : `,"obfuscation":"${obfuscation}"`}}\n\n`;
const say = (said: Said, delta: string, finish = 'null') =>
  chunk(said, `{"index":0,"delta":{${delta}},"logprobs":null,"finish_reason":${finish}}`);
const end = (said: Said, finish: string, prompt: number, cached: number, completion: number) =>
  `${say(said, '', `"${finish}"`)}${chunk(
    said,
    '',
    `{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${prompt + completion},"prompt_tokens_details":{"cached_tokens":${cached},"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}`,
  )}data: [DONE]\n\n`;
const begin = '"role":"assistant","content":"","refusal":null';
const call = (index: number, id: string, name: string) =>
  `"tool_calls":[{"index":${index},"id":"${id}","type":"function","function":{"name":"${name}","arguments":""}}]`;
const more = (index: number, piece: string) =>
  `"tool_calls":[{"index":${index},"function":{"arguments":${piece}}}]`;
const waiting = ': OPENROUTER PROCESSING\n\n';
const detail = (type: string, key: string, value: string) =>
  `"reasoning_details":[{"type":"reasoning.${type}","${key}":${value},"format":"anthropic-claude-v1","index":0}]`;

const [a, b, c] = ['chatcmpl-A', 'chatcmpl-B', 'chatcmpl-C'].map((id) => ({ id })) as [Said, Said, Said];

export const exchanges: StreamFixture['exchanges'] = {
  'words around a recall': {
    responses: [
      [
        waiting,
        say({ ...a, obfuscation: 'Xf2' }, begin),
        say({ ...a, obfuscation: 'q' }, '"content":"Één"'),
        waiting,
        say({ ...a, obfuscation: '' }, '"content":" moment \u{1f600}… "'),
        say(a, call(0, 'call_1', 'read_memory')),
        say(a, more(0, '"{\\"id\\": \\"mem_"')),
        say(a, more(0, '"雨\\"}"')),
        end(a, 'tool_calls', 2009, 1920, 31),
      ].join(''),
      [
        waiting,
        say(b, begin),
        say(b, '"content":"It rains in 東"'),
        say(b, '"content":"京 \\u2614."'),
        end(b, 'stop', 2052, 1920, 17),
      ].join(''),
    ],
    client: {
      text: 'Één moment \u{1f600}… It rains in 東京 ☔.',
      reasoning: '',
      calls: [],
      finish: 'stop',
      usage: { input: 4061, cacheRead: 3840, cacheWrite: 0, output: 48 },
      error: undefined,
    },
  },
  'sealed reasoning before two recalls': {
    responses: [
      [
        say(a, '"role":"assistant","content":""'),
        say(a, `"content":"","reasoning_content":"Where ",${detail('text', 'text', '"Where "')}`),
        say(a, `"content":"","reasoning_content":"was it?",${detail('text', 'text', '"was it?"')}`),
        say(a, `"content":"",${detail('encrypted', 'data', '"EqQBCkYIBxgCKkA="')}`),
        say(a, `"content":null,${call(0, 'call_2', 'read_memory')}`),
        say(a, more(0, '"{\\"id\\":\\"m1\\"}"')),
        end(a, 'tool_calls', 10, 0, 40),
      ].join(''),
      [
        say(b, `"role":"assistant","content":"",${detail('encrypted', 'data', '"EqQBCkYIBxgCKkB="')}`),
        say(b, call(0, 'call_3', 'read_memory')),
        say(b, more(0, '"{\\"id\\":\\"m1\\",\\"li"')),
        say(b, more(0, '"nes\\":\\"1-9\\"}"')),
        end(b, 'tool_calls', 60, 0, 20),
      ].join(''),
      [
        say(c, '"role":"assistant","content":"","reasoning_content":" There."'),
        say(c, '"content":"In the cellar."'),
        end(c, 'stop', 90, 0, 8),
      ].join(''),
    ],
    client: {
      text: 'In the cellar.',
      reasoning: 'Where was it? There.',
      calls: [],
      finish: 'stop',
      usage: { input: 160, cacheRead: 0, cacheWrite: 0, output: 68 },
      error: undefined,
    },
  },
  'a recall among calls of the client': {
    responses: [
      [
        say(a, begin),
        say(a, '"content":"Three things."'),
        say(a, call(0, 'call_4', 'run')),
        say(a, more(0, '"{\\"cmd\\": \\"ls — l\\"}"')),
        say(a, call(1, 'call_5', 'read_memory')),
        say(a, more(1, '"{\\"id\\":"')),
        say(a, more(1, '"\\"m1\\"}"')),
        say(a, call(2, 'call_6', 'read')),
        say(a, more(2, '"{\\"path\\""')),
        say(a, more(2, '":\\"a.ts\\"}"')),
        end(a, 'tool_calls', 30, 0, 55),
      ].join(''),
    ],
    client: {
      text: 'Three things.',
      reasoning: '',
      calls: [
        { id: 'call_4', name: 'run', argumentsJson: '{"cmd": "ls — l"}' },
        { id: 'call_6', name: 'read', argumentsJson: '{"path":"a.ts"}' },
      ],
      finish: 'calls',
      usage: { input: 30, cacheRead: 0, cacheWrite: 0, output: 55 },
      error: undefined,
    },
  },
  'tools that the provider runs': {
    absent: 'A message of Chat Completions has no part for a tool that the provider runs.',
  },
};
