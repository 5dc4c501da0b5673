/** The loops that each client plays: one that fits the window, and one that does not, so that the model recalls. Pure. */
import type { Receipt } from '../../src/receipts/receipt.ts';
import { type Step, subjectOf } from './scripted-model.ts';

export type Loop = {
  readonly name: 'plain' | 'folded' | 'tool search';
  /** One run of the client each; the gateway is restarted in between. */
  readonly sessions: readonly Session[];
  readonly tokensPerFile: number;
  /** The model's maximum prompt, in tokens, as the gateway is configured. */
  readonly window: number;
  /** Fraction of the window that a fold leaves. */
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

/** Fraction of the window above which the gateway folds by default. */
const folding = { trigger: 0.85 };

const old = Array.from({ length: 10 }, (_, at) => `part-${String(at + 1).padStart(2, '0')}.log`);

const firstSession: Session = {
  task,
  steps: [
    ...old.slice(0, 3).map((name) => ({ read: [name] })),
    { read: old.slice(3, 5) },
    ...old.slice(5).map((name) => ({ read: [name] })),
    // The recall is alone: the client gets the model's next step in the same reply.
    { recall: old[0]! },
    { read: ['part-11.log', 'part-12.log'] },
    // The recall is together with calls of the client's tools.
    { recall: old[1]!, read: ['part-13.log', 'part-14.log'] },
    { answer: [old[0]!, old[1]!, 'part-11.log', 'part-12.log', 'part-13.log', 'part-14.log'] },
  ],
};

/** Continues the first session; its folds and recalls are found by the client's saved history. */
const secondSession: Session = {
  task: 'Read the other files too, and look at the third one again.',
  steps: [
    { read: ['part-15.log'] },
    { recall: old[2]! },
    { read: ['part-16.log'] },
    { answer: [old[0]!, old[2]!, 'part-15.log', 'part-16.log'] },
  ],
};

/** A client's sizes, measured in the plain loop, in tokens as the gateway counts them. */
export type Sizes = {
  /** Tokens of the first request, which cannot be folded. */
  readonly prompt: number;
  /** Tokens that a file of `of` tokens takes in this client, including line numbers and wrapping. */
  readonly file: { readonly of: number; readonly takes: number };
};

/** Returns the sizes from the receipts of the plain loop. Side calls are smaller than any request with tools. */
export function sizesOf(receipts: readonly Receipt[]): Sizes {
  const counts = receipts.map(({ tokensBefore }) => tokensBefore ?? 0).toSorted((a, b) => b - a);
  const [, second = 0, first = 0] = counts;
  return { prompt: first, file: { of: plainLoop.tokensPerFile, takes: second - first } };
}

/** Returns a loop whose window overflows at six files and keeps three after a fold. */
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

/** Loads one deferred tool before the first fold and one after it, and calls both until the end, also after a restart. */
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

/** Returns a loop whose window four files fill and of which a fold leaves a quarter file, so that whole steps must be dropped. */
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
