/**
 * Sets the V8 flag that a gateway needs, before anything else is loaded. Request bodies are memory outside the heap, and from
 * Node 24 on V8 answers them with full collections: 40 ms pauses where 4 ms would do. https://github.com/nodejs/node/issues/61967
 */
import { setFlagsFromString } from 'node:v8';

/**
 * The flag for a version as `process.versions.v8` tells it. Undefined for versions that do not need one or were not measured:
 * V8 complains on standard error of a flag that it does not know.
 */
export function gcFlagFor(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major === 13 && minor === 6) return '--scavenger-max-new-space-capacity-mb=8';
  if (major === 14 && minor >= 6) return '--external-memory-accounted-in-global-limit';
  return undefined;
}

/** Returns the flag that was set. */
export function setGcFlag(): string | undefined {
  const flag = gcFlagFor(process.versions.v8);
  if (flag === undefined) return undefined;
  try {
    setFlagsFromString(flag);
    return flag;
  } catch {
    // A slower collector is no reason not to start.
    return undefined;
  }
}
