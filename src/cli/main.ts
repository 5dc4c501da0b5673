#!/usr/bin/env node
/** The command `leporello`: wires the process and nothing else. What the command line means is in args.ts. */
import { setGcFlag } from './gc-flags.ts';

// Before anything else is loaded and the heap has grown.
setGcFlag();
const { processTerminal } = await import('./terminal.ts');
const { run } = await import('./run.ts');

process.exitCode = await run(process.argv.slice(2), processTerminal());
