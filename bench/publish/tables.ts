/** Says what each marked table of README and docs shows: the result that it is made from, and its rows. */
import type { Estimate, Quantiles } from '../first-token/statistics.ts';
import type { Origin } from '../results.ts';
import type { StepTimes } from '../steps.ts';
import { type Cell, columns, markdown, number, percent, type Row, significant } from './markdown.ts';
import {
  blindSentence,
  blindTable,
  breakEvenTable,
  costByPolicy,
  costBySource,
  presetTable,
  type ReplayFigures,
  savingsSentence,
  whatItSaves,
} from './replay-tables.ts';

/** A result file as it was read. */
type Result = Origin & Readonly<Record<string, unknown>>;

export type FigureBlock = {
  /** The name of the result in bench/results/. */
  readonly from: string;
  readonly text: (result: Result) => string;
};

export const blocks: Readonly<Record<string, FigureBlock>> = {
  'in-short': { from: 'replay', text: (result) => savingsSentence(figuresOf(result)) },
  'what-it-saves': { from: 'replay', text: (result) => whatItSaves(figuresOf(result)) },
  'cost-sources': block('replay', (result) => costBySource(figuresOf(result))),
  'cost-policies': block('replay', (result) => costByPolicy(figuresOf(result))),
  summaries: block('summaries', summaries),
  planted: block('planted', planted),
  presets: block('presets', (result) => presetTable(rowsOf(result))),
  blind: { from: 'blind-replay', text: (result) => blindSentence(rowsOf(result)) },
  'blind-replay': block('blind-replay', (result) => blindTable(rowsOf(result))),
  'break-even': { from: 'break-even', text: (result) => breakEvenTable(rowsOf(result)) },
  images: block('images', images),
  gateway: block('gateway', gateway),
  steps: block('gateway', steps),
  peers: block('gateway', peers),
  streams: block('streams', (result) =>
    columns(rowsOf(result), {
      format: 'format',
      target: 'target',
      'µs of CPU per event': 'µs per event',
      'times a raw pipe': 'times a raw pipe',
      'events in time': ({ 'in time': share = 0 }) => percent(Number(share), 0),
    }),
  ),
  scaling: block('scaling', (result) =>
    columns(rowsOf(result).filter(isShownScaling), {
      conversation: 'conversation',
      MB: 'MB',
      messages: 'messages',
      'warm turn, ms of CPU': 'warm turn ms',
      'parse + stringify, ms of CPU': 'parse + stringify ms',
      ratio: 'ratio',
    }),
  ),
  growth: block('scaling', (result) =>
    columns(rowsOf(result, 'growth'), {
      requests: 'requests',
      MB: 'MB',
      'turn, ms of CPU': 'warm turn ms',
      'parse + stringify, ms of CPU': 'parse + stringify ms',
    }),
  ),
  reading: block('reading', (result) =>
    columns(rowsOf(result), {
      body: 'body',
      MB: 'MB',
      messages: 'messages',
      'known body, ms': 'warm ms',
      'new body, ms': 'cold ms',
      '`JSON.parse`, ms': 'parse ms',
      'known / parse': 'warm / parse',
      'known / (parse + stringify)': 'warm / (parse + stringify)',
    }),
  ),
  'first-token': block('first-token', firstToken),
  recall: block('first-token', recallInStream),
  memory: block('memory', (result) =>
    columns(rowsOf(result), {
      '`limits.cacheMb`': 'cacheMb',
      'process, highest MB': 'highest RSS, MB',
      'new conversation, ms of CPU': 'first request, CPU ms',
      'next turn of a cached one, ms of CPU': 'next turn, served last, CPU ms',
      'next turn of the oldest, ms of CPU': 'next turn, served first, CPU ms',
    }),
  ),
  stores: block('stores', (result) =>
    columns(rowsOf(result, 'sequential'), {
      store: 'store',
      call: 'call',
      'p50, µs': 'p50',
      'p95, µs': 'p95',
      'p99, µs': 'p99',
      'CPU of the gateway, µs': 'CPU of this process',
    }),
  ),
  hostile: block('hostile', hostile),
  neighbors: block('neighbors', (result) =>
    columns(rowsOf(result), {
      load: 'load',
      'longest stall, ms': 'stall ms',
      '`/healthz` p50, ms': '/healthz p50',
      '`/healthz` p99, ms': '/healthz p99',
      'small requests p50, ms': 'small requests p50',
      'small requests p99, ms': 'small requests p99',
    }),
  ),
  'cold-start': block('cold-start', (result) =>
    columns(rowsOf(result), {
      format: 'format',
      starts: 'starts',
      'errors at the client': 'client errors',
      'sent too long': 'sent too long',
      'listens after, median ms': 'listens after ms (median)',
      'request, median ms': 'request ms (median)',
      'request, longest ms': 'request ms (max)',
    }),
  ),
  tokens: block('tokens', tokens),
};

// Blocks

/** Puts the origin of the result above its table. */
export function block(from: string, table: (result: Result) => string): FigureBlock {
  return { from, text: (result) => `${originLine(result)}\n\n${table(result)}` };
}

