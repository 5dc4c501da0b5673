#!/usr/bin/env node
/** Entry of the command `leporello`: connects the process to run.ts. */
import { setGcFlags } from './gc-flags.ts';
import { enableCodeCache } from './start-cache.ts';

// These must happen before anything else is loaded and the heap grows.
setGcFlags();
enableCodeCache(process.env);
const { processTerminal } = await import('./terminal.ts');
const { run } = await import('./run.ts');

process.exitCode = await run(process.argv.slice(2), processTerminal());
