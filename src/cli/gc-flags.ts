/**
 * Sets the V8 flags that a gateway needs, before anything else is loaded. Request bodies are memory outside of the heap. Since Node 24, V8
 * reacts to them with full garbage collections, which pause for 40 ms instead of 4 ms. https://github.com/nodejs/node/issues/61967
 * And V8 lets garbage grow to as much as is in use, or more on a busy machine: up to half a gigabyte (decision 37).
 */
import { setFlagsFromString } from 'node:v8';

/**
 * Returns the flags for a version of V8 (`process.versions.v8`). None for versions that do not need them or were not measured, because V8
 * prints a warning for an unknown flag.
 */
export function gcFlagsFor(version: string): readonly string[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const flags = ['--external-memory-accounted-in-global-limit', '--heap-growing-percent=75'];
  // The size of the new space changes only in threads that start later.
  if (major === 13 && minor === 6) return ['--scavenger-max-new-space-capacity-mb=8', ...flags];
  if (major === 14 && minor >= 6) return flags;
  return [];
}

/**
 * Returns the flags for a process with little memory: less garbage is kept, and collecting it takes a third more of the CPU of a new
 * conversation (bench/memory.ts).
 */
export function smallHeapFlagsFor(version: string): readonly string[] {
  const growth = '--heap-growing-percent=50';
  return version.startsWith('13.6.') ? ['--scavenger-max-new-space-capacity-mb=1', growth] : [growth];
}

/** Sets the flags for this process. */
export function setGcFlags(flags: readonly string[] = gcFlagsFor(process.versions.v8)): void {
  try {
    for (const flag of flags) setFlagsFromString(flag);
  } catch {
    // Without the flags the gateway works too, with longer pauses or more memory.
  }
}
