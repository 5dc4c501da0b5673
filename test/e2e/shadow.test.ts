/**
 * Runs a shadow through whole gateways, over HTTP and in every format: what the client gets is the same with and without it, the provider gets the
 * folded request once more and the client's own twice, and the store holds verdicts and no content.
 */
import { describe, expect, it } from 'vitest';
import type { GatewaySettings } from '../../src/gateway/app.ts';
import { openShadowNotes } from '../../src/experiment/shadow.ts';
import type { ExperimentResults } from '../../src/experiment/spell.ts';
import { createEncryptedStore } from '../../src/store/encrypted-store.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import { eventually } from '../support/eventually.ts';
import type { Script, Turn } from '../support/fake-provider/script.ts';
import { type Format, formats, longBody, post, postStream, shapes } from './bodies.ts';
import { foldingEarly, startStack } from './stack.ts';

const prices = { '*': { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 } };
const shadow = { share: 1, usdPerDay: 100, billShare: 1 };

const settings: GatewaySettings = {
  ...foldingEarly,
  usdPerMillionTokens: prices,
};

const usage = { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 10 };
const acts = (path: string): Turn => ({
  type: 'turn',
  parts: [{ type: 'tool-call', name: 'run', arguments: { path } }],
  usage,
});

/** A request is large enough to be folded. */
const jobs = 12;

async function resultsOf(url: string): Promise<ExperimentResults> {
  return (await (await fetch(`${url}/_leporello/experiment`)).json()) as ExperimentResults;
}

/** Sends small requests until the tenant's bill allows to repeat one: each costs USD 0.0105. */
async function pay(url: string, requests: number): Promise<void> {
  for (let at = 0; at < requests; at++) await (await post(url, 'messages', longBody('messages', 1))).text();
}

describe.each(formats)('a shadow of %s', (format: Format) => {
  it.each([false, true])('repeats a folded request, streamed: %s', async (isStreamed) => {
    await using stack = await startStack(() => acts('src/a.ts'), { ...settings, experiment: { shadow } });
    await pay(stack.url, 60);
    const before = stack.provider.requests.length;
    const fields = JSON.parse(longBody(format, jobs)) as Record<string, unknown>;
    const { messages } = shapes[format];
    const response = isStreamed
      ? await postStream(stack.url, format, { [messages]: fields[messages] })
      : await post(stack.url, format, JSON.stringify(fields));
    expect(response.status).toBe(200);
    await response.text();
    await eventually(async () => {
      const { shadows } = await resultsOf(stack.url);
      expect(shadows.find(({ levels }) => levels.target.first.samples === 1)).toMatchObject({
        tally: { calls: 3, usd: 3 * 0.0105, dropped: {} },
        levels: {
          tool: { first: { loss: 0, shift: 0 } },
          target: { first: { loss: 0 }, later: { samples: 0 } },
          arguments: { first: { loss: 0 } },
        },
        byStrategies: [{ strategies: 'offload-results' }],
        replies: {
          folded: { replies: 2, tokensOut: 20, repeats: 0 },
          whole: { replies: 2, tokensOut: 20, repeats: 0 },
        },
      });
    });
    const sent = stack.provider.requests.slice(before);
    expect(sent).toHaveLength(4);
    const bodies = sent.map(({ body }) => Buffer.from(body).toString());
    expect(bodies[1]).toBe(bodies[0]);
    expect(bodies[3]).toBe(bodies[2]);
    expect(bodies[2]).not.toBe(bodies[0]);
    // The client's own messages, with the tools of the folded request.
    expect(JSON.parse(bodies[2]!)[messages]).toEqual(fields[messages]);
    expect(JSON.parse(bodies[2]!).tools).toEqual(JSON.parse(bodies[0]!).tools);
  });
});

