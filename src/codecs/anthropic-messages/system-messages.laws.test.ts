/** Tests system messages among the turns: where the provider accepts them, and that folds keep them there. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Edit } from '../../conversation/edit.ts';
import { defaultStrategies } from '../../strategies/default-strategies.ts';
import type { Strategy } from '../../strategies/strategy.ts';
import { view } from '../../../test/support/codec-suite/views.ts';
import { drop, dropPart, insert } from '../../../test/support/edits.ts';
import { messagesRefusal } from '../../../test/support/fake-provider/messages-rules.ts';
import type { JsonObject } from '../../../test/support/fake-provider/script.ts';
import { testEngine } from '../../../test/support/test-engine.ts';
import { anthropicMessages } from './index.ts';

const { rules } = anthropicMessages;
const read = (messages: readonly JsonObject[]) =>
  view(anthropicMessages, JSON.stringify({ model: 'm', max_tokens: 1, messages }));

const user = (text: string): JsonObject => ({ role: 'user', content: text });
const system = (text: string): JsonObject => ({ role: 'system', content: text });
const setting: JsonObject = { role: 'system', content: [], output_config: { effort: 'low' } };
const said = (text: string): JsonObject => ({ type: 'text', text });
const call = (id: string, name = 'run', input: JsonObject = {}): JsonObject => ({
  type: 'tool_use',
  id,
  name,
  input,
});
const searched: JsonObject = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
const assistant = (...content: readonly JsonObject[]): JsonObject => ({ role: 'assistant', content });
const result = (id: string, content = 'r'): JsonObject => ({ type: 'tool_result', tool_use_id: id, content });
const results = (...ids: readonly string[]): JsonObject => ({
  role: 'user',
  content: ids.map((id) => result(id)),
});

describe('a system message', () => {
  const broken = (...messages: readonly JsonObject[]) =>
    rules.problems(read(messages)).map(({ rule, message }) => `${rule} ${message}`);

  it('may follow user messages or results, one or several in a row, ahead of the assistant or at the end', () => {
    expect(broken(user('a'), system('s'), system('t'), assistant(said('b')))).toEqual([]);
    expect(broken(user('a'), assistant(call('c')), results('c'), user('b'), system('s'))).toEqual([]);
  });

  it('may follow the result of a server tool', () => {
    const messages = [user('a'), assistant(said('b'), searched), system('s'), assistant(said('c'))];
    expect(broken(...messages)).toEqual([]);
  });

  it('is allowed nowhere else', () => {
    expect(broken(user('a'), assistant(said('b')), system('s'), system('t'))).toEqual([
      'system-follows-user 2',
    ]);
    expect(broken(user('a'), system('s'), system('t'), user('b'))).toEqual(['system-precedes-assistant 2']);
    expect(broken(system('s'), user('a'))).toEqual(['system-follows-user 0', 'system-precedes-assistant 0']);
    expect(broken(user('a'), assistant(call('c')), system('s'), results('c'))).toEqual([
      'system-follows-user 2',
      'system-precedes-assistant 2',
    ]);
  });

  it('that only sets options may be anywhere, and separates no others', () => {
    const messages = [setting, user('a'), setting, system('s'), setting, assistant(said('b')), setting];
    expect(broken(...messages, user('c'))).toEqual([]);
    expect(broken(user('a'), assistant(said('b')), setting, system('s'))).toEqual(['system-follows-user 3']);
    const empty = { role: 'system', content: [], output_config: null };
    expect(broken(user('a'), empty)).toEqual(['content-not-empty 1']);
  });
});

describe('messages around system messages', () => {
  const now = read([
    user('one'),
    assistant(said('a'), call('c1')),
    results('c1'),
    assistant(said('b')),
    user('two'),
    system('s'),
    assistant(said('c'), call('c2'), call('c3')),
    results('c2', 'c3'),
    system('t'),
    assistant(call('c4')),
    results('c4'),
    system('u'),
    assistant(said('d')),
    user('three'),
    assistant(said('e')),
  ]);
  const may = (edit: Edit) => rules.mayEdit(now, edit);

  it('stay: the words a turn begins with, and the reply that ends it; the steps between may be removed', () => {
    expect([4, 12].map((message) => may(drop(message)))).toEqual([false, false]);
    expect([6, 7, 9, 10].map((message) => may(drop(message)))).toEqual([true, true, true, true]);
    expect(may({ kind: 'replace-text', at: { message: 4, part: 0, text: 0 }, stub: 's', memory: 'm' })).toBe(
      true,
    );
  });

  it('may be removed in a turn without any', () => {
    expect([0, 1, 2, 3, 13].map((message) => may(drop(message)))).toEqual(Array(5).fill(true));
  });

  it('keep a call and its result when removing all would leave one side without the other', () => {
    expect([dropPart(6, 1), dropPart(7, 0)].map(may)).toEqual([true, true]);
    // The text next to the calls stays.
    expect([dropPart(6, 2), dropPart(7, 1)].map(may)).toEqual([false, false]);
    expect([dropPart(9, 0), dropPart(10, 0)].map(may)).toEqual([true, true]);
    const mixed = { role: 'user', content: [result('c5'), said('<reminder>')] };
    const beside = read([user('a'), system('s'), assistant(call('c5')), mixed, assistant(said('b'))]);
    const places = [dropPart(2, 0), dropPart(3, 0)];
    expect(places.map((edit) => rules.mayEdit(beside, edit))).toEqual([false, false]);
  });

  it('are not separated from the assistant by inserted messages', () => {
    const placed = [1, 4, 6, 9, 12, 13].map((before) => rules.complete(now, [insert(before)]));
    expect(placed).toEqual([1, 4, 5, 5, 5, 13].map((before) => ({ status: 'ok', edits: [insert(before)] })));
  });
});

const reminders = fc.array(fc.constantFrom(system('Mind the time.'), system('Be brief.'), setting), {
  maxLength: 2,
});
const words = fc.nat(60).map((size) => `${'Some words that matter. '.repeat(size)}.`);
const output = fc.nat(200).map((size) => 'at src/module.ts:12 something was logged\n'.repeat(size));

const step = fc
  .record({
    text: fc.option(words, { nil: undefined }),
    tools: fc.array(fc.constantFrom('run', 'run', 'read_memory', 'nope'), { minLength: 1, maxLength: 3 }),
    output,
    script: words,
    beside: fc.option(fc.constant('<reminder>'), { nil: undefined, freq: 8 }),
    reminders,
  })
  .map(({ text, tools, output: logged, script, beside, reminders: after }): readonly JsonObject[] => [
    assistant(
      ...(text === undefined ? [] : [said(text)]),
      ...tools.map((name, index) => call(`call_${index}`, name, { script })),
    ),
    {
      role: 'user',
      content: [
        ...tools.map((name, index) =>
          name === 'nope'
            ? { ...result(`call_${index}`, "Error: tool 'nope' not found"), is_error: true }
            : result(`call_${index}`, logged),
        ),
        ...(beside === undefined ? [] : [said(beside)]),
      ],
    },
    ...after,
  ]);

/** Private recalls: no message of the client's comes between them and the model's next message. */
const recall = output.map((logged): readonly JsonObject[] => [
  assistant(call('call_0', 'read_memory')),
  { role: 'user', content: [result('call_0', logged)] },
]);

