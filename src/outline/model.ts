/**
 * A summary by a model. What it writes is checked, and goes through the extractive summarizer as the prose of one more summary: what the
 * user demanded stands beside it word for word whatever the model left out, nothing it says can pass for anything but prose, and the
 * budget holds. Transcripts that do not fit are read in stretches, each taking in the summary so far.
 */
import { LeporelloError } from '../errors.ts';
import { extract } from './extractive.ts';
import { asProse } from './read-body.ts';
import { looksFailed } from './refusal.ts';
import { spellStep, summaryPrompt, type SummaryPrompt } from './prompts.ts';
import type { Summarizer, SummaryRequest, SummaryStep } from './summarizer.ts';

export type ModelSummarizerOptions = {
  /** The model's name, for receipts. */
  readonly model: string;
  /** The text of the model's reply. Rejects when there is none. */
  readonly ask: (prompt: SummaryPrompt, signal: AbortSignal | undefined) => Promise<string>;
  /** Tokens of the longest prompt it takes. */
  readonly maxInputTokens: number;
  /** Whether what it writes is taken as it is, in all of the budget: for texts that nobody demanded anything in, such as items of a result. */
  readonly isPlain?: boolean | undefined;
  /** Tokens of the longest reply it gives. Default 8,000. */
  readonly maxOutputTokens?: number | undefined;
};

/** Rejects with `summary-failed` where the model gave nothing that can be used. */
export function createModelSummarizer(options: ModelSummarizerOptions): Summarizer {
  return {
    name: `model ${options.model}`,
    async summarize(request, signal) {
      const prose = await writeProse(options, request, signal);
      if (options.isPlain) return prose;
      return extract({ ...request, earlier: [...request.earlier, asProse(prose)] });
    },
  };
}

/** Of what is aimed at: the rest is for what is kept word for word. */
const proseShare = 0.5;
/** A model that reasons spends tokens before it writes. */
const forReasoning = 2_000;
/** Tokens of a prompt beside transcript and summary. */
const aroundTranscript = 600;

async function writeProse(
  { ask, model, maxInputTokens, isPlain = false, maxOutputTokens = 8_000 }: ModelSummarizerOptions,
  { steps, earlier, budget, count, guidance }: SummaryRequest,
  signal: AbortSignal | undefined,
): Promise<string> {
  const aim = isPlain ? budget.aim : Math.max(100, Math.floor(budget.aim * proseShare));
  const most = Math.min(maxOutputTokens, 2 * aim + forReasoning);
  const room =
    maxInputTokens - most - aroundTranscript - earlier.reduce((sum, body) => sum + count(body), aim);
  let soFar = earlier;
  for (const transcript of stretches(steps, room, count)) {
    signal?.throwIfAborted();
    const words = Math.floor(aim * 0.7);
    const reply = await ask(
      summaryPrompt({ transcript, earlier: soFar, words, maxOutputTokens: most, guidance, isPlain }),
      signal,
    );
    soFar = [checked(reply, model, count, 3 * aim)];
  }
  const [prose] = soFar;
  if (prose === undefined || soFar === earlier) throw failed(model, 'had nothing to summarise');
  return prose;
}

/** The steps in texts of at most so many tokens each. A step that is longer by itself is cut. */
function* stretches(
  steps: readonly SummaryStep[],
  room: number,
  count: (text: string) => number,
): Generator<string> {
  const most = Math.max(1_000, room);
  let stretch: string[] = [];
  let used = 0;
  for (const step of steps) {
    const text = spellStep(step);
    const tokens = count(text) + 1;
    if (used + tokens > most && stretch.length > 0) {
      yield stretch.join('\n\n');
      stretch = [];
      used = 0;
    }
    // A token is at least one character: what is cut so fits.
    stretch.push(tokens > most ? text.slice(0, most) : text);
    used += Math.min(tokens, most);
  }
  if (stretch.length > 0) yield stretch.join('\n\n');
}

/** The reply without what a model thinks aloud. Throws for what is no summary, however well it was answered. */
function checked(reply: string, model: string, count: (text: string) => number, most: number): string {
  const text = reply.replaceAll(/<think(?:ing)?>.*?<\/think(?:ing)?>/gs, '').trim();
  if (text === '') throw failed(model, 'answered with nothing');
  if (looksFailed(text)) throw failed(model, 'refused, or answered with an error');
  const tokens = count(text);
  if (tokens > most) throw failed(model, `wrote ${tokens} tokens where ${most} are the most`);
  return text;
}

function failed(model: string, what: string): LeporelloError {
  return new LeporelloError('summary-failed', `${model} ${what}; an extract stands in for its summary.`);
}
