/** A result that the agent fetches again after a fold is reported, stays whole for four times the usual age, and makes such folds dearer. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSeenBodies } from '../codecs/earlier-bodies.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { unremembered } from '../codecs/read-body.ts';
import type { Edit } from '../conversation/edit.ts';
import { runSteps } from '../conversation/steps.ts';
import { commonLength, sha256 } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { cacheRent } from '../triggers/cache-costs.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { fetchedAgain } from './at-work.ts';

const lines = (name: string) =>
  Array.from({ length: 40 }, (_, at) => `${name} line ${at} holds ${at * 7919}`);
/** Reads a file from a line number on, as clients list it. */
const read = (name: string, from = 1): Step => {
  const listed = lines(name).map((line, at) => `${String(at + from).padStart(6)}→${line}`);
  return { calls: [{ name: 'read', input: JSON.stringify({ path: name }), result: listed.join('\n') }] };
};

const triggerOptions = { tokenBudget: { triggerTokens: 4_000, targetTokens: 2_000, bufferTokens: 100 } };
const others = Array.from({ length: 6 }, (_, at) => read(`other${at}`));

/** Sends each request of a conversation to one of two engines on the same store; returns what each reports and sends. */
async function play(steps: readonly Step[], engineOf: (request: number) => number = () => 0) {
  const store = inMemoryStore();
  const engines = [testEngine({ store, triggerOptions }), testEngine({ store, triggerOptions })];
  const requests: { readonly again: readonly string[]; readonly text: string }[] = [];
  for (let length = 1; length <= steps.length; length++) {
    const body = chatBody([{ user: 'Go' }, ...steps.slice(0, length)], { tools: ['read'] });
    const { engine } = engines[engineOf(length)]!;
    const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 't' });
    await prepared.known;
    const again = (prepared.report.fetchedAgain ?? []).map(({ strategy }) => strategy);
    requests.push({ again, text: new TextDecoder().decode(prepared.body) });
  }
  return requests;
}

const shows = (text: string, name: string) => lines(name).every((line) => text.includes(line));

describe('a result that is fetched again', () => {
  it('is reported once, with the strategy that folded it, even where its lines have other numbers', async () => {
    const requests = await play([read('first'), ...others, read('first', 300), read('more')]);
    expect(shows(requests.at(-3)!.text, 'first')).toBe(false);
    expect(requests.map(({ again }) => again.length)).toEqual([...others.map(() => 0), 0, 1, 0]);
    expect(['offload-results', 'drop-oldest']).toContain(requests.at(-2)!.again[0]);
  });

  it('is not reported while the earlier one is still sent, nor when most of it is new', async () => {
    const twice = await play([read('first'), read('first')]);
    expect(twice.flatMap(({ again }) => again)).toEqual([]);
    const changed: Step = {
      calls: [{ name: 'read', result: [...lines('first').slice(0, 20), ...lines('new')].join('\n') }],
    };
    const requests = await play([read('first'), ...others, changed]);
    expect(requests.flatMap(({ again }) => again)).toEqual([]);
  });

  it('is never folded within four ages, whichever gateway serves the requests', async () => {
    let fetched = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(7), fc.nat(1)), { minLength: 12, maxLength: 30 }),
        async (visits) => {
          const steps = visits.map(([file]) => read(`file${file}`));
          const requests = await play(steps, (length) => visits[length - 1]![1]);
          for (const [at, { again }] of requests.entries()) {
            if (again.length === 0) continue;
            fetched++;
            for (const later of requests.slice(at, at + 17))
              expect(shows(later.text, `file${visits[at]![0]}`)).toBe(true);
          }
        },
      ),
      { numRuns: 12 },
    );
    expect(fetched).toBeGreaterThan(5);
  });

  it('is charged as a step to folds that take such content', () => {
    const one = { message: 1, evicts: 'texts', tokens: 5_000, requests: 20, behind: 10_000 } as const;
    const state = (texts: number) => ({
      tokens: 40_000,
      window: undefined,
      reserved: 0,
      messages: 9,
      economy: {
        read: 0.1,
        write: 1.25,
        fetchedAgain: { texts, messages: 5 - texts },
        candidates: () => [one],
      },
    });
    const trigger = cacheRent({ minPayback: 0.8 });
    expect(trigger.demand(state(0))?.trigger).toBe('cache-rent');
    expect(trigger.demand(state(5))).toBeUndefined();
  });
});

describe('the lines of a fold', () => {
  it('tell the same in any order of branches as in a process that saw no other request', () => {
    const trunk = [read('first'), ...others, read('second')];
    const long = chatBody([{ user: 'Go' }, ...trunk, ...others], { tools: ['read'] });
    const reading = {
      ...unremembered,
      digest: sha256,
      seen: createSeenBodies({ commonLength }),
    };
    const edits: readonly Edit[] = openaiChat
      .read(long, reading)
      .messages.slice(1, 9)
      .map(({ index }) => ({ kind: 'drop-message', message: index, memory: undefined }));
    let found = 0;
    fc.assert(
      fc.property(fc.array(fc.array(fc.constantFrom('first', 'second', 'other1', 'new'))), (branches) => {
        for (const names of branches) {
          const steps = [{ user: 'Go' }, ...trunk, ...names.map((name) => read(name))];
          const conversation = openaiChat.read(chatBody(steps, { tools: ['read'] }), reading);
          const alone = runSteps(fetchedAgain(conversation, [...edits]));
          expect(runSteps(fetchedAgain(conversation, edits))).toEqual(alone);
          found += alone.length;
        }
      }),
    );
    expect(found).toBeGreaterThan(20);
  });
});
