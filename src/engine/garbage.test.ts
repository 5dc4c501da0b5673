import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { growingBodies, rewrittenBodies } from '../../bench/gateway/chat-body.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createDefaultEngine } from '../library/default-engine.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;

/** Returns the bytes of buffers after a collection of young objects. It frees buffers in another thread, so this waits until `isFreed`, or for a while. */
async function heldAfterMinor(isFreed: (held: number) => boolean): Promise<number> {
  collect({ type: 'minor' });
  let held = process.memoryUsage().arrayBuffers;
  for (let tries = 0; tries < 100 && !isFreed(held); tries++) {
    await pause(10);
    held = process.memoryUsage().arrayBuffers;
  }
  return held;
}

describe('engine', () => {
  test.each([
    ['of a conversation whose newest message changes', rewrittenBodies(200_000)],
    ['of a conversation that grows', growingBodies(200_000, 1)],
  ])(
    'leaves nothing that keeps the bytes of an answered request until a full collection, %s',
    async (_, nextBody) => {
      const encryptedStore = createEncryptedStore({
        store: inMemoryStore(),
        secret: new Uint8Array(32).fill(1),
      });
      const engine = createDefaultEngine({}, encryptedStore);
      let turn = 0;
      const prepare = async (requests: number) => {
        for (let request = 0; request < requests; request++) {
          const body = new Uint8Array(nextBody(turn++));
          await engine.prepare({ codec: openaiChat, body, tenant: 'garbage' });
        }
      };
      await prepare(40);
      // Otherwise a full collection may follow of its own accord, and hide what is kept.
      collect();
      const before = await heldAfterMinor(() => false);
      await prepare(40);
      const held = (await heldAfterMinor((now) => now - before < 2_000_000)) - before;
      expect(held).toBeLessThan(2_000_000);
    },
  );
});