const search = reminders.map((after): readonly JsonObject[] => [
  assistant(said('I look.'), searched),
  ...after,
]);

const turn = fc
  .record({
    asked: fc.array(words, { minLength: 1, maxLength: 2 }),
    reminders,
    steps: fc.array(
      fc.oneof(
        { weight: 5, arbitrary: step },
        { weight: 1, arbitrary: recall },
        { weight: 1, arbitrary: search },
      ),
      { maxLength: 6 },
    ),
    reply: fc.option(words, { nil: undefined, freq: 8 }),
  })
  .map(({ asked, reminders: first, steps, reply }) => {
    const messages = [...asked.map(user), ...first, ...steps.flat()];
    if (reply !== undefined) return [...messages, assistant(said(reply))];
    // Broken off: the user's next message comes right after a result.
    const end = messages.findLastIndex(({ role }) => role !== 'system');
    return messages.slice(0, end + 1);
  });

const conversations = fc
  .array(turn, { minLength: 1, maxLength: 4 })
  .map((turns) => turns.flat())
  .filter((messages) => rules.problems(read(messages)).length === 0);

const tools = ['run', 'read_memory_of_mine'].map((name) => ({ name, input_schema: { type: 'object' } }));

const bytes = (messages: readonly JsonObject[]) =>
  new TextEncoder().encode(JSON.stringify({ model: 'm', max_tokens: 100, messages, tools }));

/** The conversation as it is sent again and again: up to each assistant message. */
function requestsOf(messages: readonly JsonObject[]): readonly (readonly JsonObject[])[] {
  const ends = [...messages.keys()].filter(
    (index) =>
      index > 0 && messages[index]?.['role'] === 'assistant' && messages[index - 1]?.['role'] !== 'assistant',
  );
  return [...ends, messages.length].map((end) => messages.slice(0, end));
}

const each: readonly (readonly [name: string, strategies: readonly Strategy[]])[] = [
  // No list and no image is among these results.
  ...defaultStrategies()
    .filter(({ name, reach }) => reach !== 'newest' && !name.endsWith('media'))
    .map((strategy) => [strategy.name, [strategy]] as const),
  ['all of them', defaultStrategies()],
  ['all of them, with summaries', defaultStrategies({ summaries: { kind: 'extractive' } })],
];

describe('a fold of a conversation with system messages', () => {
  it.each(each)('is accepted by the provider, turn after turn: %s', async (_, strategies) => {
    let folded = 0;
    await fc.assert(
      fc.asyncProperty(conversations, fc.integer({ min: 300, max: 12_000 }), async (messages, window) => {
        const { engine } = testEngine({ window, strategies });
        for (const request of requestsOf(messages)) {
          const body = bytes(request);
          const prepared = await engine.prepare({ codec: anthropicMessages, body, tenant: 'tenant' });
          const after = view(anthropicMessages, prepared.body);
          expect(rules.problems(after)).toEqual([]);
          const sent = JSON.parse(new TextDecoder().decode(prepared.body)) as JsonObject;
          expect(messagesRefusal(sent, { maxTokens: true, strictRoles: false })).toBeUndefined();
          expect(prepared.report.steps.flatMap(({ refused }) => refused ?? [])).toEqual([]);
          folded += prepared.report.steps.length;
        }
      }),
      { numRuns: 25 },
    );
    expect(folded).toBeGreaterThan(0);
  });

  it('is as small as required when the results are large', async () => {
    const loop = [...Array(60).keys()].flatMap((index) => [
      assistant(said(`I read part ${index}.`), call('c')),
      { role: 'user', content: [result('c', `line ${index}\n`.repeat(400))] },
      system('Mind the time.'),
    ]);
    const messages = [user('Read all.'), system('Be brief.'), ...loop];
    const { engine } = testEngine({ window: 12_000 });
    const { report, body } = await engine.prepare({
      codec: anthropicMessages,
      body: bytes(messages),
      tenant: 'tenant',
    });
    expect(report.tokensBefore).toBeGreaterThan(60_000);
    expect(report.tokensAfter).toBeLessThan(10_000);
    expect(rules.problems(view(anthropicMessages, body))).toEqual([]);
  });
});
