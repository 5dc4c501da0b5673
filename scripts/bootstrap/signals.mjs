/**
 * Signals on their way from us to a child. A terminal, or whoever ends a whole process group, sends them to the child as
 * well; a program that takes a second signal for impatience would cut its work short. So a child that can tell us what it
 * got is told only what it has not got.
 */

export const passedOn = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);

/** Milliseconds that a child has to tell us of a signal that was sent to both. */
const patience = 250;

/**
 * Keeps signals that come while a child is being started: without a listener they would end us, and leave the child behind.
 * @returns {() => void} gives what came to whoever listens by then
 */
export function holdSignals() {
  /** @type {NodeJS.Signals[]} */
  const came = [];
  const note = (/** @type {NodeJS.Signals} */ signal) => came.push(signal);
  for (const signal of passedOn) process.on(signal, note);
  return () => {
    for (const signal of passedOn) process.off(signal, note);
    for (const signal of came) process.emit(signal, signal);
  };
}

/**
 * Passes our signals on until `stop` is called.
 * @param {import('node:child_process').ChildProcess} child
 */
export function passSignals(child) {
  /** @type {Set<string>} */
  const justGot = new Set();
  let wasTold = false;

  /** @param {NodeJS.Signals} signal */
  const pass = (signal) => {
    setTimeout(() => {
      if (!justGot.delete(signal)) child.kill(signal);
      wasTold = true;
    }, patience).unref();
  };
  child.on('message', (/** @type {{ got?: string }} */ { got }) => {
    if (got === undefined) return;
    wasTold = true;
    justGot.add(got);
    setTimeout(() => justGot.delete(got), patience).unref();
  });
  for (const signal of passedOn) process.on(signal, pass);
  return {
    /** Ends a child that no signal has reached yet. */
    end: () => wasTold || child.kill('SIGTERM'),
    stop: () => {
      for (const signal of passedOn) process.off(signal, pass);
    },
  };
}
