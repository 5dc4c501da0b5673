import { afterEach, describe, expect, it } from 'vitest';
import { startFakeProvider } from './fake-provider.ts';
import type { FakeProvider } from './fake-provider.ts';
import type { JsonObject, Script, Turn } from './script.ts';

let provider: FakeProvider;

afterEach(() => provider.close());

async function start(script: Script): Promise<void> {
  provider = await startFakeProvider({ script });
}

function send(path: string, body: unknown): Promise<Response> {
  return fetch(provider.url + path, { method: 'POST', body: JSON.stringify(body) });
}

async function ask(body: JsonObject): Promise<JsonObject> {
  return (await (await send('/v1/responses', { model: 'm', ...body })).json()) as JsonObject;
}

const turn: Turn = {
  type: 'turn',
  parts: [
    { type: 'thinking', text: 'Hm.', signature: 'sealed' },
    { type: 'text', text: 'Hi 😀!' },
    { type: 'tool-call', name: 'look', arguments: { a: 1 } },
  ],
  usage: { input: 30, output: 7, cacheRead: 20, cacheWrite: 4 },
  chunkSize: 4,
};
const items = [
  '{"id":"rs_0_0","type":"reasoning","encrypted_content":"sealed","summary":[{"type":"summary_text","text":"Hm."}]}',
  '{"id":"msg_0_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Hi 😀!"}],"role":"assistant"}',
  '{"id":"fc_0_2","type":"function_call","status":"completed","arguments":"{\\"a\\":1}","call_id":"call_0_2","name":"look"}',
];
const settings =
  '"background":false,"instructions":null,"max_output_tokens":null,"metadata":{},"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"service_tier":"default","store":true,"temperature":1,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1,"truncation":"disabled"';
const usage =
  '{"input_tokens":30,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":4},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":37}';
const response = (status: string, output: string, used: string, end = ''): string =>
  `{"id":"resp_0","object":"response","created_at":1700000000,"status":"${status}","error":null,"incomplete_details":null,"model":"m","output":[${output}],"usage":${used},${settings}${end}}`;
const whole = response('completed', items.join(), usage, ',"completed_at":1700000001');

describe('a turn of Responses', () => {
  it('is one object when it is plain', async () => {
    await start([turn]);
    const answered = await send('/v1/responses', { model: 'm', input: 'go' });
    expect(await answered.text()).toBe(whole);
  });

  it('is a list of numbered events when it is streamed', async () => {
    await start([turn]);
    const answered = await send('/v1/responses', { model: 'm', input: 'go', stream: true });
    const begun = response('in_progress', '', 'null');
    const of = (n: number, id: string): string => `"item_id":"${id}","output_index":${n}`;
    const thought = of(0, 'rs_0_0');
    const said = of(1, 'msg_0_1');
    const called = of(2, 'fc_0_2');
    const text = '{"type":"output_text","annotations":[],"logprobs":[],"text":"';
    expect(answered.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(await answered.text()).toBe(
      [
        ['response.created', `"response":${begun}`],
        ['response.in_progress', `"response":${begun}`],
        [
          'response.output_item.added',
          '"output_index":0,"item":{"id":"rs_0_0","type":"reasoning","encrypted_content":"sealed","summary":[]}',
        ],
        [
          'response.reasoning_summary_part.added',
          `${thought},"summary_index":0,"part":{"type":"summary_text","text":""}`,
        ],
        ['response.reasoning_summary_text.delta', `${thought},"summary_index":0,"delta":"Hm."`],
        ['response.reasoning_summary_text.done', `${thought},"summary_index":0,"text":"Hm."`],
        [
          'response.reasoning_summary_part.done',
          `${thought},"summary_index":0,"part":{"type":"summary_text","text":"Hm."}`,
        ],
        ['response.output_item.done', `"output_index":0,"item":${items[0]}`],
        [
          'response.output_item.added',
          '"output_index":1,"item":{"id":"msg_0_1","type":"message","status":"in_progress","content":[],"role":"assistant"}',
        ],
        ['response.content_part.added', `${said},"content_index":0,"part":${text}"}`],
        ['response.output_text.delta', `${said},"content_index":0,"delta":"Hi 😀","logprobs":[]`],
        ['response.output_text.delta', `${said},"content_index":0,"delta":"!","logprobs":[]`],
        ['response.output_text.done', `${said},"content_index":0,"text":"Hi 😀!","logprobs":[]`],
        ['response.content_part.done', `${said},"content_index":0,"part":${text}Hi 😀!"}`],
        ['response.output_item.done', `"output_index":1,"item":${items[1]}`],
        [
          'response.output_item.added',
          '"output_index":2,"item":{"id":"fc_0_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_0_2","name":"look"}',
        ],
        ['response.function_call_arguments.delta', `${called},"delta":"{\\"a\\""`],
        ['response.function_call_arguments.delta', `${called},"delta":":1}"`],
        ['response.function_call_arguments.done', `${called},"arguments":"{\\"a\\":1}"`],
        ['response.output_item.done', `"output_index":2,"item":${items[2]}`],
        ['response.completed', `"response":${whole}`],
      ]
        .map(
          ([type, data], n) => `event: ${type}\ndata: {"type":"${type}","sequence_number":${n},${data}}\n\n`,
        )
        .join(''),
    );
  });

  it('calls a tool as the request declares it', async () => {
    await start(() => ({
      type: 'turn',
      parts: [
        { type: 'tool-call', name: 'exec', arguments: 'ls()' },
        { type: 'tool-call', name: 'find', arguments: '{}', id: 'mine' },
      ],
    }));
    const tools = [{ type: 'namespace', name: 'crm', tools: [{ type: 'function', name: 'find' }] }];
    const input = [
      { role: 'user', content: 'go' },
      { type: 'additional_tools', role: 'developer', tools: [{ type: 'custom', name: 'exec' }] },
    ];
    const { output } = await ask({ input, tools });
    expect(output).toEqual([
      {
        id: 'ctc_0_0',
        type: 'custom_tool_call',
        status: 'completed',
        input: 'ls()',
        call_id: 'call_0_0',
        name: 'exec',
      },
      {
        id: 'fc_0_1',
        type: 'function_call',
        status: 'completed',
        arguments: '{}',
        call_id: 'mine',
        name: 'find',
        namespace: 'crm',
      },
    ]);
    const streamed = await send('/v1/responses', { model: 'm', input, tools, stream: true });
    expect((await streamed.text()).match(/^event: .*custom_tool_call.*/gm)).toEqual([
      'event: response.custom_tool_call_input.delta',
      'event: response.custom_tool_call_input.done',
    ]);
  });

  it('ends as scripted', async () => {
    const said = [{ type: 'text', text: 'Half a' }] as const;
    await start([
      { type: 'turn', parts: said, finish: 'max_output_tokens' },
      { type: 'turn', parts: said, finish: 'failed' },
    ]);
    expect(await ask({ input: 'go' })).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete' }],
    });
    const failed = await send('/v1/responses', { model: 'm', input: 'go', stream: true });
    expect(await failed.text()).toMatch(/event: response\.failed\n.*"code":"server_error"/);
  });
});

