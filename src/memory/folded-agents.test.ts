import { expect, it } from 'vitest';
import { createFoldedAgents } from './folded-agents.ts';
import { inMemoryStore } from './in-memory.ts';
import { createVault } from './vault.ts';

it('an agent is known by tenant and tools, in every process, for as long as is said', async () => {
  let now = 0;
  const clock = () => now;
  const store = inMemoryStore({ clock });
  const vault = createVault({ store, secret: new Uint8Array(32), clock });
  const agents = createFoldedAgents({ vault, ttlMs: 1_000 });
  await vault.keep('t', [], agents.recordOf(['read', 'write']));
  const known = async () => {
    const other = createFoldedAgents({ vault });
    return [
      await other.has('t', ['write', 'read']),
      await other.has('t', ['read']),
      await other.has('t', ['read,write']),
      await other.has('u', ['read', 'write']),
    ];
  };
  expect(await known()).toEqual([true, false, false, false]);
  now = 1_001;
  expect(await known()).toEqual([false, false, false, false]);
});