describe('a shadow', () => {
  it('changes nothing of what the client gets, and of what is sent for it', async () => {
    const replies = async (own: GatewaySettings) => {
      await using stack = await startStack(() => acts('src/a.ts'), own);
      const got: string[] = [];
      for (const count of [...Array.from({ length: 60 }, () => 1), 10, 11, 12])
        got.push(await (await post(stack.url, 'messages', longBody('messages', count))).text());
      await new Promise((resolve) => setTimeout(resolve, 200));
      return {
        got: got.map((text) => text.replaceAll(/"id":"[^"]+"/g, '')),
        sent: stack.provider.requests.length,
      };
    };
    const without = await replies(settings);
    const withShadow = await replies({ ...settings, experiment: { shadow } });
    expect(withShadow.got).toEqual(without.got);
    expect(withShadow.sent).toBeGreaterThan(without.sent);
  });

  it('ends the served reply before it sends anything', async () => {
    const hang = Promise.withResolvers<Turn>();
    const script: Script = ({ index }) => (index <= 60 ? acts('src/a.ts') : hang.promise);
    await using stack = await startStack(script, { ...settings, experiment: { shadow } });
    await pay(stack.url, 60);
    // The reply arrives although no repeated request is answered.
    expect(await (await post(stack.url, 'messages', longBody('messages', jobs))).text()).toContain(
      'src/a.ts',
    );
    await eventually(() => expect(stack.provider.requests).toHaveLength(62));
    hang.resolve(acts('src/a.ts'));
    await eventually(() => expect(stack.provider.requests).toHaveLength(64));
  });

  it('waits before each request until the gateway has time', async () => {
    const waits: PromiseWithResolvers<boolean>[] = [];
    const whenIdle = () => {
      waits.push(Promise.withResolvers());
      return waits.at(-1)!.promise;
    };
    await using stack = await startStack(
      () => acts('src/a.ts'),
      { ...settings, experiment: { shadow } },
      { whenIdle },
    );
    await pay(stack.url, 60);
    await (await post(stack.url, 'messages', longBody('messages', jobs))).text();
    for (const at of [0, 1]) {
      await eventually(() => expect(waits).toHaveLength(at + 1));
      expect(stack.provider.requests).toHaveLength(61 + at);
      waits[at]!.resolve(at === 0);
    }
    await eventually(async () =>
      expect((await resultsOf(stack.url)).shadows).toMatchObject([
        { tally: { calls: 1, usd: 0.0105, dropped: { 'the gateway was busy': 1 } } },
      ]),
    );
    expect(stack.provider.requests).toHaveLength(62);
  });

  it('answers recalls before it compares, and counts them', async () => {
    const script: Script = ({ body, index }) => {
      if (index < 60) return acts('src/a.ts');
      const text = JSON.stringify(body);
      const id = /\[[^\]]*?(mem_[0-9a-z]{16})/.exec(text)?.[1];
      const hasRecalled = text.includes('"name":"read_memory","input"');
      if (id === undefined || hasRecalled) return acts('src/a.ts');
      return { type: 'turn', parts: [{ type: 'tool-call', name: 'read_memory', arguments: { id } }], usage };
    };
    await using stack = await startStack(script, { ...settings, experiment: { shadow } });
    await pay(stack.url, 60);
    await (await post(stack.url, 'messages', longBody('messages', jobs))).text();
    await eventually(async () => {
      const { shadows } = await resultsOf(stack.url);
      expect(shadows).toMatchObject([
        { recalls: 2, levels: { target: { first: { samples: 1, loss: 0, shift: 0 } } }, tally: { calls: 4 } },
      ]);
    });
  });

  it('stores no content, and nothing of a reply', async () => {
    const store = inMemoryStore();
    const written: string[] = [];
    const watched = {
      ...store,
      putMany: (entries: Parameters<typeof store.putMany>[0]) => {
        written.push(...entries.map(({ key, value }) => `${key} ${Buffer.from(value).toString('latin1')}`));
        return store.putMany(entries);
      },
      putUnless: (guards: readonly string[], entries: Parameters<typeof store.putMany>[0]) => {
        written.push(...entries.map(({ key, value }) => `${key} ${Buffer.from(value).toString('latin1')}`));
        return store.putUnless(guards, entries);
      },
    };
    const planted = 'zanzibarquokka';
    const secret = new Uint8Array(32).fill(5);
    await using stack = await startStack(
      () => acts(`src/${planted}.ts`),
      { ...settings, experiment: { shadow } },
      { store: watched, secret },
    );
    await pay(stack.url, 60);
    const body = longBody('messages', jobs).replace('Run all jobs.', planted);
    await (await post(stack.url, 'messages', body)).text();
    await eventually(async () => {
      const { shadows } = await resultsOf(stack.url);
      expect(shadows[0]?.levels.target.first.samples).toBe(1);
    });
    expect(written.some((entry) => entry.includes('experiment/shadow/'))).toBe(true);
    expect(written.filter((entry) => entry.includes(planted))).toEqual([]);
    // The sealed records are read with the secret, too.
    const opened = createEncryptedStore({ store, secret });
    const keys = written
      .map((entry) => /^sealed\/local\/(experiment\/\S+)/.exec(entry)?.[1])
      .filter((key) => key !== undefined);
    // The claim on the tenant is deleted when a comparison has ended.
    const records = (await opened.getSealedMany('local', keys)).filter((record) => record !== undefined);
    expect(records.length).toBeGreaterThan(3);
    for (const record of records)
      expect(Buffer.from(record).toString()).not.toMatch(/zanzibar|job \d|src|run/);
  });

  it.each<readonly [string, object, Record<string, string>, string]>([
    ['a login', {}, { authorization: 'Bearer sk-ant-oat01-x' }, 'it was sent with a login'],
    [
      'a tool of the provider',
      { mcp_servers: [{ type: 'url', name: 'a', url: 'https://a.example' }] },
      {},
      'it has an effect at the provider',
    ],
  ])('repeats no request with %s', async (_, fields, headers, reason) => {
    await using stack = await startStack(() => acts('src/a.ts'), { ...settings, experiment: { shadow } });
    await pay(stack.url, 60);
    const body = JSON.stringify({ ...JSON.parse(longBody('messages', jobs)), ...fields });
    await (await post(stack.url, 'messages', body, headers)).text();
    await eventually(async () => {
      const { shadows } = await resultsOf(stack.url);
      expect(shadows).toMatchObject([{ tally: { calls: 0, usd: 0, dropped: { [reason]: 1 } } }]);
    });
    expect(stack.provider.requests).toHaveLength(61);
  });

  it('says in its receipt that its verdict was lost when the store fails', async () => {
    const working = inMemoryStore();
    let isDown = false;
    const putMany: typeof working.putMany = async (entries) => {
      if (isDown) throw new Error('The disk is full.');
      await working.putMany(entries);
    };
    // With the last of the three repeated requests, the store fails.
    const script: Script = ({ index }) => ((isDown = index >= 63), acts('src/a.ts'));
    const store = { ...working, putMany };
    await using stack = await startStack(script, { ...settings, experiment: { shadow } }, { store });
    await pay(stack.url, 60);
    await (await post(stack.url, 'messages', longBody('messages', jobs))).text();
    await eventually(async () => {
      const text = await (await fetch(`${stack.url}/_leporello/receipts?limit=1`)).text();
      expect(text).toMatch(/"kind":"shadow",.*"outcome":{"status":"failed","reason":"Error"}.*"calls":3/);
    });
  });

  it('sends nothing that its caps do not allow', async () => {
    for (const [own, reason] of [
      [{ ...shadow, usdPerDay: 0.001 }, 'the cap of the day might have been exceeded'],
      [
        { ...shadow, billShare: 0.001 },
        "the comparisons' share of the tenant's bill might have been exceeded",
      ],
    ] as const) {
      await using stack = await startStack(() => acts('src/a.ts'), {
        ...settings,
        experiment: { shadow: own },
      });
      await pay(stack.url, 60);
      await (await post(stack.url, 'messages', longBody('messages', jobs))).text();
      await eventually(async () => {
        const { shadows } = await resultsOf(stack.url);
        expect(shadows).toMatchObject([{ tally: { calls: 0, usd: 0, dropped: { [reason]: 1 } } }]);
      });
      expect(stack.provider.requests).toHaveLength(61);
    }
  });

  it('holds the strategies that are shown to do harm, and nothing else', async () => {
    const script: Script = ({ body }) =>
      acts(JSON.stringify(body).includes('mem_') ? 'src/b.ts' : 'src/a.ts');
    const own: GatewaySettings = {
      ...settings,
      shrinks: false,
      experiment: { shadow: { ...shadow, usdPerDay: 1_000 } },
    };
    await using stack = await startStack(script, own);
    await pay(stack.url, 200);
    const ask = async (name: string, model = 'claude-sonnet-5') => {
      const body = { ...JSON.parse(longBody('messages', jobs).replace('Run all jobs.', name)), model };
      const response = await post(stack.url, 'messages', JSON.stringify(body));
      await response.text();
      return response.headers.get('x-leporello-outcome');
    };
    const estimateOf = async () => (await resultsOf(stack.url)).shadows[0];
    for (let at = 1; at <= 50; at++) {
      expect(await ask(`Conversation ${at}`)).toBe('compacted');
      await eventually(async () =>
        expect(await estimateOf()).toMatchObject({
          levels: { target: { first: { samples: at } } },
          tally: { dropped: {} },
        }),
      );
    }
    expect(await estimateOf()).toMatchObject({
      levels: { target: { state: 'harm shown', first: { shift: 2, loss: 1 } } },
      byStrategies: [{ strategies: 'offload-results', heldUntil: expect.any(Number) }],
    });
    await eventually(async () => expect(await ask(`Held ${Math.random()}`)).toBe('untouched'));
    // Folds that stand are repeated, and other models are folded.
    expect(await ask('Conversation 1')).toBe('compacted');
    expect(await ask('Another model', 'claude-opus-5')).toBe('compacted');
    // A restart forgets nothing.
    await stack.restart();
    await ask('The first after a restart');
    await eventually(async () => expect(await ask(`Held again ${Math.random()}`)).toBe('untouched'));
    const receipts = (await (await fetch(`${stack.url}/_leporello/receipts`)).json()) as object;
    expect(JSON.stringify(receipts)).toContain(
      'held: its folds were shown to change what the model does next',
    );
  });
});

describe('a shadow with unless-safe', () => {
  const strict: GatewaySettings = {
    ...settings,
    // Without them, the whole request is served as it is compared.
    shrinks: false,
    cacheMarks: false,
    experiment: { shadow: { ...shadow, usdPerDay: 1_000, hold: 'unless-safe' } },
  };
  const secret = new Uint8Array(32).fill(6);
  const bodyOf = (name: string, model = 'claude-sonnet-5') =>
    JSON.stringify({ ...JSON.parse(longBody('messages', jobs).replace('Run all jobs.', name)), model });
  const ask = async (url: string, name: string, model?: string) => {
    const response = await post(url, 'messages', bodyOf(name, model));
    await response.text();
    return response.headers.get('x-leporello-outcome');
  };

  it.each([
    ['the gateway', {}],
    ['a thread', { foldThreadBytes: 1_000 }],
  ])('serves whole requests, and compares the fold that %s held back', async (_, deps) => {
    const script: Script = ({ body, index }) => {
      if (index < 60) return acts('src/a.ts');
      const text = JSON.stringify(body);
      const id = /\[[^\]]*?(mem_[0-9a-z]{16})/.exec(text)?.[1];
      if (id === undefined || text.includes('"name":"read_memory","input"')) return acts('src/a.ts');
      return { type: 'turn', parts: [{ type: 'tool-call', name: 'read_memory', arguments: { id } }], usage };
    };
    await using stack = await startStack(script, strict, deps);
    await pay(stack.url, 60);
    expect(await ask(stack.url, 'Run all jobs.')).toBe('untouched');
    // The fold is not stored, and its recalls are answered all the same.
    await eventually(async () =>
      expect((await resultsOf(stack.url)).shadows).toMatchObject([
        {
          recalls: 2,
          levels: { target: { first: { samples: 1, loss: 0, shift: 0 }, later: { samples: 0 } } },
          byStrategies: [{ strategies: 'offload-results', state: 'too few' }],
          tally: { calls: 5, usd: 0.0525, dropped: {} },
        },
      ]),
    );
    const sent = stack.provider.requests.slice(60).map(({ body }) => Buffer.from(body).toString());
    const isFolded = sent.map((body) => body.includes('[Folded result'));
    // The served one; the folded one and its recall, twice; and the whole one, whose second reply is the served one.
    expect(isFolded).toEqual([false, true, true, true, true, false]);
    expect(sent[5]).toBe(sent[0]);
    expect(sent[3]).toBe(sent[1]);
    expect(sent[2]).toContain('job 0: step 99 took 693 ms');
    const receipts = await (await fetch(`${stack.url}/_leporello/receipts`)).text();
    expect(receipts).toContain('held: its folds are not shown to be harmless yet');
  });

  it('folds by what was shown to be harmless, for that model, and no longer once that is doubted', async () => {
    // It outlives the restart.
    const store = { ...inMemoryStore(), close: () => Promise.resolve() };
    await using stack = await startStack(() => acts('src/a.ts'), strict, { store, secret });
    await pay(stack.url, 60);
    expect(await ask(stack.url, 'One')).toBe('untouched');
    const notes = openShadowNotes(createEncryptedStore({ store, secret }));
    const compared = await eventually(async () => {
      const [one] = (await notes.read('local')).compared;
      expect(one).toBeDefined();
      return one!;
    });
    // Later than the gateway's own verdicts: it has too few comparisons.
    const later = Date.now() + 1e9;
    await notes.judge('local', compared, 'safe', later, false);
    await stack.restart();
    await eventually(async () => expect(await ask(stack.url, `Folded ${Math.random()}`)).toBe('compacted'));
    expect(await ask(stack.url, 'Another model', 'claude-opus-5')).toBe('untouched');
    await notes.judge('local', compared, 'not shown', later + 1, false);
    await stack.restart();
    await ask(stack.url, 'The first after a restart');
    expect(await ask(stack.url, 'Doubted')).toBe('untouched');
  });

  it('folds what would not fit', async () => {
    const tight: GatewaySettings = {
      ...strict,
      models: { '*': { windowTokens: 12_000, tokenizer: { encoding: 'o200k_base' } } },
      triggers: { ...foldingEarly.triggers, mustFit: {} },
    };
    await using stack = await startStack(() => acts('src/a.ts'), tight);
    expect(await ask(stack.url, 'Too long.')).toBe('compacted');
  });
});
