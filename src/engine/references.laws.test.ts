import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Cache, type Caches, createCaches } from '../caches.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { stubArguments } from '../strategies/offload.ts';
import { chatBody, freshReading, type Step } from '../../test/support/chat-conversation.ts';
import { resolveReferences, unpadded } from '../../test/support/resolve-references.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { labeledResults } from '../../test/support/labeled-results.ts';

const shrinks = { lossless: true };
const tools = ['read_file', 'edit_file', 'run'];

const request = (steps: readonly Step[]) => ({
  codec: openaiChat,
  body: chatBody([{ user: 'Begin.' }, ...steps], { tools, model: 'gpt-4o' }),
  tenant: 'tenant',
});

const reads = (path: string, result: string): Step => ({
  calls: [{ name: 'read_file', input: JSON.stringify({ path }), result }],
});
const listing = (lines: number, name = 'n') =>
  Array.from({ length: lines }, (_, at) => `${at + 1}→const ${name}${at} = compute(${at * 7});`).join('\n');

const results = (body: Uint8Array) =>
  new Map(labeledResults(openaiChat, body).map((told) => [told.callId, told] as const));
const texts = (body: Uint8Array) => labeledResults(openaiChat, body).map(({ text }) => text);

describe('a file that is read again', () => {
  const twice = [reads('src/a.ts', listing(80)), reads('src/a.ts', `${listing(80)}\n81→// new`)];

  it('is replaced by a reference, except for its new lines', async () => {
    const { body, report } = await testEngine({ shrinks }).engine.prepare(request(twice));
    expect(texts(body)).toEqual([listing(80), '[lines 1-80 as in read_file(src/a.ts) above]\n81→// new']);
    expect(report.memories).toEqual([]);
    expect(report.tokensAfter).toBeLessThan(report.tokensBefore!);
  });

  it('is counted in the memory budget after the first request already', async () => {
    const opened = new Map<string, Cache<string, object>>();
    const caches: Caches = (name, bytesOf) => {
      const cache = createCaches(64)(name, bytesOf);
      opened.set(name, cache as unknown as Cache<string, object>);
      return cache;
    };
    await testEngine({ shrinks, caches }).engine.prepare(request(twice));
    // Each of the 161 lines counts 60 bytes, and the index takes 12 kB.
    expect(opened.get('line references')!.total).toBeGreaterThan(20_000);
  });

  it('is sent in full when references are off, when its tool is pinned, and in the report of a failure', async () => {
    const whole = [listing(80), `${listing(80)}\n81→// new`];
    const off = testEngine({ shrinks: { ...shrinks, repeats: false } });
    expect(texts((await off.engine.prepare(request(twice))).body)).toEqual(whole);
    const pinned = testEngine({ shrinks, pins: { tools: ['read_file'], texts: [] } });
    expect(texts((await pinned.engine.prepare(request(twice))).body)).toEqual(whole);
    const failure = `Traceback (most recent call last):\n${'  File "a.py", line 7, in run\n'.repeat(20)}ValueError: x`;
    const failed = [reads('a.log', failure), reads('b.log', failure)];
    expect(texts((await testEngine({ shrinks }).engine.prepare(request(failed))).body)[1]).toBe(failure);
  });

  it('is sent in full again after a fold removed the lines that it referred to', async () => {
    const noise = (at: number) => reads(`src/${at}.ts`, listing(60, `f${at}_`));
    const steps = [
      reads('src/a.ts', listing(80)),
      ...Array.from({ length: 10 }, (_, at) => noise(at)),
      reads('src/a.ts', listing(80)),
      ...Array.from({ length: 8 }, (_, at) => noise(20 + at)),
    ];
    const store = inMemoryStore();
    const forms = new Set<string>();
    for (let turn = 12; turn <= steps.length; turn++) {
      const { body } = await testEngine({ shrinks, store, window: 14_000 }).engine.prepare(
        request(steps.slice(0, turn)),
      );
      const told = results(body);
      forms.add(`${told.get('call_1')?.text.slice(0, 20)} ... ${told.get('call_12')?.text.slice(0, 20)}`);
    }
    expect([...forms]).toEqual([
      '1→const n0 = compute ... [all of it as in rea',
      '[Folded result: line ... 1→const n0 = compute',
    ]);
  });
});

