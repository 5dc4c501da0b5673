/** A bar that tells how many conversations are done, for whoever looks at standard error. Text alone, but for the clock. */

/** Returns the text that shows the bar anew. */
export function createProgress(total: number): (done: number) => string {
  const started = performance.now();
  return function show(done) {
    const seconds = Math.round((performance.now() - started) / 1000);
    const bar = '#'.repeat(Math.round((30 * done) / total)).padEnd(30, '.');
    return `\r[${bar}] ${done} of ${total} conversations, ${seconds} s${done === total ? '\n' : ''}`;
  };
}
