/** Implements `leporello replay`: replays recorded conversations with the engine and with other policies, and prints what each costs. */
import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { LeporelloError } from '../../errors.ts';
import { cutResults, enginePolicy, fullContext, keepLast, type Policy } from '../../replay/policies.ts';
import { figuresOf } from '../../replay/figures.ts';
import { readRecording, type RecordingSource } from '../../replay/recording.ts';
import { type Played, replay as play } from '../../replay/replay.ts';
import { loadExactCounter } from '../../tokens/load-counter.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';
import type { ReplayArgs } from '../command-args.ts';
import { byteLines, isBlank, openInput, recordsOf, systemProblem } from '../compact/input.ts';
import { loadConfig } from '../config/load-config.ts';
import { gatewaySettings } from '../config/to-settings.ts';
import { createProgress, figuresTable, htmlReport } from './reports.ts';
import { pricesIn, priceTables } from './conversation-body.ts';
import { readSource, type SourceOptions, wholeConversations } from './sources.ts';
import type { Terminal } from '../terminal.ts';
import type { FoldSettings } from '../../library/default-engine.ts';
import { configSchema } from '../config/schema.ts';
import { mergeSources, spellProblems } from '../config/merge-sources.ts';
import { setImmediate } from 'node:timers/promises';
import { groupBy } from '../../es2024.ts';

/** Runs the command. Resolves with the exit code, 1 when a line could not be read or there was nothing to replay. */
export async function replay(args: ReplayArgs, terminal: Terminal): Promise<number> {
  const { config } = await loadConfig(args.settings, terminal);
  const engines = [
    { name: 'Leporello', settings: gatewaySettings(config) },
    ...args.engines.map((text) => engineChoice(text)),
  ];
  const { window = 200_000, prefix = 15_000, format } = args;
  const counter = await loadExactCounter('o200k_base');
  const policies = policiesFor(engines, window, counter);
  let code = 0;
  const report = (problem: string): void => {
    code = 1;
    terminal.err(`${problem}\n`);
  };
  const options = { format, prefix, counter, maxBytes: config.limits.maxBodyBytes };
  const sources = await readSources(args, terminal, options, report);
  const played = await playAll({ sources, policies, window, counter, terminal, report });
  if (played === 'interrupted') return 130;
  if (played.length === 0) {
    report(
      'leporello: The input contains no conversation with a reply of the model. Give request bodies with replies, one per line (leporello help replay); leporello savings reads the session files of agent CLIs.',
    );
    return code;
  }
  const figures = figuresOf(played, priceTables);
  await terminal.out(args.json ? `${JSON.stringify(figures, null, 2)}\n` : figuresTable(figures));
  if (args.html !== undefined) {
    const subtitle = `${played.length} conversations of ${args.files.join(', ')}; window ${window.toLocaleString('en-US')} tokens.`;
    await write(args.html, htmlReport({ subtitle, figures, session: largest(played), window }), terminal);
  }
  return code;
}

function policiesFor(
  engines: readonly EngineChoice[],
  window: number,
  counter: TokenCounter,
): readonly Policy[] {
  const choices = engines.map(({ name, settings }) => {
    const usdPerMillionTokens = { ...pricesIn('anthropic'), ...settings.usdPerMillionTokens };
    return enginePolicy({ name, settings: { ...settings, usdPerMillionTokens }, window, counter });
  });
  return [fullContext, ...choices, keepLast(10), keepLast(3), cutResults(500)];
}

async function readSources(
  args: ReplayArgs,
  terminal: Terminal,
  options: SourceOptions,
  report: (problem: string) => void,
): Promise<readonly RecordingSource[]> {
  const sources: RecordingSource[] = [];
  for (const file of args.files) {
    const input = await openInput(file, terminal);
    try {
      for await (const { bytes, number } of recordsOf(byteLines(input.chunks))) {
        if (isBlank(bytes)) continue;
        const place = `${file}, line ${number}`;
        const read = orReported(place, report, () =>
          readSource(bytes, { place, file: basename(file) }, options),
        );
        if (read?.status === 'ok') sources.push(read.source);
        if (read?.status === 'bad') report(`${place}: skipped: ${read.reason}`);
      }
    } catch (error) {
      const problem = systemProblem(error, file);
      if (problem === undefined) throw error;
      report(`leporello: ${problem}`);
    } finally {
      input.close();
    }
  }
  return chosen(wholeConversations(sources), args);
}

