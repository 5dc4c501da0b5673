import { describe, expect, it } from 'vitest';
import { loadExactCounter } from '../tokens/load-counter.ts';
import { answersTo, noteAnswer, openBudget, recallToolFor } from './tool.ts';

const name = (...taken: string[]): string => recallToolFor(taken).name;

describe('the recall tool', () => {
  it('is defined in at most 150 tokens, because each request has it', async () => {
    const { count } = await loadExactCounter('o200k_base');
    expect(count(JSON.stringify(recallToolFor([])))).toBeLessThanOrEqual(150);
  });

  it('is the same every time, so that the prefix stays cached', () => {
    expect(recallToolFor(['search'])).toEqual({
      name: 'read_memory',
      description:
        'Older parts of this conversation are folded into [bracketed notes]; nothing is lost. Ask before you redo a step or guess. ' +
        'id: shows what a note stands for, with lines "10-40" or path "$.content" a part of it, with query the places that share its words. ' +
        'query alone searches all notes.',
      parameters: {
        type: 'object',
        properties: {
          id: { type: 'string' },
          query: { type: 'string' },
          lines: { type: 'string' },
          path: { type: 'string' },
        },
      },
    });
    expect(JSON.stringify(recallToolFor([]))).toBe(JSON.stringify(recallToolFor(['a', 'b'])));
  });

  it('requires an id when the stubs of the conversation are unknown', () => {
    const { description, parameters } = recallToolFor([], 'id');
    expect(description).not.toContain('query alone');
    expect(parameters).toMatchObject({ required: ['id'] });
  });

  it('uses another name when the client already offers a tool of that name', () => {
    expect(name('read_memory')).toBe('leporello_read_memory');
    expect(name('read_memory', 'leporello_read_memory')).toBe('leporello_read_memory_2');
    expect(name('read_memory', 'leporello_read_memory', 'leporello_read_memory_2')).toBe(
      'leporello_read_memory_3',
    );
    expect(name('leporello_read_memory')).toBe('read_memory');
  });
});

describe('the tool for notes', () => {
  it('comes with the recall tool, under names that the client does not use', () => {
    expect(recallToolFor([]).notes).toBeUndefined();
    expect(recallToolFor([], 'id or query', true).notes).toEqual({
      name: 'save_context',
      description:
        'Keeps a text in view when older parts of this conversation are folded: ' +
        'a decision, a finding or an open end that you will need later, in a few sentences.',
      parameters: {
        type: 'object',
        properties: { text: { type: 'string' }, title: { type: 'string' } },
        required: ['text'],
      },
    });
    expect(recallToolFor(['save_context'], 'id or query', true).name).toBe('leporello_read_memory');
    expect(name('save_context')).toBe('read_memory');
    expect(recallToolFor(['read_memory'], 'id or query', true).notes?.name).toBe('leporello_save_context');
    const taken = ['leporello_save_context', 'save_context'];
    expect(recallToolFor(taken, 'id or query', true).name).toBe('leporello_read_memory_2');
  });

  it.each([
    ['{"text":"The deadline is on Friday."}', 'Saved. The newest saved texts stay in view.'],
    ['{"text":" "}', 'Nothing was saved: there is no text. Send {"text": "…"}.'],
    ['null', 'Nothing was saved: there is no text. Send {"text": "…"}.'],
    ['{"text":', 'Nothing was saved: the arguments are not JSON. Send {"text": "…"}.'],
    [
      JSON.stringify({ text: 'ü'.repeat(3_000) }),
      'Saved, but it may be folded with the rest: only texts of at most 6000 bytes are sure to stay in view.',
    ],
  ])('answers %.40s', (given, answer) => {
    expect(noteAnswer(given)).toBe(answer);
  });
});

describe('a round of private calls', () => {
  const call = (tool: string, id: string) => ({
    id,
    name: tool,
    argumentsJson: JSON.stringify({ id, text: 'a' }),
  });
  const round = (...recalls: readonly ReturnType<typeof call>[]) => ({ recalls, turn: new Uint8Array() });
  const source = { counter: undefined, notesTool: 'save_context', searched: () => [] };
  const open = (room: number) =>
    openBudget({ prepared: { room, counter: undefined }, recall: { maxRounds: 5, maxTokens: 8_000 } });

  it('is answered although an original cannot be read, and the reason is reported', async () => {
    const notes: unknown[] = [];
    const prepared = {
      ...source,
      original: async (id: string) => {
        if (id === 'mem_1') throw new TypeError('not for the log');
        return new TextEncoder().encode('The text.');
      },
    };
    const note = {
      recalled: ({ found }: { readonly found: boolean }, asked: string) => notes.push([found, asked]),
      problem: (text: string) => notes.push(text),
    };
    const answers = await answersTo(
      { prepared, note },
      round(call('read_memory', 'mem_1'), call('save_context', 'n'), call('read_memory', 'mem_2')),
      1,
      open(4_000),
    );
    expect(answers.map(({ text }) => text)).toEqual([
      'This memory cannot be read now. Go on without it.',
      'Saved. The newest saved texts stay in view.',
      expect.stringContaining('The text.'),
    ]);
    expect(notes).toEqual([
      'a recall failed: TypeError',
      [false, '{"id":"mem_1","text":"a"}'],
      [true, '{"id":"mem_2","text":"a"}'],
    ]);
  });

  it('shares the room between recalls, not with notes', async () => {
    const original = () => new TextEncoder().encode('A line of the text.\n'.repeat(500));
    const tokens = async (...calls: readonly ReturnType<typeof call>[]) => {
      const answers = await answersTo({ prepared: { ...source, original } }, round(...calls), 1, open(2_000));
      return answers.find((answer) => answer.call.name === 'read_memory')!.text.length;
    };
    const alone = await tokens(call('read_memory', 'mem_1'));
    const note = call('save_context', 'n');
    expect(await tokens(note, call('read_memory', 'mem_1'), note)).toBe(alone);
    expect(await tokens(call('read_memory', 'mem_1'), call('read_memory', 'mem_1'))).toBeLessThan(
      alone / 1.5,
    );
  });
});
