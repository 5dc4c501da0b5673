/**
 * Spells OpenAI Responses as the provider does, plain and streamed. Ids and times are computed, so that two runs give the same
 * bytes.
 */
import { errorBody } from './chat-format.ts';
import { itemEvents, outputItems } from './responses-items.ts';
import type { Draft } from './responses-items.ts';
import { inputItems } from './responses-memory.ts';
import type { KeptResponses } from './responses-memory.ts';
import { responsesRefusal } from './responses-rules.ts';
import type { Answer, JsonObject, WireEvent, WireFormat } from './script.ts';

export function responsesFormat(kept: KeptResponses): WireFormat {
  return {
    idHeader: 'x-request-id',
    refusal: ({ body }) => responsesRefusal(body, kept),
    whole: finished,
    events: (answer) => {
      const response = finished(answer);
      const started = envelope(answer, 'in_progress');
      const drafts: readonly Numbered[] = [
        { draft: { type: 'response.created', response: started } },
        { draft: { type: 'response.in_progress', response: started } },
        ...outputItems(answer, isCutOff(answer)).flatMap((item, n) =>
          itemEvents(item, n, answer.chunkSize).map((draft, i) => (i === 0 ? { draft, part: n } : { draft })),
        ),
        { draft: { type: `response.${statusOf(answer)}`, response } },
      ];
      return drafts.map(numbered);
    },
    errorBody,
    memory: {
      historyOf: ({ body }) => kept.historyUpTo(String(body['previous_response_id'])) ?? [],
      keep: (answer) => kept.keep(answer.request.body, finished(answer)),
    },
  };
}

/** Returns the answer of the compaction endpoint: the user's own messages, and the rest encrypted in one item. */
export function compaction(body: JsonObject, index: number, bytes: number): JsonObject {
  const said = inputItems(body).filter(({ role }) => role === 'user');
  return {
    id: `resp_compaction_${index}`,
    object: 'response.compaction',
    created_at: createdAt(index),
    output: [
      ...said.map((message, n) => ({
        id: `msg_compaction_${index}_${n}`,
        type: 'message',
        status: 'completed',
        ...message,
      })),
      { id: `cmp_${index}`, type: 'compaction', encrypted_content: btoa(`compacted ${index}`) },
    ],
    usage: usageObject({ input: Math.ceil(bytes / 4), output: 100, cacheRead: 0, cacheWrite: 0 }),
  };
}

type Numbered = { readonly draft: Draft; readonly part?: number };

function numbered({ draft, part }: Numbered, sequence_number: number): WireEvent {
  const { type, ...rest } = draft;
  const text = `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...rest })}\n\n`;
  return part === undefined ? { text } : { text, part };
}

function finished(answer: Answer): JsonObject {
  const status = statusOf(answer);
  const { finish } = answer;
  return {
    ...envelope(answer, status),
    completed_at: status === 'completed' ? createdAt(answer.index) + 1 : null,
    error: status === 'failed' ? { code: 'server_error', message: 'The script lets this turn fail.' } : null,
    incomplete_details: status === 'incomplete' ? { reason: finish } : null,
    output: outputItems(answer, isCutOff(answer)),
    usage: usageObject(answer.usage),
  };
}

/** A script may say `failed`, or why the response is incomplete (`max_output_tokens`, `content_filter`). */
function statusOf({ finish }: Answer): 'completed' | 'failed' | 'incomplete' {
  if (finish === undefined || finish === 'completed') return 'completed';
  return finish === 'failed' ? 'failed' : 'incomplete';
}

function isCutOff(answer: Answer): boolean {
  return statusOf(answer) === 'incomplete';
}

/** Returns the fields of a response before any output: the request's own settings, and the defaults. */
function envelope({ index, request: { body, model } }: Answer, status: string): JsonObject {
  const settings = Object.entries(defaults).map(([name, usual]) => [name, body[name] ?? usual] as const);
  return {
    id: `resp_${index}`,
    object: 'response',
    created_at: createdAt(index),
    status,
    error: null,
    incomplete_details: null,
    model,
    output: [],
    usage: null,
    ...Object.fromEntries(settings),
  };
}

const defaults: JsonObject = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: 'default',
  store: true,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
};

function createdAt(index: number): number {
  return 1_700_000_000 + index;
}

function usageObject(usage: Answer['usage']): JsonObject {
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  };
}
