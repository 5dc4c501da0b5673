/**
 * Plays conversations with common prefixes at several instances of the engine on one store, and compares the bytes sent for a prefix with
 * those that any instance sent for it before.
 */
import { expect } from 'vitest';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { Engine } from '../../src/engine/types.ts';
import type { PreparedRequest } from '../../src/engine/types.ts';
import type { HiddenRecall } from '../../src/conversation/conversation.ts';
import type { Store } from '../../src/store/store.ts';
import { chatBody, freshReading, type Step } from '../support/chat-conversation.ts';
import { hiddenRecallOf } from '../support/codec-suite/with-hidden-recalls.ts';
import { testEngine } from '../support/test-engine.ts';

/** A client's next action. Numbers select an item modulo their count. */
export type Action = {
  /** `continues`: adds a step; `repeats`: sends the same request; `forks`: replaces the newest steps; `begins`: starts another task. */
  readonly kind: 'continues' | 'repeats' | 'forks' | 'begins';
  readonly branch: number;
  readonly instance: number;
  /** Length of the new step's result, in lines of a log; 0 is one word. */
  readonly lines: number;
  /** Number of newest steps that a fork removes. */
  readonly back: number;
  /** Whether the model recalls in its reply. */
  readonly recalls: boolean;
  /** The provider's reported tokens, in percent of the counted ones, so that instances learn different corrections. */
  readonly reported: number;
};

type Sent = {
  readonly clientMessages: readonly string[];
  /** The tools, which come first, and the messages. */
  readonly sent: readonly string[];
  readonly folded: boolean;
  readonly hiddenRecalls: number;
};

/** A conversation; `last` is its newest request, whose reply the next one continues. */
type Branch = { steps: readonly Step[]; last: PreparedRequest | undefined };

/** Counts over all played conversations. */
export type Counts = { folds: number; hiddenRecalls: number; branches: number };

const noAction: Action = {
  kind: 'begins',
  branch: 0,
  instance: 0,
  lines: 0,
  back: 0,
  recalls: false,
  reported: 100,
};

/** The window in tokens, about ten long results. */
const window = 6_000;

/** Plays the rounds one after the other, the actions of a round at once. `hadFold`: another conversation was folded before. */
export async function play(
  stores: readonly Store[],
  hadFold: boolean,
  rounds: readonly (readonly Action[])[],
  counts: Counts,
): Promise<void> {
  const engines = stores.map((store) => testEngine({ store, window }).engine);
  const branches: Branch[] = [{ steps: [{ user: 'Run all jobs.' }], last: undefined }];
  const sent: Sent[] = [];
  let said = 0;

  function next({ lines, recalls }: Action): readonly Step[] {
    said++;
    if (recalls) return [{ assistant: `Found ${said}.` }, { user: `And ${said}?` }];
    return [{ calls: [{ name: 'run', input: `{"n":${said}}`, result: logOf(said, lines) }] }];
  }

  if (hadFold) {
    const jobs = Array.from({ length: 5 }, (_, at) => next({ ...noAction, lines: 150 + at }));
    const { sent: one } = await request(engines[0]!, noAction, [{ user: 'Do it all.' }, ...jobs.flat()]);
    expect(one.folded).toBe(true);
  }
  for (const acts of rounds) {
    // Requests sent at once are compared with earlier ones and with each other.
    const before = [...sent];
    const known = [...branches];
    const busy = new Set<Branch>();
    const requests = acts.map((act) => {
      const branch = known[act.branch % known.length]!;
      const { steps: asked, last } = act.kind === 'begins' ? begun(act) : branch;
      if (act.kind === 'repeats') return { act, branch, steps: asked };
      const end = act.kind === 'forks' ? Math.max(1, asked.length - act.back) : asked.length;
      const steps = [...asked.slice(0, end), ...next(act)];
      // A recall is stored before the client has the reply.
      const recalls = act.recalls && end === asked.length && last?.recallTool !== undefined;
      const recalled = recalls ? last.remember(hiddenRecall(said)) : undefined;
      // Two requests that continue the same reply are two branches.
      const isNew = act.kind === 'forks' || act.kind === 'begins' || busy.has(branch);
      if (act.kind !== 'begins') busy.add(branch);
      const mine: Branch = isNew ? { steps, last: undefined } : branch;
      if (isNew) branches.push(mine);
      return { act, branch: mine, steps, recalled };
    });
    const now = await Promise.all(
      requests.map(async ({ act, branch, steps, recalled }) => {
        await recalled;
        const { prepared, sent: one } = await request(engines[act.instance % engines.length]!, act, steps);
        Object.assign(branch, { steps, last: prepared });
        return one;
      }),
    );
    for (const one of now) {
      check(one, before, now);
      for (const other of [...before, ...now])
        if (same(one.clientMessages, other.clientMessages))
          expect(one.sent, 'the same request').toEqual(other.sent);
    }
    sent.push(...now);
    counts.folds += now.filter(({ folded }) => folded).length;
    counts.hiddenRecalls += now.filter(({ hiddenRecalls }) => hiddenRecalls > 0).length;
  }
  counts.branches += branches.length;
}

