/** Implements `leporello recall`: prints an original, or a part of it. Does not change the store. */
import { LeporelloError } from '../errors.ts';
import { runSteps } from '../conversation/steps.ts';
import { createEncryptedStore, isMemoryId } from '../store/encrypted-store.ts';
import { readOriginal } from '../recall/read-original.ts';
import { countLines, locate, parseRange } from '../recall/text-ranges.ts';
import { findsAny } from '../recall/search.ts';
import { resolveRecall } from '../recall/resolve.ts';
import { selectPath } from '../recall/json-path.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import type { RecallArgs } from './command-args.ts';
import { loadConfig } from './config/load-config.ts';
import { type UsedConfig, openExistingStore, storeServer } from './open-store.ts';
import type { Environment, Terminal } from './terminal.ts';

/** Runs the command. Resolves with the exit code, 1 when there is no such original or part. */
export async function recall(args: RecallArgs, terminal: Terminal): Promise<number> {
  const { config, dataDir } = await loadConfig(args.settings, terminal);
  const found = await find(args.id, dataDir, config, terminal.env);
  if (found.status === 'missing') {
    terminal.err(`leporello: ${found.why}\n`);
    return 1;
  }
  if (args.raw) {
    await terminal.out(found.original);
    await terminal.out(terminal.isTty.out ? '\n' : '');
    return 0;
  }
  const original = new TextDecoder().decode(found.original);
  const nothing = whyPartIsMissing(args, original);
  if (nothing !== undefined) {
    terminal.err(`leporello: ${nothing}\n`);
    return 1;
  }
  const text = await textOf(args, original);
  if (args.json) await terminal.out(`${JSON.stringify({ id: args.id, text })}\n`);
  else await terminal.out(terminal.isTty.out && !text.endsWith('\n') ? `${text}\n` : text);
  return 0;
}

type FoundOriginal =
  | { readonly status: 'found'; readonly original: Uint8Array }
  | { readonly status: 'missing'; readonly why: string };

async function find(
  id: string,
  dataDir: string | undefined,
  config: UsedConfig,
  env: Environment,
): Promise<FoundOriginal> {
  if (!isMemoryId(id))
    throw new LeporelloError(
      'bad-usage',
      `${JSON.stringify(id)} is not an id: an id is mem_ and 16 characters.`,
    );
  const opened = await openExistingStore(dataDir, env, config);
  if ('missing' in opened) return missing(opened.missing);
  const { store } = opened;
  try {
    const recalled = await createEncryptedStore(opened).recallAny(id);
    if (recalled.status === 'found') return recalled;
    const server = storeServer(config.memory);
    return missing(
      server === undefined
        ? `There is no original ${id} in ${dataDir ?? ''}. It may have expired, or be in another data folder (--data), or belong to another secret.`
        : `There is no original ${id} in ${server.place}. It may have expired, or belong to another secret.`,
    );
  } finally {
    await store.close();
  }
}

function missing(why: string): FoundOriginal & { readonly status: 'missing' } {
  return { status: 'missing', why };
}

async function textOf({ id, part, maxTokens }: RecallArgs, original: string): Promise<string> {
  if (maxTokens === undefined && Object.keys(part).length === 0) return readOriginal(original).text;
  const counter = maxTokens === undefined ? undefined : await loadTokenCounter('gpt-4o');
  return resolveRecall({
    argumentsJson: JSON.stringify({ id, ...part }),
    lookup: () => original,
    maxTokens: maxTokens ?? Number.MAX_SAFE_INTEGER,
    countTokens: (text) => counter?.count(text) ?? text.length,
  });
}

/** Returns the reason why the requested part does not exist; undefined when it exists. It becomes an error, so that scripts notice. */
function whyPartIsMissing({ part }: RecallArgs, original: string): string | undefined {
  const { text, json } = readOriginal(original);
  const chosen = part.path === undefined ? undefined : selectPath(json, part.path);
  if (chosen?.status === 'missed') return chosen.why;
  const within = chosen?.text ?? text;
  const range = parseRange(part.lines ?? '1-');
  const located = range && locate(within, range);
  if (located === undefined)
    return `There are no lines ${part.lines}: the text has ${countLines(within)} lines.`;
  const source = {
    id: undefined,
    text: within,
    within: located,
    title: undefined,
    sections: [],
    order: 0,
    callFor: () => '',
  };
  if (part.query === undefined || runSteps(findsAny([source], part.query))) return undefined;
  return `Nothing matches ${JSON.stringify(part.query)}: use fewer or other words.`;
}
