import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { idleContent, mayPay } from './idle-content.ts';
import { draft } from './plan.ts';
import type { Shrink } from './references.ts';

import type { Pins } from './types.ts';
import { recallToolFor } from '../recall/tool.ts';
import type { KeepForRequests, RentLimit } from '../triggers/trigger.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { asResponses } from '../../test/support/as-responses.ts';
import { addToResults } from '../../test/support/add-to-results.ts';
import { type Step, chatBody, freshReading, readChat } from '../../test/support/chat-conversation.ts';
import { planInputFor } from '../../test/support/plan-input.ts';

const run = (result: string): Step => ({ calls: [{ name: 'run', input: '{}', result }] });
const large = run('x'.repeat(4_000));
const small = run('x'.repeat(900));
const never: KeepForRequests = {
  results: 99,
  arguments: 99,
  editArguments: 99,
  steps: 99,
  edits: 99,
  commands: 99,
  recalls: 99,
  replies: 99,
};

function weigh(
  steps: readonly Step[],
  keepForRequests: Partial<KeepForRequests>,
  { recalls = true, ...change }: SceneChange = {},
) {
  const conversation = readChat(chatBody(steps, { tools: ['run'] }));
  return weighIn(conversation, keepForRequests, recalls ? change : { ...change, recallTool: undefined });
}

type SceneChange = {
  readonly edits?: readonly Edit[];
  readonly pins?: Pins;
  readonly recalls?: boolean;
  readonly isCached?: boolean;
};

async function weighIn(
  conversation: Conversation,
  keepForRequests: Partial<KeepForRequests>,
  { edits = [], ...change }: Parameters<typeof planInputFor>[1] & { readonly edits?: readonly Edit[] },
) {
  const input = planInputFor(conversation, { recallTool: recallToolFor(['run']), ...change });
  return idleContent(input, await draft(input, edits), { ...never, ...keepForRequests }).map(
    ({ message, evicts, requests }) => `${message} ${evicts} since ${requests}`,
  );
}