describe('what the provider of Responses keeps', () => {
  it('is shown, continued and deleted by the id of the response', async () => {
    const seen: unknown[] = [];
    await start(({ history }) => {
      seen.push(history.map(({ type, role }) => role ?? type));
      return turn;
    });
    const { id } = await ask({ input: 'go' });
    expect(await (await fetch(`${provider.url}/v1/responses/${String(id)}`)).text()).toBe(whole);
    const output = { type: 'function_call_output', call_id: 'call_0_2', output: 'r' };
    const second = await ask({ input: [output], previous_response_id: id });
    expect([second['id'], seen]).toEqual([
      'resp_1',
      [[], ['user', 'reasoning', 'assistant', 'function_call']],
    ]);
    const forget = (): Promise<Response> =>
      fetch(`${provider.url}/v1/responses/${String(id)}`, { method: 'DELETE' });
    expect(await (await forget()).json()).toEqual({ id: 'resp_0', object: 'response', deleted: true });
    expect((await forget()).status).toBe(404);
  });

  it('is nothing when the request says so, or when the response was incomplete', async () => {
    await start([turn, { type: 'cut', afterEvents: 1 }]);
    await ask({ input: 'go', store: false });
    await (await send('/v1/responses', { model: 'm', input: 'go', stream: true })).text().catch(() => '');
    for (const id of ['resp_0', 'resp_1']) {
      expect(await ask({ input: 'go', previous_response_id: id })).toEqual({
        error: {
          message: `Previous response with id '${id}' not found.`,
          type: 'invalid_request_error',
          param: 'previous_response_id',
          code: 'previous_response_not_found',
        },
      });
    }
  });
});

describe('requests other than responses', () => {
  it('a conversation is compacted, and tokens are counted', async () => {
    await start([]);
    const body = { model: 'm', input: [{ role: 'user', content: 'go' }] };
    expect(await (await send('/v1/responses/compact', body)).json()).toEqual({
      id: 'resp_compaction_0',
      object: 'response.compaction',
      created_at: 1_700_000_000,
      output: [
        { id: 'msg_compaction_0_0', type: 'message', status: 'completed', role: 'user', content: 'go' },
        { id: 'cmp_0', type: 'compaction', encrypted_content: 'Y29tcGFjdGVkIDA=' },
      ],
      usage: {
        input_tokens: 14,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 100,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 114,
      },
    });
    expect(await (await send('/v1/responses/input_tokens', body)).json()).toEqual({
      object: 'response.input_tokens',
      input_tokens: 14,
    });
    expect(provider.requests.map(({ format }) => format)).toEqual(['compact', 'count-tokens']);
  });
});
