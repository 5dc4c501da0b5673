/**
 * Draws docs/context.svg, the picture of the README: the tokens of each request of one agent run, as the client sends it and as the gateway
 * sends it. Run `npm run bench bench/context-picture.ts`; it takes a few seconds. The gateway and its store are real and have default
 * settings, except the window. The agent and the model are scripted: the agent reads a file or a log in each turn, and the model asks three
 * times for a result that was folded.
 *
 * Trap: the run shows how folding works, not what it saves. Sizes of results and times of recalls are invented.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { assembleGateway } from '../src/gateway/app.ts';
import { serveNode } from '../src/gateway/http/node-server.ts';
import { undiciUpstream } from '../src/gateway/http/undici-upstream.ts';
import type { Receipt } from '../src/receipts/receipt.ts';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { startFakeProvider } from '../test/support/fake-provider/fake-provider.ts';
import type { Reply, ScriptRequest } from '../test/support/fake-provider/script.ts';

const { values } = parseArgs({ options: { out: { type: 'string', default: 'docs/context.svg' } } });

const turns = 60;
const windowTokens = 64_000;
const recallsAtTurns: readonly number[] = [33, 44, 55];

type TurnSizes = { readonly client: number; readonly sent: number; readonly recalled: boolean };

async function play(): Promise<readonly TurnSizes[]> {
  let turn = 0;
  let recalled = false;
  const provider = await startFakeProvider({ script: (request) => reply(request) });
  const upstream = undiciUpstream();
  const handler = assembleGateway(
    { urls: { openai: provider.url }, models: { '*': { windowTokens } }, prepareDeadlineMs: 60_000 },
    {
      store: inMemoryStore(),
      secret: new Uint8Array(32).fill(1),
      upstream,
      log: { info: () => undefined, warn: () => undefined },
    },
  );
  const gateway = await serveNode(handler, { port: 0, host: '127.0.0.1' });
  const url = `http://127.0.0.1:${gateway.port}`;

  function reply({ body }: ScriptRequest): Reply {
    const stub = /read_memory with \{\\"id\\":\\"(mem_[0-9a-z]+)/.exec(JSON.stringify(body))?.[1];
    if (recallsAtTurns.includes(turn) && !recalled && stub !== undefined) {
      recalled = true;
      return { type: 'turn', parts: [{ type: 'tool-call', name: 'read_memory', arguments: { id: stub } }] };
    }
    return {
      type: 'turn',
      parts: [{ type: 'tool-call', name: 'read_file', arguments: { path: pathOf(turn) } }],
    };
  }

  const messages: object[] = [
    { role: 'user', content: 'Find out why the nightly export loses invoices, and fix it.' },
  ];
  const sizes: TurnSizes[] = [];
  for (turn = 1; turn <= turns; turn++) {
    recalled = false;
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer dummy' },
      body: JSON.stringify({ model: 'gpt-4o', messages, tools }),
    });
    const id = response.headers.get('x-leporello-receipt') ?? '';
    const { choices } = (await response.json()) as {
      choices: [{ message: { tool_calls: [{ id: string }] } }];
    };
    const receipt = await receiptOf(url, id);
    sizes.push({ client: receipt.tokensBefore ?? 0, sent: receipt.tokensAfter ?? 0, recalled });
    const { message } = choices[0];
    messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: resultOf(turn) });
  }
  await gateway.close(0);
  await upstream.close();
  await provider.close();
  return sizes;
}

async function receiptOf(url: string, id: string): Promise<Receipt> {
  const response = await fetch(`${url}/_leporello/receipts/${id}`, {
    headers: { authorization: 'Bearer dummy' },
  });
  return (await response.json()) as Receipt;
}

const tools = [
  {
    type: 'function',
    function: {
      name: 'read_file',
      description: 'Reads a file.',
      parameters: { type: 'object', properties: {} },
    },
  },
];

function pathOf(turn: number): string {
  return `src/export/part-${turn}.ts`;
}

/** Returns the content of a file of 40 to 160 lines, without repeated content. */
function resultOf(turn: number): string {
  const lines = 40 + ((turn * 53) % 121);
  return Array.from(
    { length: lines },
    (_, line) =>
      `  total_${turn}_${line} = amount(row.${(turn * 7919 + line * 104_729) % 9973}) + fee_${(line * turn) % 89};`,
  ).join('\n');
}

const width = 840;
const height = 320;
const left = 56;
const right = 20;
const top = 44;
const bottom = 36;

function text([x, y]: readonly [number, number], words: string, attributes = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${words}</text>`;
}

/** Draws both lines, the folds between them, and a dot for each recall. */
function picture(sizes: readonly TurnSizes[]): string {
  const max = Math.ceil(Math.max(...sizes.map(({ client }) => client)) / 20_000) * 20_000;
  const x = (at: number) => left + (at / (sizes.length - 1)) * (width - left - right);
  const y = (tokens: number) => top + (1 - tokens / max) * (height - top - bottom);
  const line = (pick: (size: TurnSizes) => number) =>
    sizes.map((size, at) => `${x(at).toFixed(1)},${y(pick(size)).toFixed(1)}`).join(' ');
  const ticks = Array.from({ length: max / 20_000 + 1 }, (_, at) => at * 20_000);
  const last = sizes.at(-1)!;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="#444">`,
    '<title>Tokens of each request of one agent run: the client sends more and more, the gateway sends a folded request</title>',
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    text(
      [left, 20],
      'Tokens per request of one scripted run (real gateway, scripted agent and model)',
      'font-weight="600"',
    ),
    ...ticks.flatMap((tick) => [
      `<line x1="${left}" x2="${width - right}" y1="${y(tick).toFixed(1)}" y2="${y(tick).toFixed(1)}" stroke="#eee"/>`,
      text([left - 8, y(tick) + 4], tick === 0 ? '0' : `${tick / 1_000}k`, 'text-anchor="end"'),
    ]),
    `<line x1="${left}" x2="${width - right}" y1="${y(windowTokens).toFixed(1)}" y2="${y(windowTokens).toFixed(1)}" stroke="#c33" stroke-dasharray="6 5"/>`,
    text([left + 6, y(windowTokens) - 6], `window of the model: ${windowTokens / 1_000}k`, 'fill="#c33"'),
    `<polyline points="${line(({ client }) => client)}" fill="none" stroke="#999" stroke-width="2"/>`,
    text([width - right, y(last.client) - 8], 'without Leporello', 'text-anchor="end" fill="#777"'),
    `<polyline points="${line(({ sent }) => sent)}" fill="none" stroke="#0a6ebd" stroke-width="2.5"/>`,
    text([width - right, height - bottom - 14], 'with Leporello: folded', 'text-anchor="end" fill="#0a6ebd"'),
    ...sizes.flatMap(({ sent, recalled }, at) =>
      recalled
        ? [
            `<circle cx="${x(at).toFixed(1)}" cy="${y(sent).toFixed(1)}" r="5" fill="#e58a00"/>`,
            text([x(at), y(sent) - 10], 'recall', 'text-anchor="middle" fill="#b36b00"'),
          ]
        : [],
    ),
    text([(left + width - right) / 2, height - 8], `request 1 to ${sizes.length}`, 'text-anchor="middle"'),
    '</svg>',
    '',
  ].join('\n');
}

const played = await play();
writeFileSync(values.out, picture(played));
const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0);
console.log(
  `${values.out}: ${turns} requests, ${sum(played.map(({ client }) => client)).toLocaleString('en')} tokens as the client sends them, ` +
    `${sum(played.map(({ sent }) => sent)).toLocaleString('en')} as the gateway sends them.`,
);
