/**
 * Sets the V8 flag that a gateway needs, before anything else is loaded. Request bodies are memory outside of the heap. Since Node 24, V8
 * reacts to them with full garbage collections, which pause for 40 ms instead of 4 ms. https://github.com/nodejs/node/issues/61967
 */
import { setFlagsFromString } from 'node:v8';

/**
 * Returns the flag for a version of V8 (`process.versions.v8`). Undefined for versions that do not need one or were not measured, because V8
 * prints a warning for an unknown flag.
 */
export function gcFlagFor(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major === 13 && minor === 6) return '--scavenger-max-new-space-capacity-mb=8';
  if (major === 14 && minor >= 6) return '--external-memory-accounted-in-global-limit';
  return undefined;
}

/** Sets the flag for this process, and returns it. */
export function setGcFlag(): string | undefined {
  const flag = gcFlagFor(process.versions.v8);
  if (flag === undefined) return undefined;
  try {
    setFlagsFromString(flag);
    return flag;
  } catch {
    // Without the flag the gateway works too, with longer pauses.
    return undefined;
  }
}
