/**
 * Runs a command line and returns its exit code: 0 done, 1 failed, 2 invalid arguments or configuration, 130 interrupted. Commands are loaded
 * when they are called, so that help is fast.
 */
import { LeporelloError } from '../errors.ts';
import { parseArgs } from './args.ts';
import type { Args } from './command-args.ts';
import { type RuntimeVersions, packageVersion, runtimeProblem, withCheckoutNote } from './home.ts';
import type { Terminal } from './terminal.ts';

/** Runs a command line. Never rejects: errors are printed to standard error. */
export async function run(
  argv: readonly string[],
  terminal: Terminal,
  versions: RuntimeVersions = process.versions,
): Promise<number> {
  try {
    const args = parseArgs(argv);
    const problem = runtimeProblem(versions);
    if (problem !== undefined && args.command !== 'help' && args.command !== 'version') {
      const library = 'The library also runs in Node 20, Bun and Deno (docs/library.md).';
      terminal.err(`leporello: ${problem} Install a newer Node (https://nodejs.org). ${library}\n`);
      return 1;
    }
    return await runCommand(args, terminal);
  } catch (error) {
    const code = failure(error, terminal);
    // To some clients, the exit code 2 of a hook is a refusal, and hides the result.
    return argv[0] === 'hook' ? 1 : code;
  }
}

async function runCommand(args: Args, terminal: Terminal): Promise<number> {
  switch (args.command) {
    case 'help': {
      const { helpText } = await import('./help/help.ts');
      await terminal.out(withCheckoutNote(helpText(args.topic)));
      return 0;
    }
    case 'version': {
      const version = packageVersion();
      await terminal.out(args.json ? `${JSON.stringify({ version })}\n` : `${version}\n`);
      return 0;
    }
    case 'serve':
      return (await import('./serve/serve.ts')).serve(args, terminal);
    case 'compact':
      return (await import('./compact/compact.ts')).compact(args, terminal);
    case 'recall':
      return (await import('./recall.ts')).recall(args, terminal);
    case 'inspect':
      return (await import('./inspect.ts')).inspect(args, terminal);
    case 'experiment':
      return (await import('./experiment.ts')).experiment(args, terminal);
    case 'mcp':
      return (await import('./mcp.ts')).mcp(args, terminal);
    case 'replay':
      return (await import('./replay/replay.ts')).replay(args, terminal);
    case 'wrap':
      return (await import('./wrap/wrap.ts')).wrap(args, terminal);
    case 'savings':
      return (await import('./savings/savings.ts')).savings(args, terminal);
    case 'doctor':
      return (await import('./doctor/doctor.ts')).doctor(args, terminal);
    case 'state':
      return (await import('./doctor/doctor.ts')).state(terminal);
    case 'hook':
      return (await import('./hook/hook.ts')).hook(args, terminal);
    case 'off':
      return (await import('./hook/off.ts')).off(args, terminal);
    case 'bench-ab':
      return (await import('./bench-ab/bench-ab.ts')).benchAb(args, terminal);
    case 'demo':
      return (await import('./demo/demo.ts')).demo(args, terminal);
  }
}

function failure(error: unknown, terminal: Terminal): number {
  if (LeporelloError.isInstance(error)) {
    terminal.err(`leporello: ${error.message}\n`);
    return error.code === 'bad-usage' || error.code === 'bad-config' ? 2 : 1;
  }
  // The reader has closed the pipe, so a message would be of no use.
  if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return 1;
  if (error instanceof Error && 'syscall' in error) {
    terminal.err(`leporello: The system reported: ${error.message}. Check free space and permissions.\n`);
    return 1;
  }
  const stack = error instanceof Error ? error.stack : String(error);
  terminal.err(`leporello: unexpected error. Please report it with these lines:\n${stack}\n`);
  return 1;
}
