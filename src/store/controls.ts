/**
 * Keeps what users decided while the gateway runs, by tenant: pinned tools, and conversations whose folds they undid. A decision applies
 * from the next request on. It is stored encrypted; other gateways on the same store follow within seconds.
 */
import { openFixed } from '../caches.ts';
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
  /** Changes the decisions. Rejects with `store-failed`. */
  change(tenant: string, change: (controls: TenantControls) => TenantControls): Promise<void>;
}

type ControlsOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'putSealed' | 'getSealedMany' | 'writesByOthers'>;
  /** A monotonic clock in milliseconds. */
  readonly clock?: Clock;
  /** Milliseconds after which the decisions are read again if another process may have changed them. Default 2,000. */
  readonly refreshMs?: number;
};

/** The most tools, and the most conversations, that are kept for one tenant: the newest ones. */
const maxEntries = 500;

const ttlMs = 10 * 365 * 24 * 60 * 60 * 1_000;
const key = 'controls';
const none: TenantControls = { pinnedTools: [], undone: [] };

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

  async function read(tenant: string): Promise<TenantControls> {
    const asOf = encryptedStore.writesByOthers();
    const at = clock();
    const [record] = await encryptedStore.getSealedMany(tenant, [key]);
    const controls =
      (record && (decodeRecord(record, 'A list of pins') as TenantControls | undefined)) ?? none;
    known.set(tenant, { controls, at, asOf });
    return controls;
  }

  return {
    find(tenant) {
      const here = known.get(tenant);
      if (here === undefined) return read(tenant).catch(() => none);
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
        const { pinnedTools, undone } = change(await read(tenant));
        const controls = { pinnedTools: pinnedTools.slice(-maxEntries), undone: undone.slice(0, maxEntries) };
        await encryptedStore.putSealed(tenant, [key], encodeRecord(controls), ttlMs);
        known.set(tenant, { controls, at: clock(), asOf: encryptedStore.writesByOthers() });
      }),
  };
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