describe('an edit whose result shows the new lines again', () => {
  const lines = Array.from({ length: 12 }, (_, at) => `  const step${at + 1} = advance(state, ${at + 1});`);
  const shown = ['7→export function run(state) {', ...lines.map((line, at) => `${at + 8}→${line}`), '20→}'];
  const edits: Step = {
    calls: [
      {
        name: 'edit_file',
        input: JSON.stringify({ path: 'src/a.ts', new_string: lines.join('\n') }),
        result: shown.join('\n'),
      },
    ],
  };
  const tooling = ['edit_file', 'read_file'];
  const asked = (steps: readonly Step[]) => ({
    codec: openaiChat,
    body: chatBody([{ user: 'Begin.' }, ...steps], { tools: tooling, model: 'gpt-4o' }),
    tenant: 'tenant',
  });

  it('refers to its own call, with the numbers of the lines', async () => {
    const { body, report } = await testEngine({ shrinks }).engine.prepare(asked([edits]));
    expect(texts(body)).toEqual([
      [shown[0], '[lines 8 9 10 11 12 13 14 15 16 17 18 19 as in new_string of this call]', '20→}'].join(
        '\n',
      ),
    ]);
    expect(report.memories).toEqual([]);
    const off = testEngine({ shrinks: { ...shrinks, repeats: false } });
    expect(texts((await off.engine.prepare(asked([edits]))).body)).toEqual([shown.join('\n')]);
  });

  it('is sent in full again once a fold has replaced the arguments of the call', async () => {
    const others = Array.from({ length: 30 }, (_, at) => reads(`src/${at}.ts`, listing(60, `f${at}_`)));
    const long: Step = {
      calls: [
        {
          name: 'edit_file',
          input: JSON.stringify({
            path: 'src/a.ts',
            new_string: lines.join('\n'),
            why: 'because '.repeat(600),
          }),
          result: shown.join('\n'),
        },
      ],
    };
    const store = inMemoryStore();
    const forms = new Set<string>();
    for (let turn = 1; turn <= 31; turn++) {
      const { engine } = testEngine({ shrinks, store, window: 20_000, strategies: [stubArguments()] });
      const { body } = await engine.prepare(asked([long, ...others].slice(0, turn)));
      const told = results(body).get('call_1');
      const isStubbed = told !== undefined && !JSON.stringify(told.written).includes('because because');
      if (told) forms.add(`${isStubbed ? 'stubbed' : 'whole'}: ${told.text.includes('of this call')}`);
    }
    expect([...forms]).toEqual(['whole: true', 'stubbed: false']);
  });
});

const program = Array.from({ length: 120 }, (_, at) => `  some line ${at} of a program;`);
const step = fc
  .record({
    path: fc.constantFrom('a.ts', 'b.ts'),
    from: fc.nat(80),
    length: fc.integer({ min: 1, max: 40 }),
    shift: fc.constantFrom(1, 1, 1, 12),
    other: fc.boolean(),
    edit: fc.option(fc.nat(3), { nil: undefined }),
  })
  .map(({ path, from, length, shift, other, edit }): Step => {
    const lines = program.slice(from, from + length).map((line, at) => `${from + at + shift}→${line}`);
    if (edit !== undefined) {
      const written = program.slice(from + edit, from + length).join('\n');
      const input = JSON.stringify({ path, old_string: program[from], new_string: written });
      return { calls: [{ name: 'edit_file', input, result: lines.join('\n') }] };
    }
    return other
      ? reads(path, `${lines.join('\n')}\nchanged ${from} ${length}`)
      : reads(path, lines.join('\n'));
  });
const conversations = fc.array(step, { minLength: 4, maxLength: 24 });

describe('any content that is read again, with folds in between', () => {
  it('is restored by following its references, and keeps its form between folds, in every instance', async () => {
    let references = 0;
    let written = 0;
    let folds = 0;
    await fc.assert(
      fc.asyncProperty(conversations, async (steps) => {
        const store = inMemoryStore();
        const options = { shrinks, store, window: 2_500 };
        const { engine } = testEngine(options);
        let before: readonly string[] = [];
        for (let turn = 1; turn <= steps.length; turn++) {
          const asked = request(steps.slice(0, turn));
          const { body, report } = await engine.prepare(asked);
          expect((await testEngine(options).engine.prepare(asked)).body).toEqual(body);

          const came = results(asked.body);
          const sent = results(body);
          const read = resolveReferences([...sent.values()]);
          for (const [at, [id, { text }]] of [...sent].entries()) {
            if (text.includes('[Folded')) continue;
            expect(unpadded(read[at]!)).toBe(unpadded(came.get(id)!.text));
            if (/ above\]$/m.test(text)) references++;
            if (/ of this call(?:, from .* on)?\]$/m.test(text)) written++;
          }
          const messages = openaiChat
            .read(body, freshReading())
            .messages.map(({ span }) => new TextDecoder().decode(body.subarray(span.start, span.end)));
          if (report.steps.length === 0) expect(messages.slice(0, before.length)).toEqual(before);
          else folds++;
          before = messages;
        }
      }),
      { numRuns: 40 },
    );
    expect(references).toBeGreaterThan(0);
    expect(written).toBeGreaterThan(0);
    expect(folds).toBeGreaterThan(0);
  });

  it('is the same in branches of a conversation, in any order', async () => {
    await fc.assert(
      fc.asyncProperty(conversations, conversations, conversations, async (common, one, other) => {
        const { engine } = testEngine({ shrinks });
        for (const steps of [one, other, one.slice(0, 2), other, []]) {
          const asked = request([...common, ...steps]);
          const alone = await testEngine({ shrinks }).engine.prepare(asked);
          expect((await engine.prepare(asked)).body).toEqual(alone.body);
        }
      }),
      { numRuns: 25 },
    );
  });
});
