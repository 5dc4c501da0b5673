import { describe, expect, it } from 'vitest';
import { createControls, withFolds, withoutPin, withPin, withUndone } from './controls.ts';
import { createEncryptedStore } from './encrypted-store.ts';
import { inMemoryStore } from './in-memory.ts';

/** Two processes over one store. `setTime` sets the time of both in milliseconds. */
function shared() {
  let now = 0;
  const store = inMemoryStore();
  const open = () =>
    createControls({
      encryptedStore: createEncryptedStore({ store, secret: new Uint8Array(32).fill(5) }),
      clock: () => now,
    });
  return { open, setTime: (to: number) => void (now = to) };
}

describe('controls', () => {
  it('are empty at first, apply at once in their process, and in another one after a while', async () => {
    const { open, setTime } = shared();
    const [one, other] = [open(), open()];
    expect(await one.find('anna')).toEqual({ pinnedTools: [], undone: [] });
    expect(await other.find('anna')).toEqual({ pinnedTools: [], undone: [] });
    await one.change('anna', (controls) => withPin(withUndone(controls, 'beginning', 7), 'Read'));
    const changed = { pinnedTools: ['Read'], undone: [{ beginning: 'beginning', at: 7 }] };
    expect(one.find('anna')).toEqual(changed);
    setTime(3_000);
    await other.find('anna');
    await new Promise((resolve) => setImmediate(resolve));
    expect(other.find('anna')).toEqual(changed);
    expect(await open().find('anna')).toEqual(changed);
    expect(await open().find('bert')).toEqual({ pinnedTools: [], undone: [] });
  });

  it('keep both of two changes at once', async () => {
    const controls = shared().open();
    await Promise.all(['Read', 'Grep'].map((tool) => controls.change('anna', (now) => withPin(now, tool))));
    expect((await controls.find('anna')).pinnedTools).toEqual(['Read', 'Grep']);
  });

  it('keep the changes that processes on one store make at once', async () => {
    const { open } = shared();
    const tools = ['Read', 'Grep', 'Bash', 'Edit'];
    await Promise.all(tools.map((tool) => open().change('anna', (now) => withPin(now, tool))));
    await Promise.all([
      open().change('anna', (now) => withoutPin(now, 'Bash')),
      open().change('anna', (now) => withUndone(now, 'beginning', 7)),
    ]);
    const { pinnedTools, undone } = await open().find('anna');
    expect(pinnedTools.toSorted()).toEqual(['Edit', 'Grep', 'Read']);
    expect(undone).toEqual([{ beginning: 'beginning', at: 7 }]);
  });

  it('can be taken back', async () => {
    const controls = shared().open();
    await controls.change('anna', (now) => withPin(withPin(withUndone(now, 'one', 7), 'Read'), 'Read'));
    await controls.change('anna', (now) => withoutPin(withFolds(now, 'one'), 'Read'));
    expect(await controls.find('anna')).toEqual({ pinnedTools: [], undone: [] });
  });
});
