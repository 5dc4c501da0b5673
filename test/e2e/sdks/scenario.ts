/**
 * The conversation that every SDK plays. The model reads ten files one after the other and says the secret of the first. In a second user
 * turn it says the secret of another and reads one more file. In a third it is thanked. It recalls a secret that it no longer sees: in the
 * first turn with text and before an answer, in the second without text and before a call. Pure.
 */
import type { JsonObject, ScriptRequest, Turn, TurnPart } from '../../support/fake-provider/script.ts';
import { idNear } from '../../support/stub-texts.ts';

export const tool = { name: 'fetch_log', description: 'Returns a log of the project.' } as const;

export const parameters = {
  type: 'object' as const,
  properties: { path: { type: 'string' } },
  required: ['path'],
};

export const files = [
  'a.log',
  'b.log',
  'c.log',
  'd.log',
  'e.log',
  'f.log',
  'g.log',
  'h.log',
  'i.log',
  'j.log',
];

/** The user's messages, one per turn. */
export const asks = [
  'Read all files. What is the secret of a.log?',
  'Find the secret of b.log. Then read k.log.',
  'Thank you.',
] as const;

/** Returns about 2,000 tokens of log lines, one with a secret. */
export function contentOf(path: string): string {
  const secret = `the secret of ${path} is ${path.charCodeAt(0) * 11}`;
  return Array.from(
    { length: 180 },
    (_, at) => `${path} ${at}: ${at === 77 ? secret : 'all is well'}\n`,
  ).join('');
}

/** Usage of every reply of the model, so that the client's usage shows how many replies it received as one. */
export const usageOfOne = { input: 1_000, output: 10, cacheRead: 0, cacheWrite: 0 } as const;

/** Returns the scripted model. With `reasoning`, each reply begins with a thought. */
export function model({ reasoning }: { readonly reasoning: boolean }): (request: ScriptRequest) => Turn {
  return ({ body, history, index }) => {
    const parts = nextParts([body, ...history]);
    const thought: TurnPart = {
      type: 'thinking',
      text: `Thought ${index}.`,
      signature: btoa(`signature ${index}`),
    };
    return { type: 'turn', parts: reasoning ? [thought, ...parts] : parts, usage: usageOfOne };
  };
}

function nextParts(seen: readonly JsonObject[]): readonly TurnPart[] {
  const texts = textsIn(seen);
  const read = new Set(pathsRead(seen));
  switch (asks.findLast((ask) => texts.includes(ask))) {
    case asks[0]:
      return (
        reading(files.find((path) => !read.has(path))) ??
        recalling(texts, 'a.log', text('Let me look again. ')) ??
        telling(texts, 'a.log')
      );
    case asks[1]:
      return (
        recalling(texts, 'b.log') ??
        reading(read.has('k.log') ? undefined : 'k.log') ??
        telling(texts, 'b.log')
      );
    case asks[2]:
    case undefined:
      return [text('Bye.')];
  }
}

function reading(path: string | undefined): readonly TurnPart[] | undefined {
  return path === undefined ? undefined : [text(`I read ${path}. `), call(tool.name, { path })];
}

/** Recalls the file's original if its secret is not in the request. */
function recalling(
  texts: readonly string[],
  path: string,
  ...before: readonly TurnPart[]
): readonly TurnPart[] | undefined {
  const id = secretIn(texts, path) === undefined ? idNear(texts.join('\n'), path) : undefined;
  return id === undefined ? undefined : [...before, call('read_memory', { id, query: `secret of ${path}` })];
}

function telling(texts: readonly string[], path: string): readonly TurnPart[] {
  return [text(`It is ${secretIn(texts, path) ?? 'nowhere'}.`)];
}

function text(content: string): TurnPart {
  return { type: 'text', text: content };
}

function call(name: string, input: JsonObject): TurnPart {
  return { type: 'tool-call', name, arguments: input };
}

export function secretIn(texts: readonly string[], path: string): string | undefined {
  const line = new RegExp(`the secret of ${path} is (\\d+)`);
  return texts.map((seen) => line.exec(seen)?.[1]).find((secret) => secret !== undefined);
}

/** Returns all strings in a body of any format. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** Returns the paths in all calls of the client's tool in a body of any format. */
function pathsRead(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { name, arguments: json, input, args } = value as JsonObject;
  const given = typeof json === 'string' ? (JSON.parse(json) as unknown) : (input ?? args);
  const path = name === tool.name ? (given as { path?: string } | undefined)?.path : undefined;
  return path === undefined ? Object.values(value).flatMap(pathsRead) : [path];
}
