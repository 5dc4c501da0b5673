/** Tests a store that hangs at each point of a request: the client still receives its complete reply in its format. */
import { mkdtemp, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'iovalkey';
import { describe, expect, it } from 'vitest';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import { redisStore } from '../../src/store/redis/redis.ts';
import { sqliteStore } from '../../src/store/sqlite/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import type { Reply, ScriptRequest, TurnPart } from '../support/fake-provider/script.ts';
import { isRedisMissing, startRedis } from '../support/redis-server.ts';
import { type Format, formats, longBody, post, postStream, requestBody, shapes } from './bodies.ts';
import { replies } from './replies.ts';
import { offering, startStack } from './stack.ts';
import { hasStub } from '../support/stub-texts.ts';

const small = { models: { '*': { windowTokens: 12_000 } } };
/** Folds requests that would fit, to save money. */
const budget = {
  tokenBudget: { triggerTokens: 6_000, targetTokens: 3_000, bufferTokens: 1 },
  cacheRent: false,
} as const;
/** A deadline in ms that no test reaches: with it, another limit must keep a reply from hanging. */
const never = 60 * 60 * 1_000;
const hour = { storeDeadlineMs: never, prepareDeadlineMs: never };

const says = (text: string): Reply => ({ type: 'turn', parts: [{ type: 'text', text }] });
const recalls: TurnPart = {
  type: 'tool-call',
  id: 'private',
  name: 'read_memory',
  arguments: { id: 'mem_0000000000000000' },
};

/** Returns a store whose reads, writes or both hang once the test says so. */
function stuckStore(hanging: 'reads' | 'writes' | 'all' | 'nothing' = 'nothing') {
  const working = inMemoryStore();
  let now = hanging;
  const unless =
    <A extends readonly unknown[], T>(kind: 'reads' | 'writes', call: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> =>
      now === kind || now === 'all' ? new Promise<T>(() => {}) : call(...args);
  const store: Store = {
    ...working,
    get: unless('reads', working.get),
    getMany: unless('reads', working.getMany),
    getFirst: unless('reads', working.getFirst),
    putMany: unless('writes', working.putMany),
    putUnless: unless('writes', working.putUnless),
    delete: unless('writes', working.delete),
  };
  return { store, hang: (what: typeof hanging) => void (now = what) };
}

const sentText = ({ body }: { readonly body: Uint8Array }) => new TextDecoder().decode(body);

describe.each(formats)('a %s request while the store hangs', (format) => {
  const { messages, user } = shapes[format];
  const { streamEnd } = replies[format];

  it.each([
    ['the deadline of the store', { storeDeadlineMs: 20, prepareDeadlineMs: never }],
    ['the deadline of the fold', { storeDeadlineMs: never, prepareDeadlineMs: 50 }],
  ])(
    'before the fold waits for %s, then is sent unchanged, or folded without the store if it would not fit',
    async (_, deadlines) => {
      const { store } = stuckStore('all');
      for (const [settings, outcome] of [
        [{ triggers: budget, shrinks: false }, 'failed'],
        [small, 'compacted'],
      ] as const) {
        await using stack = await startStack(() => says('Hello.'), { ...settings, ...deadlines }, { store });
        const response = await post(stack.url, format, longBody(format, 30));
        expect(response.status).toBe(200);
        expect(await response.text()).toContain('Hello.');
        expect(response.headers.get('x-leporello-outcome')).toBe(outcome);
        const sent = sentText(stack.provider.requests[0]!);
        if (outcome === 'failed') expect(sent).toBe(longBody(format, 30));
        else expect(hasStub(sent)).toBe(true);
      }
    },
  );

  it('while the fold is recorded is sent, and its reply arrives', async () => {
    const { store } = stuckStore('writes');
    const settings = { ...small, storeDeadlineMs: 20, prepareDeadlineMs: never };
    await using stack = await startStack(() => says('Hello.'), settings, { store });
    const response = await post(stack.url, format, longBody(format, 30));
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('Hello.');
  });

  it('while its sent edits are recorded gets its reply', async () => {
    const { store } = stuckStore('writes');
    await using stack = await startStack(() => says('Hello.'), hour, { store });
    for (const request of [post(stack.url, format, requestBody(format)), postStream(stack.url, format)]) {
      const response = await request;
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('Hello.');
    }
  });

  it('after its fold was refused gets its reply, and this process folds the conversation no more', async () => {
    const { store, hang } = stuckStore();
    const script = (request: ScriptRequest): Reply => {
      if (!hasStub(JSON.stringify(request.body))) return says('Hello.');
      hang('writes');
      const error = { type: 'invalid_request_error', message: 'Something here is not allowed.' };
      return { type: 'error', status: 400, body: { type: 'error', error } };
    };
    await using stack = await startStack(script, { triggers: budget, shrinks: false, ...hour }, { store });
    for (const jobs of [8, 9]) {
      const response = await post(stack.url, format, longBody(format, jobs));
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('Hello.');
    }
    const sent = stack.provider.requests.map(sentText);
    expect(sent.map(hasStub)).toEqual([true, false, false]);
    expect(sent.slice(1)).toEqual([longBody(format, 8), longBody(format, 9)]);
  });

  it.each([true, false])(
    'at the end of a reply with a recall gets the complete reply, and this process knows the recall (streamed: %s)',
    async (streaming) => {
      const { store, hang } = stuckStore();
      const script = ({ index }: ScriptRequest): Reply => {
        if (index === 0) return { type: 'turn', parts: [{ type: 'text', text: 'Let me look. ' }, recalls] };
        if (index === 1) hang('writes');
        return says(index === 1 ? 'It is two.' : 'Yes.');
      };
      await using stack = await startStack(script, { ...offering, ...hour }, { store });
      const response = await (streaming
        ? postStream(stack.url, format)
        : post(stack.url, format, requestBody(format)));
      expect(response.status).toBe(200);
      const reply = await response.text();
      if (streaming) expect(reply).toMatch(streamEnd);
      else expect(JSON.stringify(JSON.parse(reply))).toContain('It is two.');

      const said = copyOf(format, 'Let me look. It is two.');
      const next = requestBody(format, { [messages]: [user('Go'), said, user('Sure?')] });
      const after = await post(stack.url, format, next);
      expect(await after.text()).toContain('Yes.');
      expect(sentText(stack.provider.requests[2]!)).toContain('mem_0000000000000000');
    },
  );
});

/** Returns the client's copy of a text reply. */
function copyOf(format: Format, text: string): unknown {
  if (format === 'gemini') return { role: 'model', parts: [{ text }] };
  if (format === 'responses')
    return { type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] };
  return { role: 'assistant', content: text };
}

it('a provider-stored reply that cannot be recorded delays neither its own end nor the request that continues it', async () => {
  const { store, hang } = stuckStore();
  const script = ({ index }: ScriptRequest): Reply => {
    if (index === 0) return { type: 'turn', parts: [recalls] };
    if (index === 1) hang('writes');
    return says(index === 1 ? 'It is two.' : 'Yes.');
  };
  await using stack = await startStack(script, { ...offering, ...hour }, { store });
  const first = await postStream(stack.url, 'responses', { store: true });
  const [, name] = /"response":\{"id":"(\w+)"/.exec(await first.text())!;
  const next = requestBody('responses', { store: true, previous_response_id: name });
  const second = await post(stack.url, 'responses', next);
  expect(second.status).toBe(200);
  expect(await second.text()).toContain('Yes.');
  const { previous_response_id: continued } = JSON.parse(sentText(stack.provider.requests[2]!)) as {
    previous_response_id: string;
  };
  expect(continued).not.toBe(name);
});

it('a write that never ends delays no other conversation, and its own request is sent with an error that says so', async () => {
  const working = inMemoryStore();
  let writes = 0;
  const store: Store = {
    ...working,
    isShared: false,
    putUnless: (guards, entries) =>
      writes++ === 0 ? new Promise<never>(() => {}) : working.putUnless(guards, entries),
  };
  const settings = {
    triggers: budget,
    shrinks: false,
    storeDeadlineMs: 200,
    prepareDeadlineMs: never,
  } as const;
  await using stack = await startStack(() => says('Hello.'), settings, { store });
  const bodies = ['first', 'second'].map((name) =>
    longBody('chat', 30).replace('"content":"', `"content":"The ${name} task. `),
  );
  const answers = await Promise.all(bodies.map((body) => post(stack.url, 'chat', body)));
  for (const reply of answers)
    expect([reply.status, (await reply.text()).includes('Hello.')]).toEqual([200, true]);
  const late = stack.logged.filter((line) => line.includes('store did not answer putUnless within 200 ms'));
  expect(late).toHaveLength(1);
});

it('a recall that cannot be stored after the reply is logged', async () => {
  const { store, hang } = stuckStore();
  const script = ({ index }: ScriptRequest): Reply => {
    if (index === 0) return { type: 'turn', parts: [recalls] };
    hang('writes');
    return says('It is two.');
  };
  await using stack = await startStack(script, { ...offering, storeDeadlineMs: 400 }, { store });
  expect(await (await postStream(stack.url, 'chat')).text()).toMatch(replies.chat.streamEnd);
  await expect
    .poll(() => stack.logged.join('\n'), { timeout: 20_000 })
    .toMatch(
      /a step failed after the reply had ended .*the hidden recalls could not be stored for later requests/,
    );
});

it("the gateway's own paths report that the store cannot be read", async () => {
  const { store } = stuckStore('all');
  await using stack = await startStack(() => says('Hello.'), { storeDeadlineMs: 20 }, { store });
  const ready = await fetch(`${stack.url}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([
    503,
    { status: 'the store cannot be read; requests are folded only when they would not fit the window' },
  ]);
  const memory = await fetch(`${stack.url}/_leporello/memory/mem_0000000000000000`);
  expect([memory.status, await memory.json()]).toEqual([
    503,
    { error: 'The store cannot be read at the moment. Try again later.' },
  ]);
  expect((await fetch(`${stack.url}/healthz`)).status).toBe(200);
});

it('a store that answers after 2 s loses no request, and delays only the first few', async () => {
  const working = inMemoryStore();
  let asked = 0;
  const slowly =
    <A extends readonly unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      asked += 1;
      await pause(2_000);
      return call(...args);
    };
  const store: Store = {
    ...working,
    get: slowly(working.get),
    getMany: slowly(working.getMany),
    getFirst: slowly(working.getFirst),
    putMany: slowly(working.putMany),
    putUnless: slowly(working.putUnless),
  };
  await using stack = await startStack(
    () => says('Hello.'),
    { triggers: budget, shrinks: false, storeDeadlineMs: 50 },
    { store },
  );
  const seen: number[] = [];
  for (let jobs = 20; jobs < 30; jobs++) {
    const response = await post(stack.url, 'chat', longBody('chat', jobs));
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('Hello.');
    seen.push(asked);
  }
  // Each request makes two or three calls at once. After three slow answers there are no calls for 5 s.
  expect(seen.at(-1)! - seen[1]!).toBeLessThanOrEqual(2);
});

it('a SQLite file that another process locks for 3 s loses no request', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'leporello-locked-'));
  const file = join(folder, 'memory.db');
  const store = await sqliteStore({ file });
  {
    await using stack = await startStack(
      () => says('Hello.'),
      { triggers: budget, shrinks: false, storeDeadlineMs: 500 },
      { store },
    );
    const other = new DatabaseSync(file);
    other.exec('begin exclusive');
    const unlocked = pause(3_000).then(() => other.exec('rollback'));
    const lock = { isHeld: true };
    void unlocked.then(() => (lock.isHeld = false));
    for (let jobs = 20; lock.isHeld; jobs++) {
      const response = await post(stack.url, 'chat', longBody('chat', jobs));
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('Hello.');
    }
    other.close();
    // Each request is longer, because a request that was sent without a fold is repeated without one.
    let jobs = 100;
    const outcome = async () => {
      const response = await post(stack.url, 'chat', longBody('chat', jobs++));
      await response.text();
      return response.headers.get('x-leporello-outcome');
    };
    await expect.poll(outcome, { timeout: 30_000 }).toBe('compacted');
  }
  await rm(folder, { recursive: true });
});

describe.skipIf(isRedisMissing)('a Redis server that hangs', () => {
  it.each(['frozen', 'paused by a client'])(
    'because it is %s loses no request, and folds resume when it answers again',
    async (how) => {
      await using redis = await startRedis();
      const store = await redisStore({ port: redis.port });
      await store.get('connected');
      await using stack = await startStack(
        () => says('Hello.'),
        { triggers: budget, shrinks: false, storeDeadlineMs: 500 },
        { store },
      );
      const raw = new Redis(redis.port);
      const ask = async (url: string, jobs: number, streaming: boolean) => {
        const body = JSON.parse(longBody('chat', jobs)) as Record<string, unknown>;
        const response = await (streaming
          ? postStream(url, 'chat', body)
          : post(url, 'chat', JSON.stringify(body)));
        expect(response.status).toBe(200);
        expect(await response.text()).toContain('Hello.');
        return response.headers.get('x-leporello-outcome');
      };
      await ask(stack.url, 10, false);
      // This gateway has nothing of the conversation in its own memory.
      const other = await stack.another();
      if (how === 'frozen') redis.freeze();
      else await raw.client('PAUSE', 3_000, 'ALL');
      for (let jobs = 11; jobs < 17; jobs++) await ask(stack.url, jobs, jobs % 2 === 0);
      expect(await ask(other, 17, false)).toBe('failed');
      if (how === 'frozen') redis.thaw();
      let longer = 30;
      await expect.poll(() => ask(other, longer++, false), { timeout: 60_000 }).toBe('compacted');
      raw.disconnect();
    },
  );
});
