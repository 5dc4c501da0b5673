/**
 * Loaded into the child that run.mjs starts: ends the child when the channel to its parent breaks, as it does when the parent
 * is killed. Grandchildren load this file, too, because Node passes its options on; they lack the variable, so nothing happens.
 */
const parent = process.env['LEPORELLO_PARENT'];
delete process.env['LEPORELLO_PARENT'];
if (process.channel && parent === String(process.ppid)) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}
