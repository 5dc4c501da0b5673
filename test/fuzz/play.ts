/** Plays one fuzzed conversation through a whole gateway within the process, turn by turn, and checks it. */
import { messagesFixture } from '../support/codec-suite/anthropic-messages/fixture.ts';
import type { ClientView, CodecFixture, NeutralTurn } from '../support/codec-suite/fixture.ts';
import { geminiFixture } from '../support/codec-suite/gemini/fixture.ts';
import { chatFixture } from '../support/codec-suite/openai-chat/fixture.ts';
import { responsesFixture } from '../support/codec-suite/openai-responses/fixture.ts';
import type { JsonObject, TurnPart } from '../support/fake-provider/script.ts';
import { tools, turnsOf } from './conversations.ts';
import type { Gateway, Gateways } from './gateways.ts';
import { memberOf, spell, type Tree, treeOf } from './json-tree.ts';
import { type Format, messagesIn, mutate } from './mutations.ts';
import { lostOriginals, lostReferences, missedRecalls, textOf, unpairedFunctions } from './losses.ts';
import { isObject, parseJson } from '../support/fake-provider/json.ts';
import { type Random, randomFrom } from './random.ts';
import { hasStub } from '../support/stub-texts.ts';

export type Route = {
  readonly name: string;
  readonly format: Format;
  readonly kind: 'whole' | 'stream' | 'count';
  readonly target: string;
};

const gemini = '/v1beta/models/gemini-2.5-pro';
export const routes: readonly Route[] = [
  { name: 'chat', format: 'chat', kind: 'whole', target: '/v1/chat/completions' },
  { name: 'chat-stream', format: 'chat', kind: 'stream', target: '/v1/chat/completions' },
  { name: 'messages', format: 'messages', kind: 'whole', target: '/v1/messages' },
  { name: 'messages-stream', format: 'messages', kind: 'stream', target: '/v1/messages' },
  { name: 'messages-count', format: 'messages', kind: 'count', target: '/v1/messages/count_tokens' },
  { name: 'responses', format: 'responses', kind: 'whole', target: '/v1/responses' },
  { name: 'responses-stream', format: 'responses', kind: 'stream', target: '/v1/responses' },
  { name: 'responses-count', format: 'responses', kind: 'count', target: '/v1/responses/input_tokens' },
  { name: 'gemini', format: 'gemini', kind: 'whole', target: `${gemini}:generateContent` },
  {
    name: 'gemini-stream',
    format: 'gemini',
    kind: 'stream',
    target: `${gemini}:streamGenerateContent?alt=sse`,
  },
  { name: 'gemini-count', format: 'gemini', kind: 'count', target: `${gemini}:countTokens` },
];

const fixtures: Readonly<Record<Format, CodecFixture>> = {
  chat: chatFixture,
  messages: messagesFixture,
  responses: responsesFixture,
  gemini: geminiFixture,
};

/** Counts and failures of one or more conversations. */
export type PlayResult = {
  readonly requests: number;
  readonly valid: number;
  readonly folded: number;
  readonly recalls: number;
  readonly overflows: number;
  readonly failures: readonly string[];
};

