/**
 * Loaded into the script that bootstrap.mjs runs. Ends the script, gracefully where it handles SIGTERM, when bootstrap.mjs
 * is gone; and tells bootstrap.mjs which signals the script has got, so that none is passed on twice.
 * Processes that the script starts itself inherit this file in their options, so it acts in the direct child alone.
 */
import { passedOn } from './signals.mjs';

if (process.env.LEPORELLO_LEASH === String(process.ppid) && process.channel) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  for (const signal of passedOn) tellOf(signal);
  process.channel.unref();
}

/**
 * Listens as long as the script does and no longer: a signal that nobody listens to must go on ending the process.
 * @param {NodeJS.Signals} signal
 */
function tellOf(signal) {
  let listening = false;
  const tell = () => process.connected && process.send?.({ got: signal });
  process.on('newListener', (event) => {
    if (event !== signal || listening) return;
    listening = true;
    process.prependListener(signal, tell);
  });
  process.on('removeListener', (event) => {
    if (event !== signal || process.listenerCount(signal) !== 1) return;
    listening = false;
    process.off(signal, tell);
  });
}