function originLine({ command, date, commit, node, machine, load }: Origin): string {
  const busy = load !== undefined ? `, load average ${load.toFixed(0)}` : '';
  return `\`${command}\`, ${date}, commit ${commit}, Node ${node}, ${machine}${busy}`;
}

function summaries(result: Result): string {
  return columns(rowsOf(result, 'futureValues'), {
    'values that the next 40 calls used': 'values',
    values: 'used',
    'in the summary of a model': ({ 'recorded %': share = 0 }) => `${share} %`,
    'in an extract': ({ 'extractive %': share = 0 }) => `${share} %`,
    'in an extract, in one piece': ({ 'in one piece %': share = 0 }) => `${share} %`,
    'of the missing ones, recalled': (row) => `${row['found by recall'] ?? 0} of ${row['recalls'] ?? 0}`,
  });
}

function planted(result: Result): string {
  return columns(rowsOf(result), {
    'folded by': 'way',
    planted: 'planted',
    ratio: 'ratio',
    kept: ({ 'kept %': kept = 0 }) => `${kept} %`,
    ...shareOf('held out'),
    ...shareOf('English'),
    ...shareOf('German'),
    ...shareOf('Spanish'),
    ...shareOf('Japanese'),
    ...shareOf('Chinese'),
  });
}

function shareOf(name: string) {
  return { [name]: ({ [`${name} %`]: kept = 0 }: Row) => `${kept} %` };
}

function images(result: Result): string {
  return columns(rowsOf(result), {
    format: 'format',
    'what is sent': 'context',
    cost: ({ cost = 0 }) => Number(cost).toFixed(2),
    USD: ({ usd = 0 }) => Number(usd).toFixed(2),
    'most tokens': 'peak tokens',
    'largest body, MB': ({ 'peak MB': megabytes = 0 }) => Number(megabytes).toFixed(1),
    'prefix stable': ({ stable = 0 }) => percent(Number(stable), 0),
    'old screenshots seen again': 'seen again',
  });
}

type GatewayRow = {
  readonly target: string;
  readonly kB: number;
  readonly connections: number;
  readonly reqPerSec: number;
  readonly p50Ms: number;
  readonly cpuMs: number;
  readonly rssMb: number;
};

const ownTarget = /^(?:raw pipe|HTTP layer|gateway(?! with| that))/;

function gateway(result: Result): string {
  const all = result['rows'] as readonly GatewayRow[];
  const targets = new Set(all.map(({ target }) => target).filter((target) => ownTarget.test(target)));
  const rows = [...targets].flatMap((target) =>
    sizesOf(all).map((kB) => {
      const { find, added } = figuresAt(all, kB);
      const busy = find(target, 16);
      return [
        target,
        kB,
        significant(busy.cpuMs),
        significant(busy.cpuMs / find(target.replace(/^.*?(, growing)?$/, 'raw pipe$1'), 16).cpuMs),
        significant(busy.cpuMs / find('HTTP layer + parse + stringify', 16).cpuMs),
        significant(added(target, 1)),
        number(Math.round(busy.reqPerSec)),
        number(Math.round(busy.rssMb)),
      ];
    }),
  );
  return markdown(
    [
      'target',
      'body, kB',
      'CPU ms per request',
      'CPU / raw pipe',
      'CPU / parse + stringify',
      'added p50, ms',
      'requests a second',
      'process, MB',
    ],
    rows,
  );
}

/** Divides the CPU time of one request by step. */
function steps(result: Result): string {
  const [times = {}] = Object.values(result['steps'] as Readonly<Record<string, StepTimes>>);
  return markdown(
    ['step', 'CPU ms', 'share'],
    Object.entries(times).map(([step, { ms, percent: share }]) => [
      step,
      significant(ms),
      `${Math.round(share)} %`,
    ]),
  );
}

/** Compares the gateway with other gateways of the same run. */
function peers(result: Result): string {
  const all = result['rows'] as readonly GatewayRow[];
  const others = [...new Set(all.map(({ target }) => target))].filter(
    (target) => !/^(?:direct|raw pipe|HTTP layer|gateway)/.test(target),
  );
  if (others.length === 0) return 'No other gateway was installed in this run.';
  const rows = ['gateway', ...others].flatMap((target) =>
    sizesOf(all).map((kB) => {
      const { find, added } = figuresAt(all, kB);
      const busy = find(target, 16);
      return [
        target === 'gateway' ? 'Leporello' : target,
        kB,
        number(Math.round(busy.reqPerSec)),
        significant(find('gateway', 16).reqPerSec / busy.reqPerSec),
        significant(added(target, 1)),
        significant(added(target, 1) / added('gateway', 1)),
        significant(busy.cpuMs),
        number(Math.round(busy.rssMb)),
      ];
    }),
  );
  const versions = (result['peers'] as readonly string[]).join(', ');
  const table = markdown(
    [
      'gateway',
      'body, kB',
      'requests a second',
      'Leporello serves, times',
      'added p50, ms',
      "times Leporello's",
      'CPU ms per request',
      'process, MB',
    ],
    rows,
  );
  return `${versions}, each with its own defaults and one process.\n\n${table}`;
}

