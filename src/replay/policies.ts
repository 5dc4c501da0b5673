/**
 * Implements the policies: the ways of making a context from a client's conversation that a replay compares. The simple ones change nothing, keep only
 * the last results, cut every result, or have a summary written; the engine policy runs the real engine.
 */
import type { Codec, ReadContext } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { textOf, textsOf } from '../conversation/messages.ts';
import type { Edit } from '../conversation/edit.ts';
import { unitsOf } from '../conversation/turns.ts';
import { createDefaultEngine, type FoldSettings, type EngineOverrides } from '../library/default-engine.ts';
import type { PreparedRequest } from '../engine/types.ts';
import { createEncryptedStore, sha256 } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { conversationCounter } from '../tokens/count-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { Tokens } from './tally.ts';

export const fullContext: Policy = editPolicy('full context', () => []);

/** Clears all tool results but the last `results`, as many agents do in every request. */
export function keepLast(results: number): Policy {
  return editPolicy(`keep last ${results}`, ({ conversation }) => {
    const all = resultTexts(conversation);
    const first = (all.at(-1)?.order ?? 0) + 1 - results;
    return all.filter((slot) => slot.order < first).flatMap((slot) => replaced(slot, '[cleared]'));
  });
}

/** Cuts every tool result to its first and last `characters`. */
export function cutResults(characters: number): Policy {
  return editPolicy(`cut to 2 × ${characters}`, ({ conversation, rerun }) =>
    resultTexts(conversation).flatMap((slot) => {
      const { text } = slot;
      if (rerun.has(slot.message) || text.length <= 2 * characters) return [];
      const head = text.slice(0, characters).toWellFormed();
      const tail = text.slice(-characters).toWellFormed();
      return replaced(slot, `${head}\n[${text.length - 2 * characters} characters cut]\n${tail}`);
    }),
  );
}

/**
 * Replaces the whole history but its newest step by a summary when a request exceeds `atTokens`, as coding agents do by themselves. The summary is written
 * by the same model: one more request reads the context from the cache and outputs the summary. Its text is filler, so it shows none of the
 * values that later calls need; a real summary shows some.
 */
export function clientCompaction({ atTokens, summaryTokens, counter }: ClientCompactionOptions): Policy {
  const summary = 'word '.repeat(summaryTokens).trim();
  return {
    name: `client's own compaction at ${atTokens.toLocaleString('en-US')}`,
    hasMemory: false,
    open(codec) {
      const counts = conversationCounter(counter);
      const reading: ReadContext = { digest: sha256, blocks: new Map() };
      let from = 0;
      return {
        async send({ conversation }) {
          const compact = (): Uint8Array =>
            codec.write(conversation, compactionEdits(conversation, from, summary));
          const body = compact();
          const sent = from === 0 ? conversation : codec.read(body, reading);
          const tokens = [
            ...sent.preamble.map((block) => counts.block(sent, block)),
            ...sent.messages.map(({ index }) => counts.message(sent, index)),
          ].reduce((sum, size) => sum + size, 0);
          const newest = unitsOf(conversation).at(-1)?.[0]?.index ?? 0;
          if (tokens <= atTokens || newest <= from) return { body, prepared: undefined };
          from = newest;
          const forSummary = { read: tokens, written: 0, output: summaryTokens };
          return { body: compact(), prepared: undefined, forSummary };
        },
      };
    },
  };
}

type ClientCompactionOptions = {
  readonly atTokens: number;
  readonly summaryTokens: number;
  readonly counter: TokenCounter;
};

/** Drops the messages before `from`, except for system messages, and inserts the summary there. */
function compactionEdits({ messages }: Conversation, from: number, summary: string): readonly Edit[] {
  if (from === 0) return [];
  const dropped = messages.slice(0, from).filter(({ role }) => role !== 'system');
  return [
    ...dropped.map(({ index }): Edit => ({ kind: 'drop-message', message: index, memory: undefined })),
    { kind: 'insert-message', before: from, role: 'user', text: summary },
  ];
}

function editPolicy(name: string, edits: (request: PolicyRequest) => readonly Edit[]): Policy {
  return {
    name,
    hasMemory: false,
    open: (codec) => ({
      async send(request) {
        return { body: codec.write(request.conversation, edits(request)), prepared: undefined };
      },
    }),
  };
}

type ResultText = {
  readonly message: number;
  readonly part: number;
  readonly index: number;
  /** Index of the result, not of its texts. */
  readonly order: number;
  readonly text: string;
};

function resultTexts(conversation: Conversation): readonly ResultText[] {
  let order = -1;
  return conversation.messages.flatMap((message) =>
    message.parts.flatMap((part, at) => {
      if (part.type !== 'tool-result') return [];
      order += 1;
      return textsOf(part).map((span, index) => ({
        message: message.index,
        part: at,
        index,
        order,
        text: textOf(conversation.body, message, span),
      }));
    }),
  );
}

/** Replaces a text, unless the stub is longer. */
function replaced({ message, part, index, text }: ResultText, stub: string): readonly Edit[] {
  if (stub.length >= text.length) return [];
  return [{ kind: 'replace-text', at: { message, part, text: index }, stub, memory: '' }];
}

export interface Policy {
  readonly name: string;
  /** True if removed content can be recalled. */
  readonly hasMemory: boolean;
  /** Starts a conversation, without any knowledge of others. */
  open(codec: Codec): PolicySession;
}

interface PolicySession {
  /** Makes the context of one request. Called for each request of the conversation in order. */
  send(request: PolicyRequest): Promise<SentContext>;
}

export type PolicyRequest = {
  readonly conversation: Conversation;
  /** Indices of the messages of tools that were run again, which the model asked for on purpose. */
  readonly rerun: ReadonlySet<number>;
  /** When the request is sent, in milliseconds. */
  readonly at: number;
};

export type SentContext = {
  readonly body: Uint8Array;
  /** Answers recalls; undefined for policies that keep no originals. */
  readonly prepared: PreparedRequest | undefined;
  /** The tokens of a further request in which the client had a summary written. */
  readonly forSummary?: Tokens;
};

type EnginePolicyOptions = {
  readonly name: string;
  readonly settings: FoldSettings;
  /** Context window in tokens, for every model. */
  readonly window: number;
  readonly counter: TokenCounter;
  /** Default: the default strategies. */
  readonly strategies?: EngineOverrides['strategies'];
};

/** A fixed secret, so that every run produces the same ids and bytes. */
const secret: Uint8Array = new Uint8Array(32).fill(1);

/** Runs the engine as users get it, with a new store for each conversation. Opening a conversation throws `bad-config` for settings out of range. */
export function enginePolicy(options: EnginePolicyOptions): Policy {
  const { name, settings, window, counter, strategies } = options;
  const models = { ...settings.models, '*': { windowTokens: window, tokenizer: counter } };
  return {
    name,
    hasMemory: true,
    open(codec) {
      const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret });
      let now = 0;
      const parts = { clock: () => now, ...(strategies && { strategies }) };
      const engine = createDefaultEngine({ cacheMarks: false, ...settings, models }, encryptedStore, parts);
      return {
        async send({ conversation, at }) {
          now = at;
          const prepared = await engine.prepare({ codec, body: conversation.body, tenant: 'replay' });
          return { body: prepared.body, prepared };
        },
      };
    },
  };
}
