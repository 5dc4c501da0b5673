/** Writes the table of docs/defects.md about Python packages, from what bench/defects.ts counted. */
import { columns } from './markdown.ts';
import { block, type FigureBlock, rowsOf } from './tables.ts';

export const defectBlocks: Readonly<Record<string, FigureBlock>> = {
  'python-defects': block('defects', (result) =>
    columns(rowsOf(result, 'rows'), {
      Package: (row) => `${String(row['package'])} ${String(row['version'])}`,
      Defect: 'defect',
      'Measured there': 'there',
      Leporello: 'here',
    }),
  ),
};