export async function play(gateways: Gateways, route: Route, seed: number): Promise<PlayResult> {
  const random = randomFrom(seed);
  const isShort = random.chance(0.15);
  const gateway = random.pick(isShort ? gateways.short : gateways.usual);
  const { format } = route;
  const fixture = fixtures[format];
  const bodyOf = (turns: readonly NeutralTurn[]) =>
    treeOf(
      JSON.parse(new TextDecoder().decode(fixture.body({ turns, tools, stream: route.kind === 'stream' }))),
    );
  const tree = bodyOf(turnsOf(random, `m${seed}`));
  if (format === 'messages' && memberOf(tree, 'max_tokens') === undefined)
    addMember(tree, 'max_tokens', treeOf(100));
  const done = mutate(tree, random, format, random.pick([0, 1, 1, 2, 3]));
  const oddness = random.pick([0, 0, 0.05, 0.3]);
  const bom = random.chance(0.01) ? '\ufeff' : '';
  const rounds = route.kind === 'count' ? 1 : random.pick([1, 1, 2, 3]);
  const tally = { requests: 0, valid: 0, folded: 0, recalls: 0, overflows: 0 };
  const failures: string[] = [];
  const seen: string[] = [];

  for (let round = 0; round < rounds; round++) {
    const bytes = new TextEncoder().encode(bom + spell(tree, randomFrom(seed), oddness));
    seen.push(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
    const outcome = await exchange(gateway, route, random, bytes, isShort, {
      seen,
      hasRecalled: tally.recalls > 0,
    });
    tally.requests++;
    tally.valid += Number(outcome.isValid);
    tally.folded += Number(outcome.isFolded);
    tally.recalls += outcome.recalls;
    tally.overflows += Number(outcome.isOverflow);
    failures.push(
      ...outcome.failures.map((failure) => `round ${round}, after ${done.join(', ')}: ${failure}`),
    );
    if (!outcome.view || failures.length > 0) break;
    const next = nextTurns(outcome.view, random, `m${seed}-next${round}`);
    messagesIn(tree, format).push(
      ...messagesIn(bodyOf([{ say: 'user', text: '-' }, ...next]), format).slice(1),
    );
  }
  return { ...tally, failures };
}

function addMember(tree: Tree, key: string, value: Tree): void {
  if (tree.kind === 'object') tree.members.push({ key, value });
}

/** Returns the reply as the client stores it, the results of its calls, and the next user message. */
function nextTurns(view: ClientView, random: Random, marker: string): readonly NeutralTurn[] {
  const { text, calls } = view;
  const reply: NeutralTurn = { say: 'assistant', calls, ...(text !== '' && { text }) };
  const results: NeutralTurn[] =
    calls.length === 0
      ? []
      : [
          {
            say: 'results',
            results: calls.map(({ id }) => ({
              id,
              text: `result ${marker} ${'word '.repeat(random.below(400))}`,
            })),
          },
        ];
  if (text === '' && calls.length === 0)
    return [
      { say: 'assistant', text: 'Nothing.', calls: [] },
      { say: 'user', text: 'Go on.' },
    ];
  return calls.length > 0 ? [reply, ...results] : [reply, { say: 'user', text: `And then ${marker}?` }];
}

type Outcome = {
  readonly isValid: boolean;
  readonly isFolded: boolean;
  readonly isOverflow: boolean;
  readonly recalls: number;
  readonly failures: readonly string[];
  /** The reply as the client reads it; undefined if it cannot continue. */
  readonly view: ClientView | undefined;
};

async function exchange(
  { handler, provider, encryptedStore, isForced, isLeveled }: Gateway,
  route: Route,
  random: Random,
  bytes: Uint8Array,
  isShort: boolean,
  { seen, hasRecalled }: { readonly seen: readonly string[]; readonly hasRecalled: boolean },
): Promise<Outcome> {
  const own = provider.refusalOf(route.target, bytes);
  const scriptedParts: TurnPart[] = [];
  const recalled: { readonly id: string; readonly callId: string }[] = [];
  provider.sent.length = 0;
  provider.limit = isShort
    ? Math.ceil((bytes.length / 4) * (0.4 + random.below(5) / 10)) + 60
    : Number.POSITIVE_INFINITY;
  provider.script = (body) => {
    const parts = scripted(body, random, provider.sent.length, recalled);
    scriptedParts.push(...parts);
    return parts;
  };
  const failures: string[] = [];
  const response = await handler({
    method: 'POST',
    target: route.target,
    headers: [
      ['content-type', 'application/json'],
      ['authorization', 'Bearer dummy'],
    ],
    body: (async function* given() {
      yield bytes;
    })(),
    signal: new AbortController().signal,
  });
  const text = new TextDecoder().decode(await whole(response.body));
  const { sent } = provider;
  const first = sent[0];
  const isOverflow = sent.some((one) => one.isTooLong);
  const isFolded = first !== undefined && Buffer.compare(first.bytes, bytes) !== 0;

  if (own === undefined) {
    for (const [at, one] of sent.entries())
      if (one.refused !== undefined && !one.isTooLong)
        failures.push(`send ${at} of a valid body is refused: ${one.refused}`);
    const isOverflowReported = response.status === 400 && sent.at(-1)?.isTooLong === true;
    if (response.status !== 200 && !isOverflowReported)
      failures.push(`a valid body is answered ${response.status}: ${text.slice(0, 300)}`);
  } else if (
    response.status >= 400 &&
    !text.includes(JSON.stringify(own).slice(1, -1)) &&
    !isOverflow &&
    !isForced
  )
    failures.push(`the client gets another error than for its own body: ${own} / ${text.slice(0, 300)}`);
  if (first?.body) {
    failures.push(...lostReferences(bytes, first.body));
    if (unpairedFunctions(first.body) > unpairedFunctions(asJson(bytes)))
      failures.push('a function call has lost its result');
    const isOffered = toolText(first.body).includes('read_memory');
    const leavesStub = hasStub(textOf(first.bytes)) && !textOf(first.bytes).includes('"-never-"');
    if (leavesStub && !isOffered && !isForced && !isShort && !hasStub(seen.at(-1)!))
      failures.push('a request without a recall tool is folded');
  }
  const known = [...seen, ...sent.map((one) => textOf(one.bytes))];
  // After a recall the conversation contains pieces of the original that no client sent.
  const isOwn = !isLeveled && !hasRecalled && recalled.length === 0;
  for (const one of sent) failures.push(...(await lostOriginals(one, encryptedStore, known, isOwn)));
  failures.push(...missedRecalls(recalled, sent));

  // A mutation may have changed `stream`, so the response decides.
  const isStream = response.headers.some(
    ([name, value]) => name === 'content-type' && value.includes('event-stream'),
  );
  const view =
    response.status === 200 && route.kind !== 'count' ? readAs(route, text, isStream, failures) : undefined;
  if (view) {
    const wanted = scriptedParts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
    if (view.text !== wanted)
      failures.push(`the client reads ${JSON.stringify(view.text)} of ${JSON.stringify(wanted)}`);
    const calls = scriptedParts.flatMap((part) =>
      part.type === 'tool-call' && part.name !== 'read_memory' ? [part.id] : [],
    );
    if (view.calls.map(({ id }) => id).join() !== calls.join())
      failures.push(`the client gets calls ${view.calls.map(({ id }) => id).join()} of ${calls.join()}`);
  }
  return { isValid: own === undefined, isFolded, isOverflow, recalls: recalled.length, failures, view };
}

let counter = 0;

/** Scripts the model: text, calls of the client's tools, and sometimes a recall of a stub. */
function scripted(
  body: JsonObject,
  random: Random,
  round: number,
  recalled: { readonly id: string; readonly callId: string }[],
): readonly TurnPart[] {
  const number = ++counter;
  const ids = [...new Set(JSON.stringify(body).match(/mem_[a-z0-9]{16}/g) ?? [])];
  const isOffered = toolText(body).includes('"read_memory"');
  const words: TurnPart = { type: 'text', text: `Words ${number}. ` };
  const parts: TurnPart[] = random.chance(0.6) ? [words] : [];
  if (isOffered && ids.length > 0 && round <= 3 && random.chance(0.6)) {
    const id = random.pick(ids);
    const callId = `recall_${number}`;
    recalled.push({ id, callId });
    parts.push({ type: 'tool-call', name: 'read_memory', arguments: { id }, id: callId });
    if (random.chance(0.25)) parts.push(clientCall(number));
    return parts;
  }
  if (toolText(body) !== '' && random.chance(0.4)) return [...parts, clientCall(number)];
  return parts.length > 0 ? parts : [words];
}

function clientCall(number: number): TurnPart {
  return { type: 'tool-call', name: 'run', arguments: { number }, id: `call_new_${number}` };
}

function toolText(body: JsonObject): string {
  return JSON.stringify([body['tools'] ?? [], body['functions'] ?? []]).replace('[[],[]]', '');
}

async function whole(body: AsyncIterable<Uint8Array> | Uint8Array | undefined): Promise<Uint8Array> {
  if (body === undefined) return new Uint8Array(0);
  if (body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function readAs(
  { format }: Route,
  text: string,
  isStream: boolean,
  failures: string[],
): ClientView | undefined {
  const fixture = fixtures[format];
  try {
    return isStream
      ? fixture.client(text.replaceAll('\r\n', '\n'))
      : fixture.clientResponse(new TextEncoder().encode(text));
  } catch (error) {
    failures.push(`the client cannot read its reply: ${String(error)}: ${text.slice(0, 600)}`);
    return undefined;
  }
}

function asJson(bytes: Uint8Array): JsonObject | undefined {
  const body = parseJson(bytes);
  return isObject(body) ? body : undefined;
}
