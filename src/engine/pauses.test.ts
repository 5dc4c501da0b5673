/** Counts the steps of passes over large bodies: the event loop can serve others between two of them. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { callWords } from '../outline/step-line.ts';
import { newReading } from '../../test/support/codec-suite/views.ts';
import { checkJson, openRun, Paused, runPausably, type Steps } from '../conversation/steps.ts';
import { originalsInSteps, stayingInSteps } from '../conversation/edit.ts';
import { pairInSteps, unitsInSteps } from '../conversation/turns.ts';
import { conversationCounter } from '../tokens/count-conversation.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import { placesEdited, placesInSteps } from '../strategies/lib/editable-texts.ts';
import { dropOldest } from '../strategies/drop-messages.ts';
import { foldView } from '../../test/support/strategy-suite.ts';
import { reportsOfFailedEdits } from './finish.ts';
import { openMedia } from './protect.ts';
import { resultStub } from '../strategies/lib/stubs.ts';
import { noteInView, partsInView } from './in-view.ts';

// No time passes, so that repeated steps never take longer than new ones.
beforeEach(() => void vi.spyOn(performance, 'now').mockReturnValue(1));
afterEach(() => void vi.restoreAllMocks());

function stepsOf(steps: Steps<unknown>): number {
  let count = 1;
  while (!steps.next().done) count++;
  return count;
}

/** Returns the pauses of a function with a pause after every step. */
function pausesOf(run: () => unknown): number {
  const progress = openRun(() => true);
  for (let pauses = 0; ; pauses++) {
    try {
      runPausably(progress, run);
      return pauses;
    } catch (error) {
      if (!(error instanceof Paused)) throw error;
    }
  }
}

const inView = {
  pins: { tools: [], texts: [] },
  window: 100_000,
  recalled: new Set<string>(),
  notesTool: undefined,
};

function callOf(at: number) {
  return { id: `call_${at}`, type: 'function', function: { name: 'read', arguments: '{}' } };
}

function read(messages: readonly object[]) {
  const body = new TextEncoder().encode(JSON.stringify({ model: 'gpt-4o', messages }));
  return openaiChat.read(body, newReading());
}

describe('a text of a million units', () => {
  const text = '🙂'.repeat(500_000);
  const stub = { text, memory: 'mem_1', recallTool: 'read_memory' };

  it('is measured for a stub in steps', () => {
    expect(stepsOf(resultStub({ ...stub, call: undefined }))).toBeGreaterThanOrEqual(7);
  });

  it('is measured in steps as lines of a file, too', () => {
    const call = callWords({ tool: 'read', input: '{"path":"a.txt"}' });
    expect(stepsOf(resultStub({ ...stub, call }))).toBeGreaterThanOrEqual(7);
  });

  it('is searched for marks in steps', () => {
    const conversation = read([{ role: 'user', content: text }]);
    expect(stepsOf(noteInView(conversation))).toBeGreaterThanOrEqual(2_000_000 / 132_000);
  });

  it('is searched for marks that lie across two steps', () => {
    const marked = '<leporello:keep>this</leporello:keep>';
    for (let shift = 0; shift < 60; shift += 3) {
      const content = `${'x'.repeat(131_000 + shift)}${marked}${'y'.repeat(100_000)}`;
      const call = { id: 'a', type: 'function', function: { name: 'read', arguments: '{}' } };
      const conversation = read([
        { role: 'assistant', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'a', content },
      ]);
      for (const _ of noteInView(conversation));
      const { texts } = partsInView(conversation, inView);
      expect(texts.get(1)?.get(0), `${shift}`).toEqual([marked]);
    }
  });
});

