/**
 * Loaded into the script that bootstrap.mjs runs: ends it, gracefully where it handles SIGTERM, when bootstrap.mjs is gone.
 * Processes that the script starts itself inherit this file in their options, so it acts in the direct child alone.
 */
if (process.env.LEPORELLO_LEASH === String(process.ppid) && process.channel) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}
