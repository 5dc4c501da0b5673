/** Writes streamed replies as the providers spell them: an opening, small text deltas, and an ending with usage. */
import type { Format } from '../first-token/bodies.ts';
import { randomNumbers } from '../tokens/arithmetic.ts';

/** The events of one stream. */
export type StreamText = {
  readonly opening: string;
  /** Returns the next text delta, one event. */
  delta(): string;
  readonly ending: string;
};

const words =
  ' the build could not find a package that another job had moved "while" it\n waited for its turn'.split(
    / (?=.)/,
  );

/** Opens the text of one stream. The same seed gives the same text. */
export function openText(format: Format, seed: number): StreamText {
  const next = randomNumbers(seed + 1);
  return writers[format]({
    word: () => ` ${words[next(words.length)]!}`,
    padding: () => 'aB3dE6gH9jK2mN5p'.slice(next(16)),
    spaces: () => ' '.repeat(next(15)),
  });
}

/** Random parts of an event: a text of one token, OpenAI's obfuscation, and the spaces with which Anthropic pads its events. */
type Random = {
  readonly word: () => string;
  readonly padding: () => string;
  readonly spaces: () => string;
};

const writers: Readonly<Record<Format, (random: Random) => StreamText>> = {
  chat({ word, padding }) {
    const head = {
      id: 'chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG',
      object: 'chat.completion.chunk',
      created: 1_741_570_283,
      model: 'gpt-4o-2024-08-06',
      service_tier: 'default',
      system_fingerprint: 'fp_fc9f1d7035',
    };
    const chunk = (delta: object, finish: string | null): string =>
      event({
        ...head,
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
        usage: null,
        obfuscation: padding(),
      });
    const usage = { prompt_tokens: 1_200, completion_tokens: 300, total_tokens: 1_500 };
    return {
      opening: chunk({ role: 'assistant', content: '', refusal: null }, null),
      delta: () => chunk({ content: word() }, null),
      ending: `${chunk({}, 'stop')}${event({ ...head, choices: [], usage })}data: [DONE]\n\n`,
    };
  },
  responses({ word, padding }) {
    let number = 0;
    const numbered = (type: string, members: object): string =>
      event({ type, sequence_number: number++, ...members }, type);
    const item = { id: 'msg_67ccd2bf17f0819081ff3bb2cf6508e6', type: 'message', role: 'assistant' };
    const response = { id: 'resp_67ccd2bed1ec8190b14f964abc054267', object: 'response', model: 'gpt-5' };
    const usage = { input_tokens: 1_200, output_tokens: 300, total_tokens: 1_500 };
    const place = { item_id: item.id, output_index: 0, content_index: 0 };
    const part = { type: 'output_text', text: 'The end.', annotations: [], logprobs: [] };
    const done = { ...item, status: 'completed', content: [part] };
    return {
      opening: [
        numbered('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
        numbered('response.output_item.added', { output_index: 0, item: { ...item, content: [] } }),
        numbered('response.content_part.added', { ...place, part: { ...part, text: '' } }),
      ].join(''),
      delta: () =>
        numbered('response.output_text.delta', {
          ...place,
          delta: word(),
          logprobs: [],
          obfuscation: padding(),
        }),
      get ending() {
        return [
          numbered('response.output_text.done', { ...place, text: part.text, logprobs: [] }),
          numbered('response.content_part.done', { ...place, part }),
          numbered('response.output_item.done', { output_index: 0, item: done }),
          numbered('response.completed', {
            response: { ...response, status: 'completed', output: [done], usage },
          }),
        ].join('');
      },
    };
  },
  messages({ word, spaces }) {
    const typed = (data: { readonly type: string }): string =>
      `event: ${data.type}\ndata: ${JSON.stringify(data).slice(0, -1)}${spaces()}}\n\n`;
    const message = { id: 'msg_01XFDUDYJgAACzvnptvVoYEL', type: 'message', role: 'assistant', content: [] };
    const usage = { input_tokens: 1_200, output_tokens: 1 };
    const start = { type: 'text', text: '' };
    const open = { ...message, model: 'claude-sonnet-4-5', stop_reason: null, stop_sequence: null, usage };
    const stop = { stop_reason: 'end_turn', stop_sequence: null };
    return {
      opening: [
        { type: 'message_start', message: open },
        { type: 'content_block_start', index: 0, content_block: start },
        { type: 'ping' },
      ]
        .map(typed)
        .join(''),
      delta: () => {
        const delta = { type: 'text_delta', text: word() };
        return typed({ type: 'content_block_delta', index: 0, delta } as { readonly type: string });
      },
      ending: [
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: stop, usage: { output_tokens: 300 } },
        { type: 'message_stop' },
      ]
        .map(typed)
        .join(''),
    };
  },
  gemini({ word }) {
    let tokens = 0;
    const chunk = (text: string, end: object): string => {
      tokens += 1;
      const details = [{ modality: 'TEXT', tokenCount: 1_200 }];
      const data = {
        candidates: [{ content: { parts: [{ text }], role: 'model' }, ...end, index: 0 }],
        usageMetadata: {
          promptTokenCount: 1_200,
          candidatesTokenCount: tokens,
          totalTokenCount: 1_200 + tokens,
          promptTokensDetails: details,
        },
        modelVersion: 'gemini-2.5-flash',
        responseId: 'mAitaLmkHPPlz7IPvtfUqQ4',
      };
      return event(data).replaceAll('\n', '\r\n');
    };
    return {
      opening: chunk('The', {}),
      delta: () => chunk(word(), {}),
      get ending() {
        return chunk('', { finishReason: 'STOP' });
      },
    };
  },
};

function event(data: object, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}
