/** Exchanges of Anthropic Messages as its servers stream them, written by hand: pings, odd spaces, signed thinking, citations. */
import type { StreamFixture } from '../fixture.ts';

const start = (id: string, usage: string) =>
  `{"type":"message_start","message":{"model":"claude-opus-4-6","id":"${id}","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{${usage},"service_tier":"standard","inference_geo":"global"}}        }`;
const ping = '{"type": "ping"}';
const begin = (index: number, block: string) =>
  `{"type":"content_block_start","index":${index},"content_block":{${block}}              }`;
const delta = (index: number, type: string, key: string, value: string) =>
  `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${key}":${value}}       }`;
const stop = (index: number) => `{"type":"content_block_stop","index":${index}            }`;
const finish = (reason: string, usage: string) => [
  `{"type":"message_delta","delta":{"stop_reason":"${reason}","stop_sequence":null,"stop_details":null},"usage":{${usage}}             }`,
  '{"type":"message_stop"        }',
];
const text = (index: number, ...pieces: readonly string[]) => [
  begin(index, '"type":"text","text":""'),
  ...pieces.map((piece) => delta(index, 'text_delta', 'text', piece)),
  stop(index),
];
const thinking = (index: number, signature: string, ...pieces: readonly string[]) => [
  begin(index, '"type":"thinking","thinking":"","signature":""'),
  ...pieces.map((piece) => delta(index, 'thinking_delta', 'thinking', piece)),
  delta(index, 'signature_delta', 'signature', `"${signature}"`),
  stop(index),
];
const call = (index: number, id: string, name: string, ...pieces: readonly string[]) => [
  begin(index, `"type":"tool_use","id":"${id}","name":"${name}","input":{},"caller":{"type":"direct"}`),
  ...['""', ...pieces].map((piece) => delta(index, 'input_json_delta', 'partial_json', piece)),
  stop(index),
];

function sse(...events: readonly (string | readonly string[])[]): string {
  return events
    .flat()
    .map((data) => `event: ${(JSON.parse(data) as { type: string }).type}\ndata: ${data}\n\n`)
    .join('');
}

const tokens = (input: number, cacheRead: number, output: number) =>
  `"input_tokens":${input},"cache_creation_input_tokens":0,"cache_read_input_tokens":${cacheRead},"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":${output}`;

export const exchanges: StreamFixture['exchanges'] = {
  'words around a recall': {
    responses: [
      sse(
        start('msg_01A', tokens(9, 2000, 1)),
        begin(0, '"type":"text","text":""'),
        ping,
        delta(0, 'text_delta', 'text', '"Één"'),
        delta(0, 'text_delta', 'text', '" moment \u{1f600}… "'),
        stop(0),
        call(1, 'toolu_01', 'read_memory', '"{\\"id\\": \\"mem_"', '"雨\\"}"'),
        finish('tool_use', '"output_tokens":31'),
      ),
      sse(
        start('msg_01B', tokens(12, 2040, 4)),
        ping,
        text(0, '"It rains in 東"', '"京 \\u2614."'),
        finish('end_turn', '"output_tokens":17'),
      ),
    ],
    client: {
      text: 'Één moment \u{1f600}… It rains in 東京 ☔.',
      reasoning: '',
      calls: [],
      finish: 'stop',
      usage: { input: 4061, cacheRead: 4040, cacheWrite: 0, output: 48 },
      error: undefined,
    },
  },
  'sealed reasoning before two recalls': {
    responses: [
      sse(
        start('msg_02A', tokens(10, 0, 2)),
        thinking(0, 'EqQBCkYIBxgCKkA=', '"Where "', '"was it?"'),
        begin(1, '"type":"redacted_thinking","data":"EmwKAhgBEgy3va3p"'),
        stop(1),
        call(2, 'toolu_02', 'read_memory', '"{\\"id\\":\\"m1\\"}"'),
        finish('tool_use', '"output_tokens":40,"output_tokens_details":{"thinking_tokens":22}'),
      ),
      sse(
        start('msg_02B', tokens(60, 0, 2)),
        thinking(0, 'EqQBCkYIBxgCKkB='),
        call(1, 'toolu_03', 'read_memory', '"{\\"id\\":\\"m1\\",\\"li"', '"nes\\":\\"1-9\\"}"'),
        finish('tool_use', '"output_tokens":20'),
      ),
      sse(
        start('msg_02C', tokens(90, 0, 2)),
        thinking(0, 'EqQBCkYIBxgCKkC=', '" There."'),
        text(1, '"In the cellar."'),
        finish('end_turn', '"output_tokens":8'),
      ),
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
      sse(
        start('msg_03', tokens(30, 0, 1)),
        text(0, '"Three things."'),
        call(1, 'toolu_04', 'run', '"{\\"cmd\\": \\"ls — l\\"}"'),
        call(2, 'toolu_05', 'read_memory', '"{\\"id\\":"', '"\\"m1\\"}"'),
        call(3, 'toolu_06', 'read', '"{\\"path\\""', '":\\"a.ts\\"}"'),
        finish('tool_use', '"output_tokens":55'),
      ),
    ],
    client: {
      text: 'Three things.',
      reasoning: '',
      calls: [
        { id: 'toolu_04', name: 'run', argumentsJson: '{"cmd": "ls — l"}' },
        { id: 'toolu_06', name: 'read', argumentsJson: '{"path":"a.ts"}' },
      ],
      finish: 'calls',
      usage: { input: 30, cacheRead: 0, cacheWrite: 0, output: 55 },
      error: undefined,
    },
  },
  'tools that the provider runs': {
    responses: [
      sse(
        start('msg_04A', tokens(20, 0, 1)),
        begin(0, '"type":"server_tool_use","id":"srvtoolu_01","name":"web_search","input":{}'),
        delta(0, 'input_json_delta', 'partial_json', '"{\\"query\\": \\"météo\\"}"'),
        stop(0),
        begin(
          1,
          '"type":"web_search_tool_result","tool_use_id":"srvtoolu_01","content":[{"type":"web_search_result","title":"Météo","url":"https://example.com/m","encrypted_content":"EqMBCio=","page_age":null}]',
        ),
        stop(1),
        begin(2, '"citations":[],"type":"text","text":""'),
        delta(
          2,
          'citations_delta',
          'citation',
          '{"type":"web_search_result_location","cited_text":"Il pleut.","url":"https://example.com/m","title":"Météo","encrypted_index":"Eo8B"}',
        ),
        delta(2, 'text_delta', 'text', '"It rains. "'),
        stop(2),
        call(3, 'toolu_07', 'read_memory', '"{\\"id\\":\\"m1\\"}"'),
        finish(
          'tool_use',
          '"input_tokens":1420,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":70,"server_tool_use":{"web_search_requests":1,"web_fetch_requests":0}',
        ),
      ),
      sse(
        start('msg_04B', tokens(1500, 0, 1)),
        text(0, '"As it did then."'),
        finish('end_turn', '"output_tokens":6'),
      ),
    ],
    client: {
      text: 'It rains. As it did then.',
      reasoning: '',
      calls: [],
      finish: 'stop',
      usage: { input: 2920, cacheRead: 0, cacheWrite: 0, output: 76 },
      error: undefined,
    },
  },
};
