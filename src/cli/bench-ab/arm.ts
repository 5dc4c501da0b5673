/**
 * Runs the user's command once, in one arm of `leporello bench-ab`: behind a gateway of its own, which folds or sends every request as it is, and
 * which counts. Both arms go the same way, so that both are measured alike.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { maxTimerMs } from '../../checks.ts';
import { assembleGateway, type GatewayDeps, type GatewaySettings } from '../../gateway/app.ts';
import { serveNode } from '../../gateway/http/node-server.ts';
import { undiciUpstream } from '../../gateway/http/undici-upstream.ts';
import type { AnyReceipt } from '../../gateway/receipts/receipts.ts';
import { defaultUpstreams } from '../../gateway/routing/routes.ts';
import { inMemoryStore } from '../../store/in-memory.ts';
import { forOtherPrograms } from '../start-cache.ts';
import type { Terminal } from '../terminal.ts';
import type { Arm, ArmRun } from './figures.ts';
import { createAgentCounts, watchedAgent } from './traffic.ts';

export type ArmOptions = {
  readonly task: string;
  readonly arm: Arm;
  /** The command and its arguments; `{task}` and `{namespace}` are replaced. */
  readonly command: readonly string[];
  /** A name that only this arm has. It stands at the beginning of every prompt, so that the arms share no cache. */
  readonly namespace: string;
  /** False when the command puts the namespace into its prompts itself. */
  readonly addsNamespace: boolean;
  readonly settings: GatewaySettings;
  readonly timeoutMs: number;
};

/** Runs the command. The task is solved when the command exits with 0. */
export async function runArm(options: ArmOptions, terminal: Terminal): Promise<ArmRun> {
  const upstream = undiciUpstream();
  const receipts: AnyReceipt[] = [];
  const settings: GatewaySettings = {
    ...options.settings,
    mode: options.arm === 'folded' ? 'fold' : 'observe',
    tenant: 'bench',
  };
  const deps: GatewayDeps = {
    store: inMemoryStore(),
    secret: crypto.getRandomValues(new Uint8Array(32)),
    upstream,
    log: { info: () => undefined, warn: () => undefined },
    onReceipt: (receipt) => void receipts.push(receipt),
  };
  const agent = createAgentCounts();
  const namespace = options.addsNamespace ? options.namespace : undefined;
  const handler = watchedAgent(
    assembleGateway(settings, deps),
    { ...defaultUpstreams, ...settings.urls },
    namespace,
    (conversation) => agent.see(conversation),
  );
  const server = await serveNode(handler, { host: '127.0.0.1', port: 0 });
  try {
    const isSolved = (await runCommand(options, `http://127.0.0.1:${server.port}`, terminal)) === 0;
    await server.close(1_000);
    return { task: options.task, arm: options.arm, isSolved, ...agent.counts(), ...sumsOf(receipts) };
  } finally {
    await server.close(0);
    await upstream.cut();
  }
}

/** Starts the command, and resolves with its exit code; with undefined when it was ended by a signal or took too long. */
async function runCommand(options: ArmOptions, url: string, terminal: Terminal): Promise<number | undefined> {
  const { task, arm, namespace, timeoutMs } = options;
  const filled = options.command.map((word) =>
    word.replaceAll('{task}', task).replaceAll('{namespace}', namespace),
  );
  const [program = '', ...args] = filled;
  const child = spawn(program, args, {
    cwd: terminal.cwd,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...forOtherPrograms(terminal.env),
      OPENAI_BASE_URL: `${url}/v1`,
      OPENAI_API_BASE: `${url}/v1`,
      ANTHROPIC_BASE_URL: url,
      GOOGLE_GEMINI_BASE_URL: url,
      LEPORELLO_AB_URL: url,
      LEPORELLO_AB_TASK: task,
      LEPORELLO_AB_ARM: arm,
      LEPORELLO_AB_NAMESPACE: namespace,
    },
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), Math.min(timeoutMs, maxTimerMs));
  const forget = terminal.onStop(() => child.kill('SIGTERM'));
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? undefined;
  } finally {
    clearTimeout(timer);
    forget();
  }
}

type RunSums = Omit<ArmRun, 'task' | 'arm' | 'isSolved' | 'refetches' | 'failedEdits'>;

/** Adds up what the receipts say. An answered request without usage or price makes the sum of money unknown. */
function sumsOf(receipts: readonly AnyReceipt[]): RunSums {
  const sums = { steps: 0, failed: 0, recalls: 0, cacheRead: 0, cacheWrite: 0, input: 0 };
  const models = new Set<string>();
  let usd: number | undefined = 0;
  for (const receipt of receipts) {
    if (receipt.kind === 'shadow') continue;
    if (receipt.kind === 'summary') {
      usd = usd === undefined || receipt.paid === undefined ? undefined : usd + receipt.paid.total;
      continue;
    }
    if (receipt.upstreamStatus !== 200 || receipt.problem !== undefined) sums.failed += 1;
    if (receipt.upstreamStatus !== 200) continue;
    sums.steps += Math.max(1, receipt.rounds.length);
    sums.recalls += receipt.recalls.length;
    if (receipt.model !== undefined) models.add(receipt.model);
    usd = usd === undefined || receipt.money === undefined ? undefined : usd + receipt.money.paid.total;
    if (!receipt.usage) continue;
    const { input, cacheRead, cacheWrite } = receipt.usage;
    sums.cacheRead += cacheRead;
    sums.cacheWrite += cacheWrite;
    sums.input += Math.max(0, input - cacheRead - cacheWrite);
  }
  return { ...sums, usd, models: [...models].toSorted() };
}
