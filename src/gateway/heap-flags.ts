/**
 * V8 flags that keep large request bodies from stopping the world. Bodies lie outside the heap; from V8 13.6 on each few hundred
 * of them set off a full collection (nodejs/node#61967), which costs tens of milliseconds when the heap holds a tokenizer.
 */
import { setFlagsFromString } from 'node:v8';

/** The flag that was measured to help on this version of Node; undefined where none is needed or none is known. */
export function heapFlagFor(nodeVersion: string): string | undefined {
  const major = Number.parseInt(nodeVersion, 10);
  if (major === 24) return '--scavenger-max-new-space-capacity-mb=8';
  return major === 26 ? '--external-memory-accounted-in-global-limit' : undefined;
}

/** Sets the flag for this process. Call it first thing, before the heap has grown. */
export function applyHeapFlags(): void {
  const flag = heapFlagFor(process.versions.node);
  if (flag !== undefined) setFlagsFromString(flag);
}
