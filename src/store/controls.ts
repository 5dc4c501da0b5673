/**
 * Keeps what users decided while the gateway runs, by tenant: pinned tools, and conversations whose folds they undid. A decision applies
 * from the next request on. It is stored encrypted; other gateways on the same store follow within seconds.
 */
import { openFixed } from '../caches.ts';
import { LeporelloError } from '../errors.ts';
import type { EncryptedStore } from './encrypted-store.ts';
import { decodeRecord, encodeRecord } from './records.ts';
import { type Clock, createTurns } from './store.ts';

/** The decisions of a tenant. */
export type TenantControls = {
  /** Results of these tools are not folded from now on. Folds that were made before are still repeated. */
  readonly pinnedTools: readonly string[];
  /** Conversations that are sent without the folds made until then, and folded again only if they would not fit. The newest come first. */
  readonly undone: readonly UndoneConversation[];
};

export type UndoneConversation = {
  /** The prefix hash that all requests of the conversation share. */
  readonly beginning: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

export interface Controls {
  /** Returns the decisions of a tenant; none when the store fails. Only the first request of a tenant waits for the store. */
  find(tenant: string): TenantControls | Promise<TenantControls>;
  /** Changes the decisions, and keeps what other gateways change at the same time. Rejects with `store-failed`. */
  change(tenant: string, change: (controls: TenantControls) => TenantControls): Promise<void>;
}

type ControlsOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'getSealedMany' | 'writesByOthers'>;
  /** A monotonic clock in milliseconds. */
  readonly clock?: Clock;
  /** Milliseconds after which the decisions are read again if another process may have changed them. Default 2,000. */
  readonly refreshMs?: number;
};

/** The most tools, and the most conversations, that are kept for one tenant: the newest ones. */
const maxEntries = 500;

const ttlMs = 10 * 365 * 24 * 60 * 60 * 1_000;
const key = 'controls';
const none: StoredControls = { pinnedTools: [], undone: [], changes: 0 };

/** `changes`: how often the decisions were changed; undefined in records of versions that did not count it. */
type StoredControls = TenantControls & { readonly changes?: number };

/**
 * The n-th change of the decisions also writes this key, and only if it has no value. If several gateways begin with the same decisions, one
 * succeeds, and the others begin again with its result.
 */
const changeKey = (change: number) => `controls/change/${change}`;
/** Milliseconds that the key stays: longer than any change takes. */
const changeTtlMs = 60_000;
/** How often a change begins again. */
const maxTries = 50;

type KnownControls = {
  readonly controls: TenantControls;
  readonly at: number;
  readonly asOf: number | undefined;
};

export function createControls({
  encryptedStore,
  clock = () => performance.now(),
  refreshMs = 2_000,
}: ControlsOptions): Controls {
  const known = openFixed<string, KnownControls>('controls');
  /** Two changes at once would begin with the same decisions, and one would be lost. */
  const inTurn = createTurns();

  async function read(tenant: string): Promise<StoredControls> {
    const asOf = encryptedStore.writesByOthers();
    const at = clock();
    const [record] = await encryptedStore.getSealedMany(tenant, [key]);
    const stored = (record && (decodeRecord(record, 'A list of pins') as StoredControls | undefined)) ?? none;
    known.set(tenant, { controls: decisionsIn(stored), at, asOf });
    return stored;
  }

  /** Writes the decisions unless another gateway has changed them since they were read. */
  async function write(tenant: string, controls: TenantControls, change: number): Promise<boolean> {
    const content = encodeRecord({ ...controls, changes: change } satisfies StoredControls);
    const own = changeKey(change);
    const taken = await encryptedStore.keep(
      tenant,
      [],
      { keys: [key], content, ttlMs },
      { keys: [own], content: encodeRecord({}), ttlMs: changeTtlMs, unless: [own] },
    );
    if (taken === undefined)
      known.set(tenant, { controls, at: clock(), asOf: encryptedStore.writesByOthers() });
    return taken === undefined;
  }

  return {
    find(tenant) {
      const here = known.get(tenant);
      if (here === undefined) return read(tenant).then(decisionsIn, () => decisionsIn(none));
      const asOf = encryptedStore.writesByOthers();
      const isCurrent = asOf !== undefined && asOf === here.asOf;
      if (!isCurrent && clock() - here.at > refreshMs) {
        known.set(tenant, { ...here, at: clock() });
        read(tenant).catch(() => undefined);
      }
      return here.controls;
    },
    change: (tenant, change) =>
      inTurn(tenant, async () => {
        for (let tries = 0; tries < maxTries; tries++) {
          const stored = await read(tenant);
          const { pinnedTools, undone } = change(decisionsIn(stored));
          const newest = {
            pinnedTools: pinnedTools.slice(-maxEntries),
            undone: undone.slice(0, maxEntries),
          };
          if (await write(tenant, newest, (stored.changes ?? 0) + 1)) return;
        }
        throw new LeporelloError(
          'store-failed',
          `Other gateways changed the pins of the tenant ${tenant} ${maxTries} times meanwhile, so nothing was changed. Try again in a minute.`,
        );
      }),
  };
}

function decisionsIn({ pinnedTools, undone }: StoredControls): TenantControls {
  return { pinnedTools, undone };
}

/** Pins a tool. */
export function withPin(controls: TenantControls, tool: string): TenantControls {
  return { ...controls, pinnedTools: [...withoutPin(controls, tool).pinnedTools, tool] };
}

/** Unpins a tool. */
export function withoutPin(controls: TenantControls, tool: string): TenantControls {
  return { ...controls, pinnedTools: controls.pinnedTools.filter((pinned) => pinned !== tool) };
}

/** Undoes the folds that a conversation has now. */
export function withUndone(controls: TenantControls, beginning: string, at: number): TenantControls {
  return { ...controls, undone: [{ beginning, at }, ...withFolds(controls, beginning).undone] };
}

/** Lets a conversation be folded again: its earlier folds are repeated again. */
export function withFolds(controls: TenantControls, beginning: string): TenantControls {
  return { ...controls, undone: controls.undone.filter((one) => one.beginning !== beginning) };
}