describe('idle content', () => {
  it('includes large results of a certain age, in requests', async () => {
    const steps = [{ user: 'Go' }, large, small, large, large, large];
    expect(await weigh(steps, { results: 2 })).toEqual(['2 texts since 2']);
    expect(await weigh(steps, { results: 1 })).toEqual(['2 texts since 3', '6 texts since 1']);
  });

  it('is as old in a format that divides a reply into several messages', async () => {
    const body = chatBody([{ user: 'Go' }, small, small, small, small], { tools: ['run'] });
    const input = planInputFor(openaiResponses.read(asResponses(body), freshReading()), {
      recallTool: recallToolFor(['run']),
      codec: openaiResponses,
    });
    const keepForRequests = { ...never, steps: 1 };
    const found = idleContent(input, await draft(input, []), keepForRequests);
    // Each step is reasoning, a call and an output.
    expect(found.map(({ message, requests }) => `${message} since ${requests}`)).toEqual([
      '1 since 2',
      '2 since 2',
      '3 since 2',
      '4 since 1',
      '5 since 1',
      '6 since 1',
    ]);
    expect(await weigh([{ user: 'Go' }, small, small, small, small], { steps: 1 })).toEqual([
      '1 message since 2',
      '2 message since 2',
      '3 message since 1',
      '4 message since 1',
    ]);
  });

  it('leaves out reads of files that the user or the newest reply names, and the steps that hold them', async () => {
    const read = (path: string): Step => ({
      calls: [{ name: 'read', input: JSON.stringify({ file_path: path }), result: 'x'.repeat(4_000) }],
    });
    const edit: Step = {
      calls: [
        { name: 'edit', input: '{"file_path":"/src/b.ts","old_string":"x","new_string":"y"}', result: 'ok' },
      ],
    };
    const steps = [{ user: 'Change src/a.ts.' }, read('/src/a.ts'), read('/src/b.ts'), small, small];
    expect(await weigh(steps, { results: 1 })).toEqual(['4 texts since 1']);
    expect(await weigh([...steps, edit], { results: 1 })).toEqual([]);
    // Without a cache each request pays the whole price of the read again.
    const uncached = await weigh([...steps, edit], { results: 1 }, { isCached: false });
    expect(uncached).toEqual(['2 texts since 3', '4 texts since 2']);
    expect(await weigh(steps, { steps: 1 })).toEqual(['3 message since 1', '4 message since 1']);
    const editOfA: Step = { calls: [{ ...edit.calls[0]!, input: '{"file_path":"/src/a.ts"}' }] };
    const later = Array.from({ length: 39 }, () => small);
    const [named, edited] = [steps.slice(0, 2), [...steps.slice(0, 2), editOfA]];
    expect(await weigh([...named, ...later], { results: 20 })).toEqual([]);
    expect(await weigh([...named, ...later, small], { results: 20 })).toEqual(['2 texts since 20']);
    expect(await weigh([...edited, ...later.slice(0, 28)], { results: 20 })).toEqual([]);
    expect(await weigh([...edited, ...later.slice(0, 29)], { results: 20 })).toEqual(['2 texts since 10']);
  });

  it('includes long arguments of calls', async () => {
    const write: Step = {
      calls: [{ name: 'run', input: JSON.stringify({ text: 'y'.repeat(4_000) }), result: 'ok' }],
    };
    expect(await weigh([{ user: 'Go' }, write, small, small], { arguments: 1 })).toEqual(['1 texts since 2']);
  });

  it('counts steps that edit, and steps that only run commands or search, by ages of their own', async () => {
    const step = (...calls: readonly (readonly [name: string, input: object])[]): Step => ({
      calls: calls.map(([name, input]) => ({ name, input: JSON.stringify(input), result: 'done' })),
    });
    const write = ['write', { file_path: 'a.ts', content: 'y'.repeat(4_000) }] as const;
    const make = ['bash', { command: 'make' }] as const;
    const cat = ['bash', { command: 'cat a.ts' }] as const;
    const steps = [{ user: 'Go' }, step(write), step(make), step(cat), step(make, write), small];
    expect(await weigh(steps, { editArguments: 1 })).toEqual(['1 texts since 4', '7 texts since 1']);
    expect(await weigh(steps, { arguments: 1 })).toEqual([]);
    expect(await weigh(steps, { commands: 1 })).toEqual(['3 message since 2', '4 message since 2']);
    expect(await weigh(steps, { edits: 1 })).toEqual(['1 message since 3', '2 message since 3']);
    expect(await weigh(steps, { steps: 1 })).toEqual(['5 message since 1', '6 message since 1']);
  });

  it('includes recalls, with an age of their own', async () => {
    const recall: Step = {
      calls: [{ name: 'read_memory', input: '{"id":"mem_a"}', result: 'x'.repeat(4_000) }],
    };
    const steps = [{ user: 'Go' }, recall, small, small, small];
    expect(await weigh(steps, { recalls: 1 })).toEqual(['1 recall since 2', '2 recall since 2']);
    expect(await weigh(steps, { results: 0, steps: 9 })).toEqual([]);
  });

  it('includes replies without calls, with an age of their own', async () => {
    const steps: readonly Step[] = [
      { user: 'Go' },
      { assistant: 'Done. '.repeat(99) },
      { user: 'On' },
      { assistant: 'Done, too.' },
      { user: 'On' },
      small,
      small,
    ];
    expect(await weigh(steps, { replies: 2 })).toEqual(['1 message since 1']);
    expect(await weigh(steps, { steps: 0 })).toEqual(['5 message since 1', '6 message since 1']);
  });

  it('includes the rest of whole steps, but no words between the user and the model', async () => {
    const steps: readonly Step[] = [
      { user: 'Go' },
      large,
      { assistant: 'Done.' },
      { user: 'On' },
      small,
      small,
      small,
    ];
    expect(await weigh(steps, { results: 1, steps: 2 })).toEqual([
      '1 message since 2',
      '2 message since 2',
      '2 texts since 3',
    ]);
  });

  it('includes steps with reminders of the client next to their results, but none in which the user spoke', async () => {
    const steps = [{ user: 'Go' }, large, small, small, small];
    const weighed = (words: string) => {
      const body = addToResults(asAnthropic(chatBody(steps, { tools: ['run'] })), words);
      const conversation = anthropicMessages.read(body, freshReading());
      return weighIn(conversation, { steps: 2, results: 2 }, { codec: anthropicMessages });
    };
    const both = ['1 message since 1', '2 message since 1', '2 texts since 1'];
    expect(await weighed('<system-reminder>Mind the list.</system-reminder>')).toEqual(both);
    expect(await weighed('Mind the list.')).toEqual(['2 texts since 1']);
    const passedOn = '<system-reminder>The user sent this: Mind the list.</system-reminder>';
    expect(await weighed(passedOn)).toEqual(['2 texts since 1']);
  });

  it('excludes pinned, dropped and stubbed content', async () => {
    const steps = [{ user: 'Go' }, large, large, large];
    expect(await weigh(steps, { results: 0 })).toEqual(['2 texts since 2', '4 texts since 1']);
    expect(await weigh(steps, { results: 0 }, { pins: { tools: ['run'], texts: [] } })).toEqual([]);
    const at = { message: 2, part: 0, text: 0 };
    const edits: readonly Edit[] = [{ kind: 'replace-text', at, stub: 'gone', memory: 'mem_1' }];
    expect(await weigh(steps, { results: 0 }, { edits })).toEqual(['4 texts since 1']);
  });

  it('is empty when the model cannot recall', async () => {
    expect(
      await weigh([{ user: 'Go' }, large, large, large], { results: 0, steps: 0 }, { recalls: false }),
    ).toEqual([]);
  });

  it('is within the limit of its rent, and ahead of the content that is never idle', async () => {
    const write: Step = {
      calls: [{ name: 'run', input: JSON.stringify({ text: 'y'.repeat(4_000) }), result: 'ok' }],
    };
    const steps = [
      { user: 'Go' },
      large,
      write,
      small,
      { user: 'And now?' },
      write,
      large,
      large,
      small,
      small,
    ];
    const stub: Edit = {
      kind: 'replace-text',
      at: { message: 2, part: 0, text: 0 },
      stub: 'Folded.',
      memory: 'mem_1',
    };
    const smaller: Edit = { ...stub, at: { message: 6, part: 0, text: 0 } };
    const drops = [1, 2, 3, 4].map((message): Edit => ({ kind: 'drop-message', message, memory: 'mem_1' }));
    const log: Edit = { kind: 'insert-message', before: 1, role: 'user', text: 'Folded: four messages.' };
    const argument: Edit = { kind: 'replace-input', message: 3, part: 0, input: '{}', memory: 'mem_1' };
    const folds = [[], [stub], [argument], [stub, smaller], [log, ...drops], [log, ...drops, smaller]];
    for (const [keep, edits] of [0, 1, 3, 9].flatMap((one) => folds.map((fold) => [one, fold] as const))) {
      const input = planInputFor(readChat(chatBody(steps, { tools: ['run'] })), {
        recallTool: recallToolFor(['run']),
      });
      const start = await draft(input, edits);
      const kept: KeepForRequests = {
        results: keep,
        arguments: keep,
        editArguments: keep + 2,
        steps: keep + 1,
        edits: keep + 2,
        commands: keep,
        recalls: keep,
        replies: keep,
      };
      const candidates = idleContent(input, start, kept);
      const limits: RentLimit[] = [];
      mayPay(input, start, kept, (limit) => limits.push({ ...limit }) === 0);
      expect(candidates.length > 0).toBe(keep < 9);
      const sums = { rent: 0, tokens: 0 };
      for (const { tokens, requests, behind } of candidates.toReversed()) {
        sums.rent += tokens * requests;
        sums.tokens += tokens;
        const { rent, tokens: evicted } = sums;
        expect(
          limits.some(
            (limit) => limit.rent >= rent && limit.tokens >= evicted && limit.behind <= behind - evicted,
          ),
        ).toBe(true);
      }
    }
  });

  const sceneOf = async (steps: readonly Step[]) => {
    const conversation = readChat(chatBody(steps, { tools: ['run'] }));
    const input = planInputFor(conversation, { recallTool: recallToolFor(['run']) });
    return { input, start: await draft(input, []) };
  };

  it('may pay from a message on that is only a candidate because it refers to another', async () => {
    const { input, start } = await sceneOf([{ user: 'Go' }, small, small, small, small]);
    const refers = (message: number): Shrink => ({
      kind: 'replace-text',
      at: { message, part: 0, text: 0 },
      stub: '',
      memory: undefined,
      saved: 1,
      refers: [{ message: 2, tokens: 1 }],
    });
    const limits: RentLimit[] = [];
    const mayPayWith = (shrinks: readonly Shrink[]) =>
      mayPay(
        input,
        { ...start, shrinks },
        { ...never, results: 1 },
        (limit) => limits.push({ ...limit }) > 0,
      );
    expect(mayPayWith([refers(4), refers(6)])).toBe(true);
    expect(mayPayWith([])).toBe(false);
    expect(limits.map(({ rent, tokens }) => ({ rent, tokens }))[0]).toEqual({ rent: 1, tokens: 1 });
  });

  it('may pay only for steps of a kind that has counted as unused', async () => {
    const step = (name: string, input: object): Step => ({
      calls: [{ name, input: JSON.stringify(input), result: 'done' }],
    });
    const make = step('bash', { command: 'make' });
    const cat = step('bash', { command: 'cat a.ts' });
    const write = step('write', { file_path: 'a.ts', content: 'y' });
    const said = { assistant: 'Done.' };
    const steps = [{ user: 'Go' }, make, cat, write, said, { user: 'On' }, small, small];
    const { input, start } = await sceneOf(steps);
    for (const kind of ['commands', 'steps', 'edits', 'replies'] as const) {
      const keep = { ...never, [kind]: 0 };
      const most = idleContent(input, start, keep).reduce((sum, { tokens }) => sum + tokens, 0);
      expect(most).toBeGreaterThan(0);
      expect(mayPay(input, start, keep, ({ tokens }) => tokens >= most)).toBe(true);
      expect(mayPay(input, start, keep, ({ tokens }) => tokens > most)).toBe(false);
    }
  });
});
