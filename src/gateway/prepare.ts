/** Runs the engine under a deadline. The engine never rejects; a store that hangs must not hang the request. */
import type { Engine } from '../compact/engine.ts';
import type { EngineRequest } from '../compact/request.ts';
import type { Prepared } from '../compact/prepared.ts';

export async function prepareInTime(
  engine: Engine,
  request: EngineRequest,
  deadlineMs: number,
): Promise<Prepared> {
  // A timer cannot fire while the engine reckons, so the engine looks at the clock itself as well.
  const latest = performance.now() + deadlineMs;
  const timer = Promise.withResolvers<Prepared>();
  const handle = setTimeout(() => {
    const reason = `deadline: not folded within ${deadlineMs} ms`;
    timer.resolve(engine.unfolded(request, { status: 'failed', reason }));
  }, deadlineMs);
  try {
    return await Promise.race([
      engine.prepare({ ...request, isTooLate: () => performance.now() > latest }),
      timer.promise,
    ]);
  } finally {
    clearTimeout(handle);
  }
}
