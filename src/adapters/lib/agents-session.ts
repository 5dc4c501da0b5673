/**
 * Keeps the items of a session of OpenAI Agents in Leporello's store, encrypted, so that a run goes on after a restart or on another machine. The
 * items are complete: folds are made of a copy.
 */
import type { AgentInputItem, Session } from '@openai/agents';
import { checkSettings, object, positiveNumber, someText } from '../../checks.ts';
import { isRecord } from '../../conversation/json-scan.ts';
import { LeporelloError } from '../../errors.ts';
import { type Leporello, partsOf } from '../../library/leporello.ts';
import { decodeRecord, encodeRecord } from '../../store/records.ts';
import { packBytes, unpackBytes } from './media-blocks.ts';
import { tenantCheck } from './options.ts';

export type SessionOptions = {
  /** The name of the session. Default: a random one. */
  readonly sessionId?: string;
  /** The owner of the session. Default `local`. */
  readonly tenant?: string;
  /** How long the session is kept after it was last used, in milliseconds. Default: as long as originals, 30 days. */
  readonly ttlMs?: number;
};

const sessionCheck = object<SessionOptions>({
  sessionId: someText,
  tenant: tenantCheck,
  ttlMs: positiveNumber,
});

const thirtyDaysMs = 30 * 24 * 60 * 60 * 1_000;

/** The last call of each session by its tenant and name, for each Leporello. The next one waits for it, also that of another object. */
const turns = new WeakMap<object, Map<string, Promise<unknown>>>();

/** The list of a session: its items have the keys of their numbers. */
type SessionHead = { readonly count: number };

/**
 * A session in the store of a Leporello. One process at a time may add to it: its own calls are done one after the other. Each method rejects with
 * `store-failed` when the store does.
 *
 * @example
 * const session = new LeporelloSession(leporello, { sessionId: 'ticket-4711' });
 * await runner.run(agent, 'Go on.', { session });
 */
export class LeporelloSession implements Session {
  readonly #parts: ReturnType<typeof partsOf>;
  readonly #id: string;
  readonly #tenant: string;
  readonly #ttlMs: number;

  constructor(leporello: Leporello, options: SessionOptions = {}) {
    this.#parts = partsOf(leporello);
    checkSettings(sessionCheck, options);
    const { memoryTtlMs = thirtyDaysMs } = this.#parts.options;
    const { sessionId = crypto.randomUUID(), tenant = 'local', ttlMs = memoryTtlMs } = options;
    this.#id = sessionId;
    this.#tenant = tenant;
    this.#ttlMs = ttlMs;
  }

  async getSessionId(): Promise<string> {
    return this.#id;
  }

  /** Returns all items, or the newest `limit`, in their order. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    return this.#inTurn(async () => {
      const count = await this.#count();
      const first = limit === undefined ? 0 : Math.max(0, count - Math.max(0, limit));
      const items = await this.#read(first, count);
      const encryptedStore = await this.#parts.encryptedStore();
      for (const key of [this.#head(), ...this.#keys(0, count)])
        encryptedStore.renewSealed(this.#tenant, key, this.#ttlMs);
      return items;
    });
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    return this.#inTurn(async () => {
      if (items.length === 0) return;
      const count = await this.#count();
      const keys = this.#keys(count, count + items.length);
      await Promise.all(items.map((item, at) => this.#put(keys[at]!, { item: packBytes(item) })));
      await this.#put(this.#head(), { count: count + items.length });
    });
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    return this.#inTurn(async () => {
      const count = await this.#count();
      if (count === 0) return undefined;
      const [item] = await this.#read(count - 1, count);
      await this.#put(this.#head(), { count: count - 1 });
      await (await this.#parts.encryptedStore()).forget(this.#tenant, {
        sealed: this.#keys(count - 1, count),
      });
      return item;
    });
  }

  async clearSession(): Promise<void> {
    return this.#inTurn(async () => {
      const count = await this.#count();
      await (await this.#parts.encryptedStore()).forget(this.#tenant, {
        sealed: [this.#head(), ...this.#keys(0, count)],
      });
    });
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const running = turns.get(this.#parts) ?? new Map<string, Promise<unknown>>();
    turns.set(this.#parts, running);
    const key = `${this.#tenant}/${this.#id}`;
    const turn = Promise.resolve(running.get(key)).then(work);
    const ended = turn.catch(() => undefined);
    running.set(key, ended);
    await ended;
    if (running.get(key) === ended) running.delete(key);
    return turn;
  }

  #head(): string {
    return `agents-session/${encodeURIComponent(this.#id)}`;
  }

  #keys(from: number, to: number): readonly string[] {
    return Array.from({ length: to - from }, (_, at) => `${this.#head()}/${from + at}`);
  }

  async #put(key: string, record: object): Promise<void> {
    await (await this.#parts.encryptedStore()).putSealed(
      this.#tenant,
      [key],
      encodeRecord(record),
      this.#ttlMs,
    );
  }

  async #records(keys: readonly string[]): Promise<readonly unknown[]> {
    const found = await (await this.#parts.encryptedStore()).getSealedMany(this.#tenant, keys);
    return found.map((bytes) => bytes && decodeRecord(bytes, 'An item of a session'));
  }

  async #count(): Promise<number> {
    const [head] = await this.#records([this.#head()]);
    return isRecord(head) ? (head as SessionHead).count : 0;
  }

  /** Reads items. Throws `store-failed` for a missing one, because a history with a gap would be wrong. */
  async #read(from: number, to: number): Promise<AgentInputItem[]> {
    const records = await this.#records(this.#keys(from, to));
    return records.map((record, at) => {
      if (isRecord(record)) return unpackBytes(record['item']) as AgentInputItem;
      throw new LeporelloError(
        'store-failed',
        `The store has no item ${from + at} of session ${JSON.stringify(this.#id)}: clear the session, or begin another.`,
      );
    });
  }
}
