/**
 * Measures the errors of counts against recorded usage, before and after calibration. Each request is predicted only from earlier reports: those
 * of its own conversation, and of all earlier conversations with the same model. The calibration code is the gateway's.
 */
import { createCalibration } from '../../src/tokens/calibration.ts';
import { quantile, round, sum } from './arithmetic.ts';
import type { Recorded } from './recorded.ts';
import { countingOf } from './recorded-usage.ts';

type Row = Readonly<Record<string, string | number>>;

/** The tokens of a prompt, as counted and as reported by the provider. */
type Prompt = { readonly counted: number; readonly reported: number };

type Session = { readonly id: string; readonly model: string; readonly prompts: readonly Prompt[] };

/** `before` and `after` are relative errors; `request` counts from 1 within the conversation. */
type Prediction = {
  readonly model: string;
  readonly request: number;
  readonly before: number;
  readonly after: number;
};

/** Returns the sessions with recorded usage by start time. */
export async function sessionsOf(recorded: readonly Recorded[]): Promise<readonly Session[]> {
  const sessions: Session[] = [];
  for (const conversation of recorded.toSorted((a, b) => startOf(a).localeCompare(startOf(b)))) {
    const { usage = [], model = '' } = conversation.meta;
    if (usage.length === 0) continue;
    const { totalBefore } = await countingOf(conversation, model);
    // A prompt has one figure or three (not cached, written to the cache, read from it). The last figure is the reply.
    const prompts = usage.map(([index = 0, ...tokens]) => ({
      counted: totalBefore(index),
      reported: sum(tokens.slice(0, -1)),
    }));
    sessions.push({ id: conversation.id, model, prompts });
  }
  return sessions;
}

function startOf({ meta }: Recorded): string {
  return meta.started ?? '';
}

/** Returns errors by model, as recorded: the counts of one client's conversations lack its system prompt and tools. */
export function byModel(sessions: readonly Session[]): readonly Row[] {
  const predictions = predict(sessions);
  const models = [...new Set(sessions.map(({ model }) => model))].toSorted();
  return [...models, 'all'].flatMap((model) => {
    const ofModel = predictions.filter((prediction) => model === 'all' || prediction.model === model);
    const kinds: Readonly<Record<string, (request: number) => boolean>> = {
      all: () => true,
      first: (request) => request === 1,
      later: (request) => request > 1,
    };
    return Object.entries(kinds).map(([requests, belongs]) => ({
      model,
      requests,
      ...errorsOf(ofModel.filter(({ request }) => belongs(request))),
    }));
  });
}

export function byRequest(sessions: readonly Session[]): readonly Row[] {
  const predictions = predict(sessions);
  const ranges: readonly (readonly [string, number, number])[] = [
    ['1', 1, 1],
    ['2', 2, 2],
    ['3', 3, 3],
    ['4', 4, 4],
    ['5 to 10', 5, 10],
    ['11 to 30', 11, 30],
    ['31 and later', 31, Number.POSITIVE_INFINITY],
    ['3 and later', 3, Number.POSITIVE_INFINITY],
    ['all', 1, Number.POSITIVE_INFINITY],
  ];
  return ranges.map(([request, from, to]) => ({
    request,
    ...errorsOf(predictions.filter((one) => one.request >= from && one.request <= to)),
  }));
}

/**
 * Returns errors if the missing system prompt and tools are counted too, each time with another error. Their true size is taken from the first
 * report of each conversation, so first requests are left out: their reports are not known in advance.
 */
export function withPrefix(sessions: readonly Session[]): readonly Row[] {
  return [-0.3, -0.15, 0, 0.15, 0.3].map((error) => {
    const withPrefixes = sessions.map((session) => {
      const [first] = session.prompts;
      const prefix = first ? (1 + error) * Math.max(0, first.reported - first.counted) : 0;
      const prompts = session.prompts.map((prompt) => ({ ...prompt, counted: prompt.counted + prefix }));
      return { ...session, prompts };
    });
    return {
      'error of the prefix count, %': round(100 * error, 0),
      ...errorsOf(predict(withPrefixes).filter(({ request }) => request > 1)),
    };
  });
}

/** Predicts the size of the prompt of 30 requests ago, as a fold must do. Ranges in which the client cleared content are left out. */
export function backwards(sessions: readonly Session[]): readonly Row[] {
  const calibration = createCalibration();
  const errors: { readonly before: number; readonly after: number }[] = [];
  for (const { id, model, prompts } of sessions) {
    for (const [at, prompt] of prompts.entries()) {
      calibration.learn(model, id, prompt);
      const range = prompts.slice(Math.max(0, at - 30), at + 1);
      const [past] = range;
      const cleared = range.some(({ reported }, k) => reported < (range[k - 1]?.reported ?? 0) - 500);
      if (at < 30 || at % 5 > 0 || cleared || !past) continue;
      const after = calibration.correctionFor(model, id).correct(past.counted);
      const before = prompt.reported + past.counted - prompt.counted;
      errors.push({ before: before / past.reported - 1, after: after / past.reported - 1 });
    }
  }
  return [{ prediction: 'newest report minus the difference of counts', ...sizes(errors, 'before') }].concat([
    { prediction: 'calibrated', ...sizes(errors, 'after') },
  ]);
}

function predict(sessions: readonly Session[]): readonly Prediction[] {
  const calibration = createCalibration();
  return sessions.flatMap(({ id, model, prompts }) =>
    prompts.map((prompt, at) => {
      const corrected = calibration.correctionFor(model, id).correct(prompt.counted);
      calibration.learn(model, id, prompt);
      const errorOf = (tokens: number): number => tokens / prompt.reported - 1;
      return { model, request: at + 1, before: errorOf(prompt.counted), after: errorOf(corrected) };
    }),
  );
}

function errorsOf(predictions: readonly Prediction[]): Row {
  const before = predictions.map((prediction) => Math.abs(prediction.before));
  const after = predictions.map((prediction) => Math.abs(prediction.after));
  return {
    n: predictions.length,
    'before, median %': percent(quantile(before, 0.5)),
    'before, p95 %': percent(quantile(before, 0.95)),
    'after, median %': percent(quantile(after, 0.5)),
    'after, p95 %': percent(quantile(after, 0.95)),
    'after, over 12 %': percent(after.filter((error) => error > 0.12).length / after.length),
  };
}

function sizes<K extends string>(errors: readonly Readonly<Record<K, number>>[], key: K): Row {
  const list = errors.map((error) => Math.abs(error[key]));
  return {
    n: list.length,
    'median %': percent(quantile(list, 0.5)),
    'p95 %': percent(quantile(list, 0.95)),
  };
}

function percent(share: number): number {
  return round(100 * share, 1);
}
