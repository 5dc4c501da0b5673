import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { createDefaultEngine, type ServedSettings } from '../library/default-engine.ts';
import { chatBody } from '../../test/support/chat-conversation.ts';
import type { Store } from '../store/store.ts';

const secret = new Uint8Array(32).fill(7);
const triggers = { tokenBudget: { triggerTokens: 8_000, targetTokens: 3_000, bufferTokens: 1 } };

/** An experiment that sends the control group as the client did. Nearly all conversations are in the named arm. */
const untouched = { offerRecall: 'with-fold', shrinks: false, cacheMarks: false } as const;
const allControl: ServedSettings = { triggers, ...untouched, holdout: 0.999_999_999 };
const allFolded: ServedSettings = { triggers, ...untouched, holdout: 0.000_000_001 };

function openEngine(settings: ServedSettings, store: Store = inMemoryStore()) {
  return createDefaultEngine(settings, createEncryptedStore({ store, secret }));
}

const resultOf = (at: number) =>
  Array.from({ length: 90 }, (_, line) => `job ${at}, ${line * 7919 + at} rows`).join('\n');

function request(
  turns: number,
  { model = 'gpt-4o', last = '', session }: { model?: string; last?: string; session?: string } = {},
) {
  const steps = Array.from({ length: turns }, (_, at) => ({
    calls: [
      { name: 'run', input: `{"n":${at}}`, result: at === turns - 1 ? last + resultOf(at) : resultOf(at) },
    ],
  }));
  const body = chatBody([{ user: 'Run all jobs.' }, ...steps], { tools: ['run'], model });
  return { codec: openaiChat, body, tenant: 'tenant', session };
}

const isSentAsItCame = (sent: { body: Uint8Array }, came: { body: Uint8Array }) =>
  Buffer.from(sent.body).equals(came.body);

describe('the control group of a holdout', () => {
  it('is sent byte for byte as the client sent it, where others would be folded', async () => {
    const [control, folded] = [openEngine(allControl), openEngine(allFolded)];
    for (const turns of [3, 8, 12, 13, 30]) {
      const came = request(turns);
      const sent = await control.prepare(came);
      expect(isSentAsItCame(sent, came)).toBe(true);
      expect(sent.trial?.isControl).toBe(turns > 8 ? true : undefined);
      const other = await folded.prepare(came);
      expect(other.trial?.isControl).toBe(turns > 8 ? false : undefined);
      expect(other.report.memories.length > 0).toBe(turns > 8);
    }
  });

  it('is the same after a restart, in a second gateway and on a branch, whatever their rate', async () => {
    const store = inMemoryStore();
    const first = await openEngine(allControl, store).prepare(request(12));
    expect(first.trial?.isControl).toBe(true);
    for (const settings of [allControl, allFolded]) {
      const other = openEngine(settings, store);
      for (const came of [request(12), request(13), request(20), request(14, { last: 'branch ' })]) {
        const sent = await other.prepare(came);
        expect(sent.trial).toEqual(first.trial);
        expect(isSentAsItCame(sent, came)).toBe(true);
      }
    }
  });

  it('keeps its arm just where a folded conversation does after the client went back', async () => {
    const keepsArm = async (settings: ServedSettings, turns: number) => {
      const store = inMemoryStore();
      const { trial } = await openEngine(settings, store).prepare(request(16));
      const again = await openEngine(settings, store).prepare(request(turns));
      return again.trial?.unit === trial!.unit;
    };
    const turns = [16, 15, 14, 13, 12, 11, 10, 9];
    const folded = await Promise.all(turns.map((count) => keepsArm(allFolded, count)));
    expect(await Promise.all(turns.map((count) => keepsArm(allControl, count)))).toEqual(folded);
    expect(new Set(folded)).toEqual(new Set([true, false]));
  });

  it('is not drawn again for a conversation that was folded', async () => {
    const store = inMemoryStore();
    const first = await openEngine(allFolded, store).prepare(request(12));
    const later = await openEngine(allControl, store).prepare(request(13));
    expect(later.trial).toEqual(first.trial);
    expect(later.report.memories).toEqual(first.report.memories);
  });

  it('holds all conversations of a session', async () => {
    const half: ServedSettings = { triggers, ...untouched, holdout: 0.5 };
    const arms = new Set<boolean | undefined>();
    for (const model of ['gpt-4o', 'gpt-4o-mini', 'gpt-4.1', 'gpt-4']) {
      const sent = await openEngine(half).prepare(request(12, { session: 'one', last: model }));
      arms.add(sent.trial?.isControl);
    }
    expect(arms.size).toBe(1);
    const drawn = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, at) => (await openEngine(half).prepare(request(12, { last: `${at}` }))).trial,
      ),
    );
    expect(new Set(drawn.map((trial) => trial?.isControl)).size).toBe(2);
  });

  it('is folded when it would not fit, and stays control', async () => {
    const models = { '*': { windowTokens: 20_000 } };
    const engine = openEngine({ ...allControl, models });
    const control = await engine.prepare(request(12));
    expect(control.trial?.isControl).toBe(true);
    const rescued = await engine.prepare(request(60));
    expect(rescued.report.tokensAfter).toBeLessThan(20_000);
    expect(rescued.report.memories.length).toBeGreaterThan(0);
    expect(rescued.trial).toEqual(control.trial);
    const later = await engine.prepare(request(61));
    expect(later.trial).toEqual(control.trial);
    expect(later.report.replayed).toBeGreaterThan(0);
  });

  it('keeps the tool and the shrinks that both arms have, unless it is to be untouched', async () => {
    const control = openEngine({ triggers, holdout: 0.999_999_999 });
    const never = openEngine({
      triggers: { tokenBudget: false, cacheRent: false },
    });
    for (const turns of [3, 12, 13]) {
      const came = request(turns);
      const [sent, other] = [await control.prepare(came), await never.prepare(came)];
      expect(Buffer.from(sent.body).equals(other.body)).toBe(true);
    }
  });

  it('keeps its arm when the provider refused a fold, and a day later', async () => {
    let now = 1_800_000_000_000;
    const clock = (): number => now;
    const store = inMemoryStore({ clock });
    const open = (settings: ServedSettings) =>
      createDefaultEngine(settings, createEncryptedStore({ store, secret, clock }), { clock });
    const refused = open(allFolded);
    const { trial } = await refused.prepare(request(12));
    await refused.disableFolding(request(12));
    for (const engine of [refused, open(allControl)])
      expect((await engine.prepare(request(13))).trial).toEqual(trial);
    now += 25 * 60 * 60 * 1_000;
    expect((await open(allControl).prepare(request(14))).trial).toEqual(trial);
  });
});
