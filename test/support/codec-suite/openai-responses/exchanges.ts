/**
 * Exchanges of OpenAI Responses as its servers stream them, written by hand: padding, encrypted reasoning, a search of the
 * provider's own.
 */
import type { StreamFixture } from '../fixture.ts';

type Json = Readonly<Record<string, unknown>>;
type Tokens = { readonly input: number; readonly cached: number; readonly output: number };

const head = (id: string) => ({
  id,
  object: 'response',
  created_at: 1_790_000_000,
  status: 'in_progress',
  background: false,
  error: null as unknown,
  incomplete_details: null as unknown,
  instructions: null,
  model: 'responses-large-2026',
  output: [] as readonly unknown[],
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: 'high', summary: 'detailed' },
  store: false,
  text: { format: { type: 'text' }, verbosity: 'medium' },
  tool_choice: 'auto',
  tools: [{ type: 'function', name: 'run', description: null, parameters: {}, strict: false }],
  truncation: 'disabled',
  usage: null as unknown,
  metadata: {},
});

/** An item with its events; `said` are its deltas. */
type Streamed = { readonly begun: Json; readonly item: Json; readonly inside: readonly Json[] };

function message(id: string, ...pieces: readonly string[]): Streamed {
  const bare = {
    id,
    type: 'message',
    status: 'in_progress',
    content: [] as readonly Json[],
    role: 'assistant',
  };
  const part = (text: string) => ({ type: 'output_text', annotations: [], logprobs: [], text });
  const text = pieces.join('');
  return {
    begun: bare,
    item: { ...bare, status: 'completed', content: [part(text)] },
    inside: [
      { type: 'response.content_part.added', content_index: 0, part: part('') },
      ...pieces.map((delta) => ({
        type: 'response.output_text.delta',
        content_index: 0,
        delta,
        logprobs: [],
        obfuscation: 'Xf2',
      })),
      { type: 'response.output_text.done', content_index: 0, logprobs: [], text },
      { type: 'response.content_part.done', content_index: 0, part: part(text) },
    ],
  };
}

/** The encrypted text of reasoning differs between its start and its end. */
function reasoning(id: string, ...pieces: readonly string[]): Streamed {
  const text = pieces.join('');
  const part = { type: 'summary_text', text };
  const at = { summary_index: 0 };
  const inside = [
    { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
    ...pieces.map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      ...at,
      delta,
      obfuscation: 'q',
    })),
    { type: 'response.reasoning_summary_text.done', ...at, text },
    { type: 'response.reasoning_summary_part.done', ...at, part },
  ];
  return {
    begun: { id, type: 'reasoning', encrypted_content: `gAAAAABo${id}`, summary: [] },
    item: {
      id,
      type: 'reasoning',
      encrypted_content: `gAAAAABp${id}==`,
      summary: pieces.length === 0 ? [] : [part],
    },
    inside: pieces.length === 0 ? [] : inside,
  };
}

function call(id: string, name: string, ...pieces: readonly string[]): Streamed {
  const bare = {
    id: `fc_${id}`,
    type: 'function_call',
    status: 'in_progress',
    arguments: '',
    call_id: id,
    name,
  };
  const whole = pieces.join('');
  return {
    begun: bare,
    item: { ...bare, status: 'completed', arguments: whole },
    inside: [
      ...pieces.map((delta) => ({ type: 'response.function_call_arguments.delta', delta, obfuscation: '' })),
      { type: 'response.function_call_arguments.done', arguments: whole },
    ],
  };
}

const search: Streamed = {
  begun: { id: 'ws_1', type: 'web_search_call', status: 'in_progress' },
  item: {
    id: 'ws_1',
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: 'météo' },
  },
  inside: ['in_progress', 'searching', 'completed'].map((state) => ({
    type: `response.web_search_call.${state}`,
  })),
};

const cited = {
  type: 'url_citation',
  end_index: 9,
  start_index: 0,
  title: 'Météo',
  url: 'https://example.com/m',
};
const rain = message('msg_4', 'It rains. ');
const citing: Streamed = {
  ...rain,
  inside: [
    ...rain.inside.slice(0, 2),
    {
      type: 'response.output_text.annotation.added',
      content_index: 0,
      annotation_index: 0,
      annotation: cited,
    },
    ...rain.inside.slice(2),
  ],
};

function sse(id: string, tokens: Tokens, ...items: readonly Streamed[]): string {
  const events: readonly Json[] = [
    { type: 'response.created', response: head(id) },
    { type: 'response.in_progress', response: head(id) },
    ...items.flatMap(({ begun, item, inside }, output_index) => [
      { type: 'response.output_item.added', output_index, item: begun },
      ...inside.map((event) => ({ ...event, item_id: item['id'], output_index })),
      { type: 'response.output_item.done', output_index, item },
    ]),
    {
      type: 'response.completed',
      response: {
        ...head(id),
        status: 'completed',
        output: items.map(({ item }) => item),
        usage: {
          input_tokens: tokens.input,
          input_tokens_details: { cached_tokens: tokens.cached, cache_write_tokens: 0 },
          output_tokens: tokens.output,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: tokens.input + tokens.output,
        },
      },
    },
  ];
  return events
    .map(({ type, ...event }, sequence_number) => {
      const data = JSON.stringify({ type, sequence_number, ...event });
      return `event: ${String(type)}\ndata: ${data}\n\n`;
    })
    .join('');
}

const usage = (input: number, cached: number, output: number): Tokens => ({ input, cached, output });
const recall = (id: string, ...pieces: readonly string[]) => call(id, 'read_memory', ...pieces);

export const exchanges: StreamFixture['exchanges'] = {
  'words around a recall': {
    responses: [
      sse(
        'resp_A',
        usage(2009, 1920, 31),
        message('msg_1', 'Één', ' moment \u{1f600}… '),
        recall('call_1', '{"id": "mem_', '雨"}'),
      ),
      sse('resp_B', usage(2052, 1920, 17), message('msg_2', 'It rains in 東', '京 ☔.')),
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
      sse(
        'resp_A',
        usage(10, 0, 40),
        reasoning('rs_1', 'Where ', 'was it?'),
        recall('call_2', '{"id":"m1"}'),
      ),
      sse('resp_B', usage(60, 0, 20), reasoning('rs_2'), recall('call_3', '{"id":"m1","li', 'nes":"1-9"}')),
      sse('resp_C', usage(90, 0, 8), reasoning('rs_3', ' There.'), message('msg_3', 'In the cellar.')),
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
        'resp_A',
        usage(30, 0, 55),
        message('msg_5', 'Three things.'),
        call('call_4', 'run', '{"cmd": "ls — l"}'),
        recall('call_5', '{"id":', '"m1"}'),
        call('call_6', 'read', '{"path"', ':"a.ts"}'),
      ),
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
    responses: [
      sse('resp_A', usage(1420, 0, 70), search, citing, recall('call_7', '{"id":"m1"}')),
      sse('resp_B', usage(1500, 0, 6), message('msg_6', 'As it did then.')),
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
