/**
 * Gives MCP clients the memory in a gateway's data folder: three tools that read an original, search all of them, and list the folds. For
 * people in their chat client, and for agents that cannot use a proxy. Changes nothing in the store but the time of the last use.
 */
import { z } from 'zod';
import { checkSettings, object, someText, wholeNumber } from '../checks.ts';
import { LeporelloError } from '../errors.ts';
import {
  type EditDetail,
  type KeptReceipt,
  duration,
  number,
  requestReceipt,
  wordsOfTrigger,
} from '../receipts/detail.ts';
import type { OriginalTitle } from '../recall/read-original.ts';
import { resolveRecall } from '../recall/resolve.ts';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { type OpenedStore, missingIn, openDataFolder } from '../store/data-folder.ts';
import { createReceiptStore } from '../store/receipt-store.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import { tenantCheck } from './lib/options.ts';

/** The arguments of the tool `read_memory`, as a Standard Schema. */
export const readMemorySchema = z.object({
  id: z
    .string()
    .optional()
    .describe('The id in a stub, such as mem_5h8v0c2k9qtz31ax. Without it, everything is searched.'),
  query: z.string().optional().describe('Words to find in the original: names, paths, numbers, messages.'),
  lines: z.string().optional().describe('A range of lines, such as 10-40, 100- or -20 (the last 20).'),
  path: z.string().optional().describe('A path in JSON, such as $.items[0].'),
});

/** The arguments of the tool `search_memory`, as a Standard Schema. */
export const searchMemorySchema = z.object({
  query: z.string().min(1).describe('Words to find: names, paths, numbers, messages.'),
  session: z.string().optional().describe('Searches only this session, as list_folds names it.'),
});

/** The arguments of the tool `list_folds`, as a Standard Schema. */
export const listFoldsSchema = z.object({
  limit: z.int().min(1).max(100).optional().describe('The number of folds, the newest first. Default 10.'),
  session: z.string().optional().describe('Lists only the folds of this session.'),
});

/** The memory of one tenant. Every method rejects with `store-failed` if the store cannot be read. */
export interface Memory {
  /** Returns the original with this id, the part that is asked for, or a sentence that says why there is none. */
  readMemory(args: z.infer<typeof readMemorySchema>): Promise<string>;
  /** Returns the passages that fit the query best, from the originals of the newest requests. */
  searchMemory(args: z.infer<typeof searchMemorySchema>): Promise<string>;
  /** Returns the newest folds as text: when, why, the tokens before and after, and what was folded with its ids. */
  listFolds(args?: z.infer<typeof listFoldsSchema>): Promise<string>;
  close(): Promise<void>;
}

export type MemoryOptions = {
  /**
   * The label of the tenant whose originals are read, and whose folds are listed and searched. Without it, originals of all tenants can be read
   * by id, as the secret in the folder opens them all; lists and searches are those of `local`, the tenant of a gateway on a loopback host.
   */
  readonly tenant?: string | undefined;
  /** Tokens of one answer at most. Default 8,000. */
  readonly maxTokens?: number | undefined;
};

/**
 * Opens the memory in a data folder of a gateway. The gateway may run meanwhile. Rejects with `bad-config` if the folder has no store or no
 * secret.
 *
 * @example
 * const memory = await openMemory({ data: join(homedir(), '.leporello') });
 * console.log(await memory.listFolds());
 */
export async function openMemory(settings: MemoryOptions & { readonly data: string }): Promise<Memory> {
  checkSettings(memoryCheck, settings);
  const { data, ...options } = settings;
  const missing = missingIn(data, { store: true, secret: true });
  if (missing !== undefined) throw new LeporelloError('bad-config', missing);
  return memoryIn(await openDataFolder(data), options);
}

const memoryCheck = object<MemoryOptions & { readonly data: string }>(
  { data: someText, tenant: tenantCheck, maxTokens: wholeNumber(1) },
  { required: ['data'] },
);

/** The receipts that a search looks through. */
const maxReceipts = 300;

/** The originals that a search reads, the newest first. */
const maxOriginals = 400;

/** The UTF-16 units of originals that a search reads. */
const maxSearchedUnits = 32_000_000;

/** Edits that a list names for each fold. */
const maxListed = 12;

