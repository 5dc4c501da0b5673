/** The two loops that each client goes through: one that fits the window, and one that does not, so that the model asks memory. Pure. */
import type { Receipt } from '../../src/receipts/receipt.ts';
import { type Step, subjectOf } from './scripted-model.ts';

export type Loop = {
  readonly name: 'plain' | 'folded' | 'tool search';
  /** Each is a run of the client; the gateway is started anew between them. */
  readonly sessions: readonly Session[];
  readonly tokensPerFile: number;
  /** Longest prompt that the gateway is told the model takes. */
  readonly window: number;
  /** Fraction of the window that a fold is to leave. */
  readonly foldTo: number;
};

export type Session = { readonly task: string; readonly steps: readonly Step[] };

const task = 'Read the log files and tell me their secrets.';

export const plainLoop: Loop = {
  name: 'plain',
  sessions: [
    {
      task,
      steps: [
        { read: ['part-01.log'] },
        { read: ['part-02.log', 'part-03.log'] },
        { answer: ['part-01.log', 'part-02.log', 'part-03.log'] },
      ],
    },
  ],
  tokensPerFile: 300,
  window: 1_000_000,
  foldTo: 0.5,
};

/** Fraction of the window above which the gateway folds, as is its default. */
const folding = { trigger: 0.85 };

const old = Array.from({ length: 10 }, (_, at) => `part-${String(at + 1).padStart(2, '0')}.log`);

const firstSession: Session = {
  task,
  steps: [
    ...old.slice(0, 3).map((name) => ({ read: [name] })),
    { read: old.slice(3, 5) },
    ...old.slice(5).map((name) => ({ read: [name] })),
    // Alone, and what the model does next comes in the same reply to the client.
    { recall: old[0]! },
    { read: ['part-11.log', 'part-12.log'] },
    // Beside calls of the client's.
    { recall: old[1]!, read: ['part-13.log', 'part-14.log'] },
    { answer: [old[0]!, old[1]!, 'part-11.log', 'part-12.log', 'part-13.log', 'part-14.log'] },
  ],
};

/** Goes on where the first ended: what was folded and recalled there is found again, by what the client wrote down of it. */
const secondSession: Session = {
  task: 'Read the other files too, and look at the third one again.',
  steps: [
    { read: ['part-15.log'] },
    { recall: old[2]! },
    { read: ['part-16.log'] },
    { answer: [old[0]!, old[2]!, 'part-15.log', 'part-16.log'] },
  ],
};

/** What a loop that fits says of a client, in tokens as the gateway counts them. */
export type Sizes = {
  /** The first request: all of it is the client's own and cannot be folded. */
  readonly prompt: number;
  /** What a file of so many tokens comes to in this client, line numbers and wrapping included. */
  readonly file: { readonly of: number; readonly takes: number };
};

/** From the receipts of the plain loop. Side calls are smaller than any request with tools. */
export function sizesOf(receipts: readonly Receipt[]): Sizes {
  const counts = receipts.map(({ tokensBefore }) => tokensBefore ?? 0).toSorted((a, b) => b - a);
  const [, second = 0, first = 0] = counts;
  return { prompt: first, file: { of: plainLoop.tokensPerFile, takes: second - first } };
}

/** Six files beside the client's prompt are too much for the window, and three are left of them after a fold. */
export function foldedLoop({ prompt, file }: Sizes, canResume: boolean): Loop {
  const tokensPerFile = Math.max(1_500, Math.round(prompt / 8));
  const takes = (tokensPerFile / file.of) * file.takes;
  const window = (prompt + 6 * takes) / folding.trigger;
  return {
    name: 'folded',
    sessions: canResume ? [firstSession, secondSession] : [firstSession],
    tokensPerFile,
    window: Math.round(window),
    foldTo: (prompt + 3 * takes) / window,
  };
}

const [shelf7, shelf31] = ['mcp__warehouse__lookup_shelf_07', 'mcp__warehouse__lookup_shelf_31'];
const lookUp = (tool: string, article: string) => ({ call: { tool, article } });
const reads = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => ({
    read: [`part-${String(from + at).padStart(2, '0')}.log`],
  }));

/** Loads one deferred tool before anything is folded and one after it, and calls both until the end and after a new start. */
const toolSearchSteps: readonly [readonly Step[], readonly Step[]] = [
  [
    { load: [shelf7] },
    lookUp(shelf7, 'A-1'),
    ...reads(1, 10),
    lookUp(shelf7, 'A-2'),
    { load: [shelf31] },
    lookUp(shelf31, 'B-1'),
    ...reads(11, 20),
    lookUp(shelf7, 'A-3'),
    ...reads(21, 24),
    lookUp(shelf31, 'B-2'),
  ],
  [...reads(25, 26), lookUp(shelf7, 'A-4'), ...reads(27, 30), lookUp(shelf31, 'B-3')],
];

/** A window that four files fill, of which a fold leaves a quarter of one: whole steps have to go. */
export function toolSearchLoop({ prompt, file }: Sizes): Loop {
  const tokensPerFile = Math.max(1_500, Math.round(prompt / 8));
  const takes = (tokensPerFile / file.of) * file.takes;
  const window = (prompt + 4 * takes) / folding.trigger;
  const [first, second] = toolSearchSteps.map((steps): readonly Step[] => [
    ...steps,
    { answer: steps.flatMap(({ call }) => (call ? [subjectOf(call)] : [])) },
  ]);
  return {
    name: 'tool search',
    sessions: [
      { task: 'Read the log files and look up the codes of the articles that they name.', steps: first! },
      { task: 'Read the other files, and look up their articles, too.', steps: second! },
    ],
    tokensPerFile,
    window: Math.round(window),
    foldTo: (prompt + takes / 4) / window,
  };
}

export function stepsOf({ sessions }: Loop): readonly Step[] {
  return sessions.flatMap(({ steps }) => steps);
}
