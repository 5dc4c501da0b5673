/**
 * The conversation that every adapter plays: the user asks for two secrets, and the model reads 60 files, one after the other. All files together
 * overflow a window of 32,000 tokens. On the way the model recalls three files that it no longer sees: once before it goes on reading, once beside
 * the next call, and once before its answer. The provider may run searches itself in replies. Pure.
 */
import type {
  JsonObject,
  ScriptFormat,
  ScriptRequest,
  Turn,
  TurnPart,
} from '../../support/fake-provider/script.ts';
import { idNear } from '../../support/stub-texts.ts';

/** Counts are not corrected by the usage that the script reports, which is the same for every reply. */
export const settings = {
  models: { '*': { windowTokens: 32_000 } },
  calibration: false,
  storeDeadlineMs: 600_000,
  secret: new Uint8Array(32).fill(5),
} as const;

export const tool = { name: 'read_log', description: 'Returns a log of the project.' } as const;

export const question = 'Read all logs. What are the secrets of log-00 and log-01?';

/** The paths in the order in which the model reads them. */
export const paths = Array.from({ length: 60 }, (_, at) => `log-${String(at).padStart(2, '0')}`);

/** About 1,000 tokens of lines, one with a secret. */
export function contentOf(path: string): string {
  const lines = Array.from({ length: 90 }, (_, at) => `${path} ${at}: all is well here`);
  lines[40] = `the secret of ${path} is ${secretOf(path)}`;
  return lines.join('\n');
}

function secretOf(path: string): number {
  return 1_000 + 17 * paths.indexOf(path);
}

export type ModelOptions = {
  readonly thinks?: boolean;
  /** The requests in whose replies the provider runs a search. */
  readonly searches?: readonly number[];
  /** In Responses, the provider runs code instead. */
  readonly runsCode?: boolean;
};

/** Returns the scripted model. */
export function model(options: ModelOptions = {}): (request: ScriptRequest) => Turn {
  return ({ index, body, history, format }) => {
    const texts = textsIn([body, history]);
    const thought: TurnPart = {
      type: 'thinking',
      text: `Thought ${index}.`,
      signature: btoa(`signature ${index}`),
    };
    const parts = [...partsAt(index, texts)];
    if (options.searches?.includes(index) === true) parts.splice(-1, 0, ...searchAt(index, format, options));
    return { type: 'turn', parts: options.thinks === true ? [thought, ...parts] : parts, usage };
  };
}

/** Usage of every reply, so that the program's usage shows how many replies it received as one. */
export const usage = { input: 1_000, output: 10, cacheRead: 0, cacheWrite: 0 } as const;

/** Requests of a run: one for each path, and three more for the recalls (one is beside a call), and the answer. */
export const requestsOfRun = paths.length + 3;

/** Requests for searches: an early one, one with a recall, and one with a recall and a call. */
export const searching = [5, 40, 50] as const;

/** Returns a search and its result in the provider's own form. Where Gemini searches there is no part, so there it runs code. */
function searchAt(index: number, format: ScriptFormat, { runsCode }: ModelOptions): readonly TurnPart[] {
  const query = `search ${index}`;
  const own = { id: `ws_${index}`, status: 'completed' };
  const blocks: Readonly<Record<ScriptFormat, readonly JsonObject[]>> = {
    chat: [],
    responses: [
      runsCode === true
        ? { type: 'code_interpreter_call', ...own, code: query, container_id: 'cntr_1', outputs: [] }
        : { type: 'web_search_call', ...own, action: { type: 'search', query } },
    ],
    messages: [
      { type: 'server_tool_use', id: `srvtoolu_${index}`, name: 'web_search', input: { query } },
      { type: 'web_search_tool_result', tool_use_id: `srvtoolu_${index}`, content: [searchResult(query)] },
    ],
    gemini: [
      { executableCode: { language: 'PYTHON', code: `print("${query}")` } },
      { codeExecutionResult: { outcome: 'OUTCOME_OK', output: query } },
    ],
  };
  return blocks[format].map((block) => ({ type: 'block', block }));
}

/** A page that Anthropic's search found. */
function searchResult(query: string): JsonObject {
  const found = { url: 'https://example.com', title: 'The project', page_age: null };
  return { type: 'web_search_result', ...found, encrypted_content: btoa(query) };
}