describe('a conversation of 20,000 messages', () => {
  const messages = [
    { role: 'user', content: 'Go.' },
    ...Array.from({ length: 5_000 }, (_, at) => [
      { role: 'assistant', content: null, tool_calls: [callOf(at)] },
      { role: 'tool', tool_call_id: `call_${at}`, content: 'ok' },
      { role: 'assistant', content: 'Done.' },
      { role: 'user', content: `Step ${at}.` },
    ]).flat(),
  ];
  const conversation = read(messages);

  it('is paired in steps', () => {
    expect(stepsOf(pairInSteps({ ...conversation }))).toBeGreaterThanOrEqual(5_000 / 512);
  });

  it('is counted in steps', async () => {
    const counter = conversationCounter(await loadTokenCounter('gpt-4o'));
    expect(stepsOf(counter.messagesInSteps(conversation))).toBeGreaterThanOrEqual(5);
    expect(counter.messages(conversation)).toEqual(
      conversationCounter(await loadTokenCounter('gpt-4o')).messages({ ...conversation }),
    );
  });

  it('is searched in steps for what has to stay, and divided into units in steps', () => {
    expect(stepsOf(stayingInSteps(conversation))).toBeGreaterThanOrEqual(20_000 / 4_096);
    expect(stepsOf(unitsInSteps(conversation))).toBeGreaterThanOrEqual(20_000 / 4_096);
  });

  it('is written without most of its messages in steps', () => {
    const edits = conversation.messages
      .slice(1, -1)
      .map(({ index }) => ({ kind: 'drop-message' as const, message: index, memory: undefined }));
    expect(stepsOf(placesInSteps(edits))).toBeGreaterThanOrEqual(20_000 / 4_096);
    let written = new Uint8Array();
    const pauses = pausesOf(() => void (written = new Uint8Array(openaiChat.write(conversation, edits))));
    // Edits are looked at twice, and messages once.
    expect(pauses).toBeGreaterThanOrEqual(3 * 20);
    expect(openaiChat.read(written, newReading()).messages).toHaveLength(2);
  });

  it('has its originals taken out in steps', () => {
    const edits = conversation.messages.map(({ index }) => ({
      kind: 'drop-message' as const,
      message: index,
      memory: `mem_${index % 100}`,
    }));
    expect(stepsOf(originalsInSteps(conversation, edits))).toBeGreaterThanOrEqual(20_000 / 64);
  });

  it('has its media searched in steps', async () => {
    const counter = conversationCounter(await loadTokenCounter('gpt-4o'));
    const protects = { message: () => false, part: () => false, recalled: () => false };
    const input = {
      conversation,
      codec: openaiChat,
      counter,
      protects,
      minResultBytes: 500,
      keepNewestMedia: 4,
    };
    expect(stepsOf(openMedia(input, placesEdited([])))).toBeGreaterThanOrEqual(20_000 / 64);
  });

  it('is scanned in steps before its first message is read', () => {
    const small = Array.from({ length: 40_000 }, () => ({ role: 'user', content: 'x' }));
    const body = new TextEncoder().encode(JSON.stringify({ model: 'gpt-4o', messages: small }));
    expect(body.length).toBeGreaterThan(1_000_000);
    const blocks = {
      get() {
        throw new Error('read');
      },
      set: () => undefined,
    };
    const run = openRun(() => true);
    let pauses = 0;
    const readOn = () => {
      try {
        runPausably(run, () => openaiChat.read(body, { ...newReading(), blocks }));
      } catch (error) {
        if (!(error instanceof Paused)) throw error;
        return pauses++;
      }
      return undefined;
    };
    expect(() => {
      while (readOn() !== undefined);
    }).toThrow('read');
    expect(pauses).toBeGreaterThanOrEqual(5);
  });

  it('is searched for reports of failed edits in steps', () => {
    const results = Array.from({ length: 5_000 }, (_, at) => callOf(at));
    const oneTurn = read([
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: null, tool_calls: results },
      ...results.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'ok' })),
    ]);
    expect(stepsOf(reportsOfFailedEdits(oneTurn))).toBeGreaterThanOrEqual(5_000);
  });
});

describe('a reply of 150,000 messages', () => {
  // Neighboring messages of the model are dropped together.
  const reply = Array.from({ length: 150_000 }, (_, at) => ({ role: 'assistant', content: `${at}` }));
  const conversation = read([
    { role: 'user', content: 'Go.' },
    ...reply,
    { role: 'user', content: 'Go on.' },
    { role: 'assistant', content: 'Done.' },
    { role: 'user', content: 'Thanks.' },
  ]);

  it('is dropped in steps', () => {
    const steps = dropOldest().proposeInSteps!(foldView(conversation));
    let count = 1;
    let step = steps.next();
    for (; !step.done; step = steps.next()) count++;
    expect(step.value.length).toBeGreaterThan(reply.length);
    expect(count).toBeGreaterThanOrEqual(reply.length / 64);
  });
});

describe('an object with very many members', () => {
  const members = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`member${at}`, at]));

  it('is cut and checked in steps', () => {
    const bytes = new TextEncoder().encode(JSON.stringify({ ...members, more: Array(600_000).fill(1) }));
    // Each piece of 131,072 bytes is checked in one step, and each megabyte cut in one.
    expect(pausesOf(() => checkJson(bytes))).toBeGreaterThanOrEqual(bytes.length / 140_000 + 3);
  });

  it('is read in groups of members, not one by one, when it is a body', () => {
    const body = new TextEncoder().encode(
      JSON.stringify({ model: 'gpt-4o', ...members, messages: [{ role: 'user', content: 'Go.' }] }),
    );
    const pauses = pausesOf(() => openaiChat.read(body, newReading()));
    expect(pauses).toBeGreaterThanOrEqual(30);
    expect(pauses).toBeLessThan(100);
  });
});
