/**
 * Plants findings, decisions, demands and open ends in 200 generated conversations, folds each to a tenth, and counts what is still there. Run
 * `npm run bench bench/planted.ts`; it prints a table and writes bench/results/planted.json. `-- --development` and `-- --held-out` take one half of
 * the templates, `-- --missing KIND` lists what was lost.
 *
 * The conversations are research, coding, support and data work in English, German, Spanish, Japanese and Chinese, of some 10,000 tokens each. An
 * extract is a summary of the whole conversation. Records are of sub-goals: found by the gateway, or given to a trajectory.
 *
 * Traps: (1) We wrote the templates. Half of them were not looked at while the extractor was tuned; the table shows both halves. (2) Noise is random, and
 * less misleading than real noise. (3) A fact counts as kept if its thing and its value stand close together in one line, whatever stands between
 * them; demands count word for word. (4) A tenth is enough room for all planted sentences; what is measured is the choice. (5) No model was
 * asked: the stand-in for one drops most sentences, so its row shows what the frame around a model's text keeps. (6) Things are unique per
 * fact, which helps a reader less than it helps this count.
 */
import { loadExactCounter } from '../src/tokens/load-counter.ts';
import { type FactKind, type PlantedConversation, plantedConversations } from './planted/generate.ts';
import {
  type Count,
  extracted,
  type Folded,
  gatewayRecords,
  has,
  modelWritten,
  trajectoryRecords,
} from './planted/measure.ts';
import { writeResult } from './results.ts';
import { round } from './tokens/arithmetic.ts';

const conversationCount = 200;

type Way = {
  readonly name: string;
  /** The kinds of facts that this way is to keep. */
  readonly of: readonly FactKind[];
  readonly fold: (planted: PlantedConversation, count: Count) => Folded | Promise<Folded>;
};

const inHistory: readonly FactKind[] = [
  'finding',
  'result finding',
  'decision',
  'demand',
  'open end',
  'outcome',
];
const ways: readonly Way[] = [
  { name: 'extract', of: inHistory, fold: extracted },
  { name: 'by a stand-in for a model', of: inHistory, fold: modelWritten },
  { name: 'records of the gateway', of: ['outcome'], fold: gatewayRecords },
  {
    name: 'records of a trajectory',
    of: ['outcome'],
    fold: (one, count) => trajectoryRecords(one, count, false),
  },
  {
    name: 'the same, outcomes told',
    of: ['outcome'],
    fold: (one, count) => trajectoryRecords(one, count, true),
  },
];

await main();

async function main(): Promise<void> {
  const options = process.argv.slice(2);
  const counter = await loadExactCounter('o200k_base');
  const count = (text: string) => counter.count(text);
  const only = options.includes('--development')
    ? 'development'
    : options.includes('--held-out')
      ? 'held out'
      : '';
  const all = plantedConversations(conversationCount).filter(({ half }) => only === '' || half === only);
  const shown = options[options.indexOf('--missing') + 1];
  const rows = [];
  for (const way of ways) {
    const folded: { readonly planted: PlantedConversation; readonly made: Folded }[] = [];
    for (const planted of all) folded.push({ planted, made: await way.fold(planted, count) });
    const share = (kinds: readonly FactKind[], which: (one: PlantedConversation) => boolean) => {
      const facts = folded
        .filter(({ planted }) => which(planted))
        .flatMap(({ planted, made }) =>
          planted.facts
            .filter(({ kind }) => kinds.includes(kind))
            .map((fact) => ({ fact, is: has(made.text, fact) })),
        );
      if (options.includes('--missing'))
        for (const { fact, is } of facts)
          if (!is && fact.kind === shown) console.log(way.name, '|', fact.text);
      return round((100 * facts.filter(({ is }) => is).length) / Math.max(1, facts.length), 1);
    };
    const before = folded.reduce((sum, { made }) => sum + made.before, 0);
    const after = folded.reduce((sum, { made }) => sum + made.after, 0);
    for (const kind of way.of) {
      const languages = [...new Set(all.map(({ language }) => language))];
      rows.push({
        way: way.name,
        planted: kind,
        ratio: round(before / after, 1),
        'kept %': share([kind], () => true),
        'held out %': options.includes('--missing') ? 0 : share([kind], ({ half }) => half === 'held out'),
        ...(options.includes('--missing')
          ? {}
          : Object.fromEntries(
              languages.map((name) => [`${name} %`, share([kind], ({ language }) => language === name)]),
            )),
      });
    }
  }
  console.table(rows);
  writeResult('planted', { conversations: all.length, rows });
}
