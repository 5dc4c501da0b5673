/**
 * Loaded into the script that bootstrap.mjs runs. Ends the script, gracefully where it handles SIGTERM, when bootstrap.mjs
 * is gone; and takes from bootstrap.mjs the signals that it got, but for those that were sent to the script, too.
 * Processes that the script starts itself inherit this file in their options, so it acts in the direct child alone.
 */
import { constants } from 'node:os';
import { passedOn } from './signals.mjs';

/** Milliseconds between a signal here and the same one there that are taken for one, sent to both. */
const together = 2_000;

/** Milliseconds that a signal sent to both may be later here, on systems that send it to one after the other. */
const apart = 50;

/** Times of signals that came here by themselves and that bootstrap.mjs has not told of. @type {Map<string, number[]>} */
const came = new Map(passedOn.map((signal) => [signal, []]));

let isHandingOn = false;

/** @type {import('node:events').EventEmitter} */
const script = process;

if (process.env.LEPORELLO_LEASH === String(process.ppid) && process.channel) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.on('message', (/** @type {{ passedOn?: NodeJS.Signals }} */ { passedOn: signal }) => {
    // Behind a whole turn of the event loop: what was sent to both of us has been noted by then, however late this process runs.
    if (signal !== undefined) setTimeout(() => setImmediate(take, signal), apart);
  });
  for (const signal of passedOn) noteOf(signal);
  process.channel.unref();
}

/** @param {NodeJS.Signals} signal */
function take(signal) {
  tell({ took: signal });
  const recent = (came.get(signal) ?? []).filter((time) => Date.now() - time < together);
  came.set(signal, recent.slice(1));
  if (recent.length > 0) return;
  if (process.listenerCount(signal) === 0) {
    process.kill(process.pid, signal);
    return;
  }
  isHandingOn = true;
  try {
    script.emit(signal, signal, constants.signals[signal]);
  } finally {
    isHandingOn = false;
  }
}

/**
 * Listens as long as the script does and no longer: a signal that nobody listens to must go on ending the process.
 * @param {NodeJS.Signals} signal
 */
function noteOf(signal) {
  let listening = false;
  const note = () => {
    if (isHandingOn) return;
    came.get(signal)?.push(Date.now());
    tell({ got: signal });
  };
  process.on('newListener', (event) => {
    if (event !== signal || listening) return;
    listening = true;
    process.prependListener(signal, note);
  });
  process.on('removeListener', (event) => {
    if (event !== signal || process.listenerCount(signal) !== 1) return;
    listening = false;
    process.off(signal, note);
  });
}

/** @param {object} message */
function tell(message) {
  if (process.connected) process.send?.(message, () => {});
}