/** Returns the memory in an open store, which `close` closes. */
export function memoryIn(
  opened: OpenedStore,
  { tenant: reader, maxTokens = 8_000 }: MemoryOptions = {},
): Memory {
  const tenant = reader ?? 'local';
  const place = `this ${opened.store.name} store${reader === undefined ? '' : `, tenant ${reader}`}`;
  const encryptedStore = createEncryptedStore(opened);
  const receipts = createReceiptStore<KeptReceipt>({ encryptedStore });

  async function read(id: string): Promise<string | undefined> {
    const found = await (reader === undefined
      ? encryptedStore.recallAny(id)
      : encryptedStore.recall(reader, id));
    return found.status === 'found' ? new TextDecoder().decode(found.original) : undefined;
  }

  async function newest(session: string | undefined): Promise<readonly KeptReceipt[]> {
    const kept = await receipts.list(tenant, maxReceipts);
    return session === undefined ? kept : kept.filter((one) => requestReceipt(one)?.session === session);
  }

  async function searchAll(query: string, session: string | undefined): Promise<string> {
    const titles = titlesIn(await newest(session));
    let left = maxSearchedUnits;
    let before: Promise<unknown> = Promise.resolve();
    // All are asked for at once, and read one after the other: otherwise each would be read before the size of any is known.
    const lookup = (id: string): Promise<string | undefined> => {
      const reading = before.then(async () => {
        const original = left > 0 ? await read(id) : undefined;
        left -= original?.length ?? 0;
        return original;
      });
      before = reading.catch(() => undefined);
      return reading;
    };
    return answer({ query }, lookup, titles);
  }

  async function answer(
    args: object,
    lookup: (id: string) => Promise<string | undefined>,
    titles: ReadonlyMap<string, OriginalTitle>,
  ): Promise<string> {
    const counter = await loadTokenCounter('gpt-4o');
    return resolveRecall({
      argumentsJson: JSON.stringify(args),
      store: place,
      lookup,
      titleOf: (id) => titles.get(id),
      all: [...titles.keys()].slice(0, maxOriginals),
      maxTokens,
      countTokens: (text) => counter.count(text),
    });
  }

  return {
    async readMemory(args) {
      if (args.id === undefined && args.query !== undefined) return searchAll(args.query, undefined);
      return answer(args, read, new Map());
    },
    searchMemory: ({ query, session }) => searchAll(query, session),
    async listFolds({ limit = 10, session } = {}) {
      const folds = (await newest(session)).filter((one) => foldedIn(one).length > 0).slice(0, limit);
      if (folds.length === 0)
        return `No fold of ${session === undefined ? `the tenant ${tenant}` : `the session ${session}`} is recorded${session === undefined ? '' : ` for the tenant ${tenant}`}.`;
      return folds.map(spellFold).join('\n');
    },
    close: () => opened.store.close(),
  };
}

function foldedIn({ detail }: KeptReceipt): readonly EditDetail[] {
  return detail?.edits.filter(({ by, memory }) => by === 'fold' && memory !== undefined) ?? [];
}

/** Returns the titles of originals by id, the newest first. */
function titlesIn(kept: readonly KeptReceipt[]): ReadonlyMap<string, OriginalTitle> {
  const titles = new Map<string, OriginalTitle>();
  for (const { detail } of kept)
    for (const { memory, title, message } of detail?.edits.toReversed() ?? [])
      if (memory !== undefined && !titles.has(memory))
        titles.set(memory, { message, text: title, isCall: title.startsWith('arguments') });
  // Originals whose edits were stored with an older receipt than those read.
  for (const one of kept)
    for (const id of requestReceipt(one)?.memories ?? [])
      if (!titles.has(id)) titles.set(id, { message: 0, text: undefined, isCall: false });
  return titles;
}

function spellFold(one: KeptReceipt): string {
  const receipt = requestReceipt(one)!;
  const { tokensBefore, tokensAfter, model, session } = receipt;
  const edits = foldedIn(one);
  const size =
    tokensBefore === undefined || tokensAfter === undefined
      ? ''
      : `, ${number(tokensBefore)} → ${number(tokensAfter)} tokens`;
  const trigger = one.detail?.trigger;
  return [
    `${new Date(receipt.at).toISOString()}, model ${model ?? 'unknown'}, session ${session ?? 'unknown'}${size} (prepared in ${duration(receipt.ms.prepare)})`,
    ...(trigger ? [`  ${wordsOfTrigger(trigger, receipt)}`] : []),
    ...edits
      .slice(0, maxListed)
      .map(({ memory, title, before }) => `  ${memory}  ${title}, ${number(before)} tokens`),
    ...(edits.length > maxListed ? [`  and ${edits.length - maxListed} more`] : []),
  ].join('\n');
}

/** The part of an `McpServer` of the official SDK that the tools need. */
export type ToolServer = {
  registerTool<Schema extends z.ZodType>(
    name: string,
    config: {
      readonly title: string;
      readonly description: string;
      readonly inputSchema: Schema;
      readonly annotations: { readonly readOnlyHint: boolean; readonly idempotentHint: boolean };
    },
    call: (args: z.infer<Schema>) => Promise<{ content: { type: 'text'; text: string }[] }>,
  ): unknown;
};

/** Registers the three tools on a server of the official MCP SDK. */
export function registerMemoryTools(server: ToolServer, memory: Memory): void {
  const annotations = { readOnlyHint: true, idempotentHint: true };
  server.registerTool(
    'read_memory',
    {
      title: 'Read folded content',
      description:
        'Returns content that Leporello folded out of an agent\'s context. A stub such as [… read_memory {"id":"mem_…"} shows it] names the id. Add query, lines or path for a part of it.',
      inputSchema: readMemorySchema,
      annotations,
    },
    (args) => said(memory.readMemory(args)),
  );
  server.registerTool(
    'search_memory',
    {
      title: 'Search folded content',
      description:
        'Searches everything that was folded out of recent conversations, and returns the passages that fit best, each with its id.',
      inputSchema: searchMemorySchema,
      annotations,
    },
    (args) => said(memory.searchMemory(args)),
  );
  server.registerTool(
    'list_folds',
    {
      title: 'List folds',
      description:
        'Lists the newest folds: when and why content was folded, the tokens before and after, and the id and title of each original.',
      inputSchema: listFoldsSchema,
      annotations,
    },
    (args) => said(memory.listFolds(args)),
  );
}

async function said(text: Promise<string>): Promise<{ content: { type: 'text'; text: string }[] }> {
  return { content: [{ type: 'text', text: await text }] };
}
