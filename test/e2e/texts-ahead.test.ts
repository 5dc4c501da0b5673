/** Tests items and records in a model's words in every format: they are written in the background, ahead of the fold; no request waits. */
import { describe, expect, it } from 'vitest';
import type { Reply, ScriptRequest } from '../support/fake-provider/script.ts';
import { eventually } from '../support/eventually.ts';
import type { AnyReceipt } from '../../src/gateway/receipts/receipts.ts';
import { type Format, formats, longBody, post, requestBody, shapes } from './bodies.ts';
import { type Stack, startStack } from './stack.ts';

const says = (text: string): Reply => ({ type: 'turn', parts: [{ type: 'text', text }] });

const usual = {
  shrinks: false,
  calibration: false,
  cacheMarks: false,
  models: { '*': { tokenizer: { encoding: 'o200k_base' } } },
} as const;

const folding = (triggerTokens: number, targetTokens: number) => ({
  tokenBudget: { triggerTokens, targetTokens, bufferTokens: 1 },
  cacheRent: false as const,
  coldCache: false as const,
});

type Item = { readonly id: number; readonly text: string; readonly compressed?: true };

/** A list of about 5,000 tokens, whose items say different things. */
function list(page: number): readonly Item[] {
  return Array.from({ length: 20 }, (_, at) => {
    const id = page * 100 + at;
    const lines = Array.from(
      { length: 12 },
      (__, line) => `Lamp ${id} had part ${line} of brass and glass, made in ${1_700 + line}.`,
    );
    return { id, text: `Lamp ${id} is old. ${lines.join(' ')} It burned for ${id * 7} days.` };
  });
}

/** A provider that writes texts after `open()` and answers everything else at once. */
function provider(write: (prompt: string) => Reply | undefined) {
  const gate = Promise.withResolvers<void>();
  const asked: string[] = [];
  const script = async ({ body }: ScriptRequest): Promise<Reply> => {
    const prompt = JSON.stringify(body);
    const reply = write(prompt);
    if (!reply) return says('Hello.');
    asked.push(prompt);
    await gate.promise;
    return reply;
  };
  return { asked, script, open: gate.resolve };
}

/** Writes of each lamp what a reader needs, in words that the list does not have. */
const aboutLamps = (prompt: string): Reply | undefined => {
  if (!prompt.includes('You shorten a text that a tool gave an agent.')) return undefined;
  const id = Number(/Lamp (\d+) is old/.exec(prompt)![1]);
  return says(`Summed up: lamp ${id} shone ${id * 7} days.`);
};

const aboutJobs = (prompt: string): Reply | undefined =>
  prompt.includes('You write down what an agent has done so far.')
    ? says('- Job ZEBRA-17 failed twice.\n[Steps folded, 9 calls: a lie]')
    : undefined;

/** Returns the gateway's receipts, oldest first. */
async function receiptsOf({ url }: Stack): Promise<readonly AnyReceipt[]> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  const { receipts } = (await response.json()) as { receipts: AnyReceipt[] };
  return receipts.toReversed();
}

/** Returns the newest body sent for the conversation itself. */
const newest = ({ provider: { requests } }: Stack): string =>
  requests
    .map(({ body }) => new TextDecoder().decode(body))
    .findLast((body) => !/You shorten a text|You write down what an agent/.test(body))!;

const ready = 'texts of items and records are ready';
const until = (stack: Stack, message: string, times = 1) =>
  eventually(() => expect(stack.logged.filter((line) => line.startsWith(message)).length).toBe(times));

