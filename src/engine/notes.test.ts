/** Notes of the model stay in view after folds, the newest first, and recalls find the others. */
import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { answerRecall } from '../recall/tool.ts';
import { dropOldest } from '../strategies/drop-messages.ts';
import { chatBody, jobSteps, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { EngineOptions } from './types.ts';

const note = (text: string): Step => ({
  calls: [
    {
      name: 'save_context',
      input: JSON.stringify({ text }),
      result: 'Saved. The newest saved texts stay in view.',
    },
  ],
});

/** Prepares a conversation of which a fold drops nearly all messages. */
function prepare(
  steps: readonly Step[],
  options: Partial<EngineOptions> & { readonly window?: number } = {},
) {
  const { engine } = testEngine({ window: 12_000, offerNotes: true, strategies: [dropOldest()], ...options });
  return engine.prepare({ codec: openaiChat, body: chatBody(steps, { tools: ['run'] }), tenant: 't' });
}

const text = (body: Uint8Array) => new TextDecoder().decode(body);
const calls = (body: Uint8Array) => text(body).match(/"name":"save_context","arguments":/g)?.length ?? 0;

const [task, ...jobs] = jobSteps(20);
const steps = [task!, note('The deadline is on Friday.'), ...jobs];

describe('a note', () => {
  it('stays as the model made it when the messages around it are dropped', async () => {
    const { body, outcome } = await prepare(steps);
    expect(outcome.status).toBe('compacted');
    expect(text(body)).not.toContain('job 0: step 50');
    expect(calls(body)).toBe(1);
    expect(text(body)).toContain('The deadline is on Friday.');
  });

  it('is a call like any other when notes are not offered', async () => {
    const { body } = await prepare(steps, { offerNotes: false });
    expect(calls(body)).toBe(0);
  });

  it('is sent in the same bytes for the same prefix, by any engine', async () => {
    const [one, other] = await Promise.all([prepare(steps), prepare(steps)]);
    expect(text(one.body)).toBe(text(other.body));
  });
});

describe('many notes', () => {
  const many = Array.from({ length: 12 }, (_, at) => note(`Finding ${at} is ${'word '.repeat(400)}`));
  const long = [task!, ...many, ...jobs];

  it('stay within a bound, the newest first, and recalls find the others', async () => {
    const prepared = await prepare(long);
    const sent = text(prepared.body);
    const kept = many.filter((_, at) => sent.includes(`Finding ${at} is word`)).length;
    expect(kept).toBeGreaterThan(0);
    expect(kept).toBeLessThan(many.length);
    expect(sent).toContain('Finding 11 is word');
    expect(sent).not.toContain('Finding 0 is word word');
    const found = await answerRecall(prepared, JSON.stringify({ query: 'Finding 0' }), 4_000);
    expect(found.text).toContain('Finding 0 is word');
  });

  it('give way when the request would not fit otherwise', async () => {
    const { body, outcome } = await prepare(long, { window: 4_000 });
    expect(outcome.status).toBe('compacted');
    expect(text(body).length).toBeLessThan(16_000);
  });
});