function partsAt(index: number, texts: readonly string[]): readonly TurnPart[] {
  if (index < 40) return reading(index);
  if (index === 40) return [text('Let me look again. '), recall(texts, 'log-00')];
  if (index === 41) return [text(`log-00 has ${secretIn(texts, 'log-00')}. `), ...reading(40)];
  if (index === 50) return [...reading(49), recall(texts, 'log-02')];
  if (index === 51) return [text(`log-02 has ${secretIn(texts, 'log-02')}. `), ...reading(50)];
  if (index < requestsOfRun - 2) return reading(index - 1);
  if (index === requestsOfRun - 2) return [recall(texts, 'log-01')];
  return [text(`log-01 has ${secretIn(texts, 'log-01')}.`)];
}

/** Texts that the program gets as the answer, and before it. */
export const expectedTexts = [
  `Let me look again. log-00 has ${secretOf('log-00')}. `,
  `log-02 has ${secretOf('log-02')}. `,
  `log-01 has ${secretOf('log-01')}.`,
];

function reading(at: number): readonly TurnPart[] {
  return [{ type: 'tool-call', name: tool.name, arguments: { path: paths[at]! } }];
}

function text(content: string): TurnPart {
  return { type: 'text', text: content };
}

function recall(texts: readonly string[], path: string): TurnPart {
  // The call of a folded result comes before it, in every format. A log of dropped messages names the path.
  const asked = texts.findIndex((seen) => seen === path || seen === JSON.stringify({ path }));
  const stub = asked < 0 ? undefined : texts.slice(asked).find((seen) => seen.startsWith('[Folded'));
  const id = /mem_[a-z0-9]{16}/.exec(stub ?? '')?.[0] ?? idNear(texts.join('\n'), path) ?? 'none';
  return { type: 'tool-call', name: 'read_memory', arguments: { id, query: `secret of ${path}` } };
}

function secretIn(texts: readonly string[], path: string): string {
  const line = new RegExp(`the secret of ${path} is (\\d+)`);
  return texts.map((seen) => line.exec(seen)?.[1]).find((secret) => secret !== undefined) ?? 'none';
}

/** Returns all strings in a body of any format. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null
    ? Object.values(value as JsonObject).flatMap(textsIn)
    : [];
}

/**
 * Returns where the results and stubs that two runs sent first differ. Everything else is spelled by the SDK or by the provider, and may have other
 * ids or another order.
 */
export function firstDifference(sent: readonly string[], others: readonly string[]): object | undefined {
  for (let request = 0; request < Math.max(sent.length, others.length); request++) {
    const [one, other] = [resultsIn(sent[request]), resultsIn(others[request])];
    for (let at = 0; at < Math.max(one.length, other.length); at++)
      if (one[at] !== other[at])
        return { request, at, one: one[at]?.slice(0, 200), other: other[at]?.slice(0, 200) };
  }
  return undefined;
}

function resultsIn(body = '{}'): readonly string[] {
  // A format may have two messages where another has one.
  return textsIn(JSON.parse(withoutIds(body).replaceAll(/Folded \d+ earlier/g, 'Folded earlier')))
    .filter((seen) => /\[Folded|is well here/.test(seen))
    .toSorted();
}

/** Returns a body with the ids of originals replaced by their numbers: they depend on the spelling of the format. */
function withoutIds(json: string): string {
  const numbers = new Map<string, string>();
  return json.replaceAll(/mem_[a-z0-9]{16}/g, (id) => {
    const number = numbers.get(id) ?? `memory ${numbers.size}`;
    numbers.set(id, number);
    return number;
  });
}

/** Counts the bodies whose messages do not begin with all messages of the body before: then the provider's cache is lost. */
export function changedBeginnings(sent: readonly string[]): number {
  const lists = sent.map((body) => {
    const { messages, input, contents } = JSON.parse(body) as JsonObject;
    return ((messages ?? input ?? contents) as readonly unknown[]).map((message) => JSON.stringify(message));
  });
  return lists.filter((list, at) => lists[at - 1]?.some((message, index) => message !== list[index]) ?? false)
    .length;
}