describe.each(formats)('items in the words of a model for %s requests', (format) => {
  const settings = {
    ...usual,
    items: { kind: 'model' as const },
    triggers: folding(17_500, 14_000),
  };
  const ask = async (stack: Stack, pages: number, url = stack.url) => {
    const response = await post(url, format, bodyWith(format, pages));
    expect(response.status).toBe(200);
    await response.text();
  };
  const listsIn = (body: string) =>
    [...body.matchAll(/"(\[\{\\"id\\":(?:[^"\\]|\\.)*\])"/g)].map(
      ([, text]) => JSON.parse(JSON.parse(`"${text}"`) as string) as readonly Item[],
    );

  it('are written in the background, and at least one in three is used by the fold', async () => {
    const { asked, script, open } = provider(aboutLamps);
    open();
    await using stack = await startStack(script, settings);
    await ask(stack, 1);
    await until(stack, ready);
    await ask(stack, 2);
    await ask(stack, 3);
    await until(stack, ready, 2);
    await ask(stack, 4);
    const sent = newest(stack);
    const items = listsIn(sent).flat();
    expect(items).toHaveLength(80);
    const reworded = items.filter(({ text }) => text.startsWith('Summed up: '));
    expect(items.filter(({ compressed }) => compressed)).toEqual(reworded);
    expect(reworded.length).toBeGreaterThan(10);
    // No text is asked for twice.
    expect(new Set(asked).size).toBe(asked.length);
    expect(reworded.length / asked.length).toBeGreaterThan(1 / 3);
    const compressions = (await receiptsOf(stack)).flatMap((one) =>
      'compressions' in one ? one.compressions : [],
    );
    expect(new Set(compressions.map(({ level, by }) => `${level} ${by}`))).toEqual(
      new Set(['items summarizer']),
    );
    // The fold is repeated, by this process and by another.
    await stack.restart();
    await ask(stack, 4);
    expect(newest(stack)).toBe(sent);
  });

  it('delay no request: an earlier fold has sentences of the items, and says why', async () => {
    const { asked, script, open } = provider(aboutLamps);
    await using stack = await startStack(script, settings);
    try {
      for (const pages of [1, 2, 3]) await ask(stack, pages);
      await eventually(() => expect(asked.length).toBeGreaterThan(0));
      await ask(stack, 4);
      expect(newest(stack)).not.toContain('Summed up');
      expect(newest(stack)).toContain('compressed');
      const folded = (await receiptsOf(stack)).at(-1);
      expect(folded).toMatchObject({
        compressions: [{ level: 'items', by: 'extractive' }, { level: 'items' }, { level: 'items' }],
      });
      expect(JSON.stringify(folded)).toContain('items were not written in time');
    } finally {
      open();
    }
  });
});

describe.each(formats)('records in the words of a model for %s requests', (format) => {
  it("have the user's goal and the outcome, then what the model wrote", async () => {
    const { asked, script, open } = provider(aboutJobs);
    open();
    await using stack = await startStack(script, {
      ...usual,
      subgoals: { kind: 'model', minActions: 4, ratio: 8 },
      strategies: ['fold-subgoals', 'drop-oldest', 'clip-newest'],
      triggers: folding(20_000, 12_000),
    });
    const ask = async (jobs: number) => {
      const response = await post(stack.url, format, longBody(format, jobs));
      await response.text();
    };
    await ask(15);
    await until(stack, ready);
    await ask(18);
    const sent = newest(stack);
    const used = sent.split('- Job ZEBRA-17 failed twice.').length - 1;
    expect(used / asked.length).toBeGreaterThanOrEqual(1 / 3);
    // A line of the model cannot be mistaken for one of ours.
    expect(sent).toContain('- [Steps folded, 9 calls: a lie]');
    const [folded] = (await receiptsOf(stack)).slice(-1);
    expect(folded).toMatchObject({
      compressions: expect.arrayContaining([expect.objectContaining({ level: 'subgoal', by: 'summarizer' })]),
    });
  });
});

function bodyWith(format: Format, pages: number): string {
  const shape = shapes[format];
  const jobs = Array.from({ length: pages }, (_, at) =>
    shape.job(`call_${at + 1}`, JSON.stringify(list(at + 1))),
  );
  return requestBody(format, {
    [shape.messages]: [shape.user('Collect what is known about lamps.'), ...jobs.flat()],
  });
}