const sizesOf = (rows: readonly GatewayRow[]) => [...new Set(rows.map(({ kB }) => kB))];

function figuresAt(rows: readonly GatewayRow[], kB: number) {
  const find = (target: string, connections: number): GatewayRow =>
    rows.find((one) => one.target === target && one.kB === kB && one.connections === connections)!;
  const added = (target: string, connections: number): number =>
    find(target, connections).p50Ms - find('direct', connections).p50Ms;
  return { find, added };
}

function isShownScaling({ conversation = '' }: Row): boolean {
  return /^hard|100k|1,000k/.test(String(conversation));
}

type FirstTokenCell = {
  readonly format: string;
  readonly request: string;
  readonly figures: readonly {
    readonly token: string;
    readonly direct: Quantiles;
    readonly noise: { readonly p50: Estimate };
    readonly pipe: { readonly p50: Estimate };
    readonly gateway: { readonly p50: Estimate; readonly p95: Estimate };
  }[];
};

function firstToken(result: Result): string {
  const rows = (result['cells'] as readonly FirstTokenCell[]).flatMap(({ format, request, figures }) =>
    figures
      .filter(({ token }) => token === 'first token')
      .map(({ direct, noise, pipe, gateway: own }) => [
        format,
        request,
        direct.p50.toFixed(1),
        noise.p50.value.toFixed(1),
        pipe.p50.value.toFixed(1),
        `${own.p50.value.toFixed(1)} [${own.p50.low.toFixed(1)}, ${own.p50.high.toFixed(1)}]`,
        own.p95.value.toFixed(1),
      ]),
  );
  const head = ['format', 'request', 'direct p50', 'direct again', 'raw pipe adds', 'Leporello adds', 'p95'];
  return markdown(head, rows);
}

function recallInStream(result: Result): string {
  type RecallCell = { readonly format: string; readonly before: { readonly answer: number } };
  const cells = result['recalls'] as readonly RecallCell[];
  const of = (result['rounds'] as number) * cells.length;
  const early = cells.reduce((sum, { before }) => sum + before.answer, 0);
  return `The text before a recall reached the client before the recall was answered in ${early} of ${of} rounds.`;
}

/** Shows the largest size of each body that was measured in the library, and all that were measured in the gateway. */
function hostile(result: Result): string {
  return columns(rowsOf(result), {
    body: ({ body = '', format = '' }) => `${body} (${format})`,
    MB: ({ MB }) => last(MB),
    'CPU, ms': ({ 'CPU ms': ms }) => last(ms),
    'longest stall, ms': ({ 'stall ms': ms }) => last(ms),
    'grows with size to the power of': ({ exponent = '' }) => exponent,
    outcome: 'outcome',
    'gateway, MB': 'gateway MB',
    'longest stall there, ms': 'gateway stall ms',
    'CPU there, ms per MB': 'gateway CPU ms per MB',
  });
}

function tokens(result: Result): string {
  const tables = result['tables'] as Readonly<Record<string, readonly Row[]>>;
  const table = (start: string): readonly Row[] =>
    Object.entries(tables).find(([title]) => title.startsWith(start))?.[1] ?? [];
  const speed = columns(table('speed'), {
    'text, MB/s': 'content',
    Leporello: 'Leporello',
    'gpt-tokenizer, new text': 'gpt-tokenizer, new text',
    'gpt-tokenizer, known text': 'gpt-tokenizer, known text',
    tiktoken: 'tiktoken',
    'same count': 'same count',
  });
  const calibrated = table('calibration against recorded usage, by model').find(
    ({ model, requests }) => model === 'all' && requests === 'all',
  );
  const growth = table('growth of prompts of Claude').filter(({ estimator }) =>
    ['characters / 4', 'Leporello: o200k x 1.18, 22 per wrapping'].includes(String(estimator)),
  );
  const errors = [
    ...(calibrated
      ? [
          [
            'the next prompt, predicted from reported usage',
            number(Number(calibrated['n'])),
            `${calibrated['after, median %']} %`,
            `${calibrated['after, p95 %']} %`,
          ],
        ]
      : []),
    ...growth.map((row) => [
      `growth of Claude 4.5 and 4.6 prompts, ${row['estimator']}`,
      number(Number(row['n'])),
      `${row['median %']} %`,
      `${row['p95 %']} %`,
    ]),
  ];
  return `${speed}\n\n${markdown(['against recorded usage', 'requests', 'median error', 'p95'], errors)}`;
}

function figuresOf(result: Result): ReplayFigures {
  return result as unknown as ReplayFigures;
}

export function rowsOf(result: Result, key = 'rows'): readonly Row[] {
  return result[key] as readonly Row[];
}

/** Returns the last of several figures that was measured. */
function last(list: Cell = ''): Cell {
  const measured = String(list).replaceAll(/(?:^| )-(?= |$)/g, '');
  return measured.split(' ').at(-1) ?? '';
}