function chosen(
  sources: readonly RecordingSource[],
  { source: wanted = '', limit }: ReplayArgs,
): readonly RecordingSource[] {
  const bySource = groupBy(sources, ({ source }) => source);
  return [...bySource]
    .filter(([source]) => source.startsWith(wanted))
    .flatMap(([, group]) => group.slice(0, limit));
}

type ReplayRun = {
  readonly sources: readonly RecordingSource[];
  readonly policies: readonly Policy[];
  readonly window: number;
  readonly counter: TokenCounter;
  readonly terminal: Terminal;
  readonly report: (problem: string) => void;
};

async function playAll(run: ReplayRun): Promise<readonly Played[] | 'interrupted'> {
  const { sources, window, counter, terminal, report } = run;
  const stop = new AbortController();
  const forget = terminal.onStop(() => stop.abort());
  const policies = run.policies.map((policy) => interruptible(policy, stop.signal));
  const progress = createProgress(sources.length);
  const played: Played[] = [];
  try {
    for (const [at, source] of sources.entries()) {
      const recording = orReported(source.id, report, () => readRecording(source, counter));
      if (recording && recording.steps.length > 0) {
        const one = await play(recording, policies, { window });
        played.push(one);
      }
      if (terminal.isTty.err) terminal.err(progress(at + 1));
    }
    return played;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    terminal.err('leporello: interrupted.\n');
    return 'interrupted';
  } finally {
    forget();
  }
}

/** Reads a line. A LeporelloError is reported, and the line is skipped. */
function orReported<T>(line: string, report: (problem: string) => void, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!LeporelloError.isInstance(error)) throw error;
    report(`${line}: skipped: ${error.message}`);
    return undefined;
  }
}

/** Returns the conversation with the most tokens in all its requests, because the chart of a short one shows nothing. */
function largest(played: readonly Played[]): Played | undefined {
  return played.toSorted((a, b) => tokensIn(b) - tokensIn(a))[0];
}

function tokensIn({ plays }: Played): number {
  return plays[0]?.tally.contextSum ?? 0;
}

async function write(path: string, text: string, { cwd }: Terminal): Promise<void> {
  try {
    await writeFile(resolve(cwd, path), text);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new LeporelloError('bad-usage', `--html is ${path}, which cannot be written: ${said}.`, { cause });
  }
}

/** A named engine configuration. */
export type EngineChoice = { readonly name: string; readonly settings: FoldSettings };

/** Parses `NAME=JSON`, where JSON is a configuration as in a file. Throws `bad-usage` or `bad-config`. */
export function engineChoice(text: string): EngineChoice {
  const [, name, json] = /^([^={]+)=(\{.*)$/s.exec(text) ?? [];
  if (name === undefined || json === undefined) throw notUnderstood(text);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw notUnderstood(text, cause);
  }
  const merged = mergeSources({ flags: [], env: {}, file: { path: `--engine ${name}`, value } });
  const parsed = configSchema.safeParse(merged.value);
  if (!parsed.success)
    throw new LeporelloError('bad-config', spellProblems(parsed.error.issues, merged).join('\n'));
  return { name, settings: gatewaySettings(parsed.data) };
}

function notUnderstood(text: string, cause?: unknown): LeporelloError {
  const example = `early={"triggers":{"tokenBudget":{"triggerTokens":60000,"targetTokens":20000}}}`;
  return new LeporelloError('bad-usage', `--engine is ${text}, but must be NAME=JSON, as in '${example}'.`, {
    cause,
  });
}

/**
 * Returns a policy that stops between two requests: its `send` rejects with an AbortError when `signal` is aborted. A replay never waits for
 * anything, so without a turn of the event loop between requests no signal would be noticed.
 */
function interruptible(policy: Policy, signal: AbortSignal): Policy {
  return {
    ...policy,
    open(codec) {
      const session = policy.open(codec);
      return {
        async send(request) {
          await setImmediate(undefined, { signal });
          return session.send(request);
        },
      };
    },
  };
}
