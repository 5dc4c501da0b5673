/**
 * Many conversations that share beginnings, at several instances of the engine on one store: what is sent for a prefix is compared with
 * what was sent for it before, by whichever instance.
 */
import { expect } from 'vitest';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Prepared } from '../../src/engine/types.ts';
import type { HiddenRecall } from '../../src/conversation/hidden-recall.ts';
import type { Store } from '../../src/store/store.ts';
import { chatBody, freshReading, type Step } from '../support/chat-conversation.ts';
import { hiddenRecallOf } from '../support/codec-suite/with-hidden-recalls.ts';
import { testEngine } from '../support/test-engine.ts';

/** What a client does next. Numbers choose among what there is, whatever there is. */
export type Act = {
  /** `goes on`: with one more step; `again`: the same request; `forks`: with another step in the place of an earlier one; `begins`: another task. */
  readonly kind: 'goes on' | 'again' | 'forks' | 'begins';
  readonly branch: number;
  readonly instance: number;
  /** Of the new step, in lines of a log; none is a word. */
  readonly lines: number;
  /** For a fork: how many of the newest steps it leaves out. */
  readonly back: number;
  /** Whether the model recalls something in its reply. */
  readonly recalls: boolean;
  /** What the provider reports, in percent of what was counted: instances learn different things. */
  readonly reported: number;
};

type Sent = {
  readonly came: readonly string[];
  /** The tools, which stand in front of all, and the messages. */
  readonly sent: readonly string[];
  readonly folded: boolean;
  readonly hiddenRecalls: number;
};

/** `last`: its newest request, to whose reply the next one goes on. */
type Branch = { steps: readonly Step[]; last: Prepared | undefined };

/** Added up over all that is played. */
export type Played = { folds: number; hiddenRecalls: number; branches: number };

const noAct: Act = {
  kind: 'begins',
  branch: 0,
  instance: 0,
  lines: 0,
  back: 0,
  recalls: false,
  reported: 100,
};

/** Tokens: some ten results of `most` lines. */
const window = 6_000;

/** Plays each list of acts at once, one list after the other. `hadFold`: the agent, in a conversation before. */
export async function play(
  stores: readonly Store[],
  hadFold: boolean,
  rounds: readonly (readonly Act[])[],
  played: Played,
): Promise<void> {
  const engines = stores.map((store) => testEngine({ store, window }).engine);
  const branches: Branch[] = [{ steps: [{ user: 'Run all jobs.' }], last: undefined }];
  const sent: Sent[] = [];
  let said = 0;

  function next({ lines, recalls }: Act): readonly Step[] {
    said++;
    if (recalls) return [{ assistant: `Found ${said}.` }, { user: `And ${said}?` }];
    return [{ calls: [{ name: 'run', input: `{"n":${said}}`, result: logOf(said, lines) }] }];
  }

  if (hadFold) {
    const jobs = Array.from({ length: 5 }, (_, at) => next({ ...noAct, lines: 150 + at }));
    const { sent: one } = await request(engines[0]!, noAct, [{ user: 'Do it all.' }, ...jobs.flat()]);
    expect(one.folded).toBe(true);
  }
  for (const acts of rounds) {
    // What is sent at once is compared with what was sent before, and with each other.
    const before = [...sent];
    const known = [...branches];
    const busy = new Set<Branch>();
    const requests = acts.map((act) => {
      const branch = known[act.branch % known.length]!;
      const { steps: asked, last } = act.kind === 'begins' ? begun(act) : branch;
      if (act.kind === 'again') return { act, branch, steps: asked };
      const end = act.kind === 'forks' ? Math.max(1, asked.length - act.back) : asked.length;
      const steps = [...asked.slice(0, end), ...next(act)];
      // What was recalled is kept before the client has the reply.
      const recalls = act.recalls && end === asked.length && last?.recallTool !== undefined;
      const recalled = recalls ? last.remember(hiddenRecall(said)) : undefined;
      // Two that go on from the same reply are two branches.
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
        if (same(one.came, other.came)) expect(one.sent, 'the same request').toEqual(other.sent);
    }
    sent.push(...now);
    played.folds += now.filter(({ folded }) => folded).length;
    played.hiddenRecalls += now.filter(({ hiddenRecalls }) => hiddenRecalls > 0).length;
  }
  played.branches += branches.length;
}

/** Of the same agent. */
function begun({ branch }: Act): Branch {
  return { steps: [{ user: ['Run all jobs.', 'Run some.', 'Run one.'][branch % 3]! }], last: undefined };
}

async function request(
  engine: Engine,
  { reported }: Act,
  steps: readonly Step[],
): Promise<{ readonly prepared: Prepared; readonly sent: Sent }> {
  const body = chatBody(steps, { tools: ['run'], model: 'gpt-4o' });
  const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
  expect(prepared.outcome.status).not.toBe('failed');
  await prepared.known;
  prepared.reportPromptTokens(Math.round(((prepared.prompt?.counted ?? 0) * reported) / 100));
  const folded = prepared.report.steps.some(({ edits }) => edits > 0);
  return {
    prepared,
    sent: {
      came: messagesOf(body),
      sent: [toolsOf(prepared.body), ...messagesOf(prepared.body)],
      folded,
      hiddenRecalls: prepared.report.hiddenRecalls,
    },
  };
}

/**
 * What is sent goes on from what was sent for the longest part of it, by any branch, but where it is folded now. Where another branch
 * has more in common with it than its own last request, that one's may be gone on from.
 */
function check(one: Sent, before: readonly Sent[], now: readonly Sent[]): void {
  if (one.folded) return;
  const own = before.filter(
    ({ came }) => came.length <= one.came.length && common(came, one.came) === came.length,
  );
  const last = own.reduce<Sent | undefined>(
    (longest, other) => (longest && longest.came.length >= other.came.length ? longest : other),
    undefined,
  );
  if (!last || goesOnFrom(one, last, 0)) return;
  const siblings = [...before, ...now].filter(
    ({ came }) => common(came, one.came) >= last.came.length && common(came, one.came) < came.length,
  );
  const adopted = siblings.some((other) =>
    goesOnFrom(one, other, other.came.length - common(other.came, one.came)),
  );
  if (!adopted) expect(one.sent.slice(0, last.sent.length), 'what was sent before').toEqual(last.sent);
}

function goesOnFrom(one: Sent, other: Sent, without: number): boolean {
  const kept = other.sent.slice(0, other.sent.length - without);
  return common(kept, one.sent) === kept.length;
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

/** About ten tokens a line. */
function logOf(job: number, lines: number): string {
  return (
    Array.from({ length: lines }, (_, line) => `job ${job}: step ${line} took ${line * 7} ms\n`).join('') ||
    'ok'
  );
}

/** The model read memory before it said what the client has of it. */
function hiddenRecall(said: number): HiddenRecall {
  const id = `memory_${said}`;
  const call = { id, type: 'function', function: { name: 'read_memory', arguments: '{"id":"mem_a"}' } };
  return hiddenRecallOf([[{ role: 'assistant', content: null, tool_calls: [call] }, { [id]: 'all of it' }]], {
    role: 'assistant',
    content: `Found ${said}.`,
  });
}
