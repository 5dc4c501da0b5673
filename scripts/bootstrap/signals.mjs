/**
 * Signals on their way from us to a child. A terminal, or whoever ends a whole process group, sends them to the child as
 * well; a program that takes a second signal for impatience would cut its work short. So the child is told what we got, and
 * leash.mjs, which runs in it, hands on only what it has not got by itself.
 */

export const passedOn = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);

/** Milliseconds that a child may be too busy to take a signal from us as a message. After that it gets the signal itself. */
const patience = 2_000;

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
  /** Signals that the child was told of and has not answered. @type {{ signal: string, timer: NodeJS.Timeout }[]} */
  const unanswered = [];
  let wasTold = false;

  /** @param {NodeJS.Signals} signal */
  const pass = (signal) => {
    wasTold = true;
    if (!child.connected) {
      child.kill(signal);
      return;
    }
    // A child that ends meanwhile needs no signal any more.
    child.send({ passedOn: signal }, () => {});
    unanswered.push({ signal, timer: setTimeout(() => child.kill(signal), patience).unref() });
  };
  child.on('message', (/** @type {{ got?: string, took?: string }} */ { got, took }) => {
    wasTold ||= got !== undefined;
    const at = unanswered.findIndex(({ signal }) => signal === took);
    if (at >= 0) clearTimeout(unanswered.splice(at, 1)[0]?.timer);
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
