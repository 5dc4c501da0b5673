/**
 * Folds every old result over 1,000 bytes as soon as a newer one has come. Run it from a checkout:
 * `npm run example examples/recipes/old-results.ts`.
 */
import { type Message, called, prose, startRecipe } from './play.ts';

await using gateway = await startRecipe('old-results.json');
const messages: Message[] = [{ role: 'user', content: 'Read all reports.' }];
for (let report = 1; report <= 12; report++) {
  // Every third result has less than 1,000 bytes.
  messages.push(
    ...called(`call_${report}`, 'run', { report }, prose(report, report % 3 === 0 ? 100 : 1_000)),
  );
  const { sent, receipt } = await gateway.ask(messages);
  const results = sent.filter(({ role }) => role === 'tool').map(({ content }) => content!);
  const large = results.slice(0, -1).filter((text) => Buffer.byteLength(text) > 1_000);
  const stubs = results.filter((text) => text.startsWith('[Folded result'));
  console.log(
    `Request ${report}: ${receipt.tokensBefore} tokens before, ${receipt.tokensAfter} after; stubs: ${stubs.length}, old results over 1,000 bytes: ${large.length}, newest whole: ${results.at(-1) === messages.at(-1)!.content}`,
  );
}
