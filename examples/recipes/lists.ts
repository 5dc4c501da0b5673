/**
 * Shortens lists just before the model call: three lists of 110,000 tokens come one after the other into a window of 262,144. Above 85 % of it,
 * items are shortened, least relevant first, until 80 % is left: to sentences of their own, then in a second run to words of a model. Run it from a checkout: `npm run example examples/recipes/lists.ts`.
 */
import type { Reply, ScriptRequest } from '../../test/support/index.ts';
import type { Message } from './play.ts';
import { called, prose, recalls, says, startRecipe } from './play.ts';

const window = 262_144;
type Item = {
  readonly id: number;
  readonly title: string;
  readonly body: string;
  readonly compressed?: true;
};

/** A list of about 110,000 tokens. The last sentence of an item is one that nothing else says. */
function list(page: number): readonly Item[] {
  return Array.from({ length: 100 }, (_, at) => {
    const id = page * 100 + at;
    return {
      id,
      title: `Article ${id}`,
      body: `${prose(id, 990)} The lamp of article ${id} burned for ${id * 7} days.`,
    };
  });
}

/** The articles that the scripted model needs; it sees their titles, but no longer the end of their texts. */
const needed = [170, 255, 298];

/** Texts that the model wrote ahead of the fold. */
let written = 0;

/** The scripted model: it shortens an article in words of its own, and recalls the end of an article that it needs and no longer sees. */
const model = ({ body }: ScriptRequest): Reply => {
  const prompts = body['messages'] as readonly Message[];
  const all = prompts.map(({ content }) => content ?? '').join('\n');
  if (all.includes('You shorten a text')) {
    written++;
    return says(`Words of a model about lamps, towers and storms: ${prose(all.length, 100)}`);
  }
  if (!prompts.some(({ content }) => content?.startsWith('How long'))) return says('Go on.');
  const days = needed.map((id) => new RegExp(`lamp of article ${id} burned for (\\d+) days`).exec(all)?.[1]);
  const missing = needed[days.indexOf(undefined)];
  if (missing === undefined) return says(days.join(', '));
  // The first shortened item of each list names the id of the whole list.
  const holder = prompts.find(({ content }) => content?.includes(`"id":${missing},`))?.content ?? '';
  const id = /\{\\"id\\":\\"(mem_[\w-]+)/.exec(holder)?.[1];
  return recalls({ id, query: `lamp of article ${missing}` });
};

for (const kind of ['extractive', 'model']) {
  console.log(`Items of kind ${kind}:`);
  await using gateway = await startRecipe('lists.json', model, { 'items.kind': kind });
  const messages: Message[] = [{ role: 'user', content: 'Collect what is known about lamps.' }];
  for (const page of [1, 2, 3]) {
    messages.push(...called(`call_${page}`, 'search', { page }, JSON.stringify(list(page))));
    const ahead = written;
    const { sent, receipt } = await gateway.ask(messages);
    if (kind === 'model' && page === 2) await gateway.logged('texts of items and records are ready');
    const lists = sent.flatMap(({ role, content }) =>
      role === 'tool' ? [JSON.parse(content!) as Item[]] : [],
    );
    const shares = lists.map(
      (items) => `${items.filter(({ compressed }) => !compressed).length} of ${items.length}`,
    );
    console.log(
      `List ${page}: ${percent(receipt.tokensBefore!)} of the window before, ${percent(receipt.tokensAfter!)} after. Whole items: ${shares.join(', ')}.`,
    );
    const short = lists.flat().filter(({ compressed }) => compressed);
    const used = short.filter(({ body }) => body.startsWith('Words of a model')).length;
    if (short.length > 0)
      console.log(
        `  items shortened: ${short.length}, with words of the model: ${used}; texts that it wrote: ${ahead}`,
      );
  }
  messages.push(
    { role: 'assistant', content: 'Done.' },
    { role: 'user', content: `How long did the lamps of ${needed.join(', ')} burn?` },
  );
  const { answer, receipt } = await gateway.ask(messages);
  console.log(
    `Recalls: ${receipt.recalls.length}, of ${receipt.recalls.map(({ tokens }) => tokens).join(', ')} tokens. The model answers: ${answer} days.`,
  );
  console.log(`Expected: ${needed.map((id) => id * 7).join(', ')} days.`);
}

function percent(tokens: number): string {
  return `${((tokens / window) * 100).toFixed(1)} %`;
}
