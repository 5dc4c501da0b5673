/** Writes the tables of docs/against.md, from what bench/against.ts found and from the break-even points. */
import { type Cell, columns, percent, type Row } from './markdown.ts';
import { type ReplayFigures, titles } from './replay-tables.ts';
import { block, type FigureBlock, rowsOf } from './tables.ts';

const source = (row: Row): Cell => titles[String(row['source'])] ?? String(row['source']);
const id = (row: Row): Cell => `\`${row['id']}\``;

/** A cost of more than 1 is a loss, and set in bold. */
const cost =
  (key: string) =>
  (row: Row): Cell => {
    const text = Number(row[key] ?? 0).toFixed(3);
    return Number(row[key] ?? 0) > 1 ? `**${text}**` : text;
  };

const noneDearer =
  'None of the folded conversations that were played cost more than its full context, at any of these prices.';

const costColumns = {
  requests: 'requests',
  folds: 'folds',
  recalls: 'recalls',
  cost: cost('cost'),
  "at OpenAI's prices": cost('cost, openai'),
  'without a cache': cost('cost, no cache'),
  'asked blind': cost('blind cost'),
} as const;

const editColumns = {
  edits: 'edits',
  'text in the full context': 'quotable',
  'not in the sent one': 'lost',
  'given back by the failed edit': 'repaired',
} as const;

export const againstBlocks: Readonly<Record<string, FigureBlock>> = {
  'against-sources': block('against', (result) =>
    columns(rowsOf(result, 'sources'), {
      '': source,
      played: 'conversations',
      folded: 'folded',
      'folded and dearer': 'dearer',
      "dearer at OpenAI's prices": 'dearer, openai',
      'dearer without a cache': 'dearer, no cache',
      'dearer if the model asks blind': 'dearer, asked blind',
      'not folded and dearer': 'dearer without a fold',
    }),
  ),
  'against-dearer': block('against', (result) => {
    const rows = rowsOf(result, 'dearer');
    return rows.length === 0 ? noneDearer : columns(rows, { conversation: id, '': source, ...costColumns });
  }),
  'against-recalls': block('against', (result) =>
    columns(rowsOf(result, 'sources'), {
      '': source,
      'values that calls used': 'values',
      'folded away by then': 'hidden',
      'recalls by a model that knows them': 'recalls',
      missed: 'lost',
      'recalls by one that asks blind': 'blind calls',
      'values it had to get with its tools again': 'run again',
      'share of the folded ones': ({ hidden = 0, 'run again': again = 0 }) =>
        Number(again) === 0 ? '0 %' : percent(Number(again) / Math.max(Number(hidden), Number(again)), 0),
    }),
  ),
  'against-missed': block('against', (result) =>
    columns(rowsOf(result, 'missed'), {
      conversation: id,
      '': source,
      requests: 'requests',
      'folded away': 'hidden',
      'missed by a model that knows': 'lost',
      'blind recalls': 'blind calls',
      'got with its tools again': 'run again',
      'cost, asked blind': cost('blind cost'),
    }),
  ),
  'against-edits': block('against', (result) =>
    columns(rowsOf(result, 'edits'), {
      sessions: 'sessions',
      ...editColumns,
      neither: ({ lost = 0, repaired = 0 }) => Number(lost) - Number(repaired),
    }),
  ),
  'against-unquotable': block('against', (result) =>
    columns(rowsOf(result, 'unquotable'), {
      conversation: id,
      ...editColumns,
    }),
  ),
  'against-whole': block('replay', (result) =>
    columns(
      (result as unknown as ReplayFigures).sources.flatMap(({ source: name, conversations, policies }) => {
        const own = policies.find(({ policy }) => policy === 'Leporello');
        return own && name in titles ? [{ source: name, conversations, ...own.worst }] : [];
      }),
      {
        '': source,
        conversations: 'conversations',
        'worst cost': cost('anthropic'),
        "at OpenAI's prices": cost('openai'),
        'without a cache': cost('uncached'),
      },
    ),
  ),
  'against-worst': block('against', (result) =>
    columns(rowsOf(result, 'worst'), {
      '': source,
      conversation: id,
      ...costColumns,
    }),
  ),
};
