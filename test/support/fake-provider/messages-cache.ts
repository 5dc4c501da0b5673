/**
 * Simulates the prompt cache of the Messages API: a marked prefix is kept, and is found again when a mark is at most 20 blocks
 * after it. Lengths are computed from the JSON of the blocks. Nothing ever expires.
 */
import { createHash } from 'node:crypto';
import { isObject, objectsIn } from './json.ts';
import type { JsonObject, ModelRequest, ScriptedUsage } from './script.ts';

/** Tokens of the shortest prefix that is cached. */
const leastCached = 1_024;
const lookBack = 20;

type PromptCache = (request: ModelRequest) => Pick<ScriptedUsage, 'cacheRead' | 'cacheWrite'>;

export function promptCache(): PromptCache {
  const kept = new Set<string>();
  return function cache({ body, model }) {
    const prefixes = prefixesOf(body, model);
    const marked = prefixes.filter(({ isMarked }) => isMarked);
    const hits = marked.flatMap(({ index }) => prefixes.slice(Math.max(0, index - lookBack + 1), index + 1));
    const cacheRead = Math.max(0, ...hits.filter(({ key }) => kept.has(key)).map(({ tokens }) => tokens));
    const lasting = marked.filter(({ tokens }) => tokens >= leastCached);
    for (const { key } of lasting) kept.add(key);
    return { cacheRead, cacheWrite: Math.max(0, (lasting.at(-1)?.tokens ?? 0) - cacheRead) };
  };
}

/** A part of the prompt from its beginning to the end of a block. */
type Prefix = {
  readonly index: number;
  readonly key: string;
  readonly tokens: number;
  readonly isMarked: boolean;
};

function prefixesOf(body: JsonObject, model: string): readonly Prefix[] {
  const said = createHash('sha256').update(model);
  let length = 0;
  return blocksOfPrompt(body).map((block, index) => {
    const text = JSON.stringify(unmarked(block));
    said.update(`\n${text}`);
    length += text.length;
    const isMarked = isObject(block['cache_control']);
    return { index, key: said.copy().digest('base64'), tokens: Math.ceil(length / 4), isMarked };
  });
}

function blocksOfPrompt(body: JsonObject): readonly JsonObject[] {
  const messages = objectsIn(body['messages']).flatMap(({ role, content }) =>
    blocksOf(content).map((block): JsonObject => ({ ...block, role })),
  );
  return [...objectsIn(body['tools']), ...blocksOf(body['system']), ...messages];
}

/** A string means the same as one text block. */
function blocksOf(content: unknown): readonly JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content);
}

function unmarked(block: JsonObject): JsonObject {
  const members = Object.entries(block).filter(([key]) => key !== 'cache_control');
  const rest: JsonObject = Object.fromEntries(members);
  return Array.isArray(rest['content'])
    ? { ...rest, content: objectsIn(rest['content']).map(unmarked) }
    : rest;
}