/** Begins another conversation of the same agent. */
function begun({ branch }: Action): Branch {
  return { steps: [{ user: ['Run all jobs.', 'Run some.', 'Run one.'][branch % 3]! }], last: undefined };
}

async function request(
  engine: Engine,
  { reported }: Action,
  steps: readonly Step[],
): Promise<{ readonly prepared: PreparedRequest; readonly sent: Sent }> {
  const body = chatBody(steps, { tools: ['run'], model: 'gpt-4o' });
  const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
  expect(prepared.outcome.status).not.toBe('failed');
  await prepared.known;
  prepared.reportPromptTokens(Math.round(((prepared.prompt?.counted ?? 0) * reported) / 100));
  const folded = prepared.report.steps.some(({ edits }) => edits > 0);
  return {
    prepared,
    sent: {
      clientMessages: messagesOf(body),
      sent: [toolsOf(prepared.body), ...messagesOf(prepared.body)],
      folded,
      hiddenRecalls: prepared.report.hiddenRecalls,
    },
  };
}

/**
 * Checks that a request without a new fold extends what was sent for its longest earlier prefix. If another branch has a longer common
 * prefix, it may extend that one instead.
 */
function check(one: Sent, before: readonly Sent[], now: readonly Sent[]): void {
  if (one.folded) return;
  const own = before.filter(
    ({ clientMessages }) =>
      clientMessages.length <= one.clientMessages.length &&
      common(clientMessages, one.clientMessages) === clientMessages.length,
  );
  const last = own.reduce<Sent | undefined>(
    (longest, other) =>
      longest && longest.clientMessages.length >= other.clientMessages.length ? longest : other,
    undefined,
  );
  if (!last || extendsSent(one, last, 0)) return;
  const siblings = [...before, ...now].filter(
    ({ clientMessages }) =>
      common(clientMessages, one.clientMessages) >= last.clientMessages.length &&
      common(clientMessages, one.clientMessages) < clientMessages.length,
  );
  const adopted = siblings.some((other) =>
    extendsSent(one, other, other.clientMessages.length - common(other.clientMessages, one.clientMessages)),
  );
  if (!adopted) expect(one.sent.slice(0, last.sent.length), 'what was sent before').toEqual(last.sent);
}

function extendsSent(one: Sent, other: Sent, without: number): boolean {
  const prefix = other.sent.slice(0, other.sent.length - without);
  return common(prefix, one.sent) === prefix.length;
}

function common(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((message, index) => message !== other[index]);
  return at < 0 ? one.length : at;
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && common(one, other) === one.length;
}

function messagesOf(body: Uint8Array): readonly string[] {
  return openaiChat
    .read(body, freshReading())
    .messages.map(({ span }) => new TextDecoder().decode(body.subarray(span.start, span.end)));
}

function toolsOf(body: Uint8Array): string {
  return JSON.stringify((JSON.parse(new TextDecoder().decode(body)) as { readonly tools: unknown }).tools);
}

/** Returns log lines of about ten tokens each. */
function logOf(job: number, lines: number): string {
  return (
    Array.from({ length: lines }, (_, line) => `job ${job}: step ${line} took ${line * 7} ms\n`).join('') ||
    'ok'
  );
}

/** Returns a hidden recall before the text that the client has of the reply. */
function hiddenRecall(said: number): HiddenRecall {
  const id = `memory_${said}`;
  const call = { id, type: 'function', function: { name: 'read_memory', arguments: '{"id":"mem_a"}' } };
  return hiddenRecallOf([[{ role: 'assistant', content: null, tool_calls: [call] }, { [id]: 'all of it' }]], {
    role: 'assistant',
    content: `Found ${said}.`,
  });
}
