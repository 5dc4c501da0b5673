/**
 * Folds at a share of the window (0.7, down to 0.3), at a number of tokens (90,000 with a buffer of 1,000, down to 40,000), and at a number of messages
 * (20 and 5 more, down to 20). Run it from a checkout: `npm run example examples/recipes/triggers.ts`.
 */
import { type Message, called, prose, startRecipe } from './play.ts';

for (const file of ['trigger-window.json', 'trigger-budget.json', 'trigger-messages.json']) {
  await using gateway = await startRecipe(file);
  const messages: Message[] = [{ role: 'user', content: 'Read all reports.' }];
  let last = '';
  for (let report = 1; report <= 80; report++) {
    messages.push(...called(`call_${report}`, 'run', { report }, prose(report, 1_700)));
    const { receipt, sent } = await gateway.ask(messages);
    const size = `${receipt.tokensAfter} tokens (${percent(receipt.tokensAfter! / receipt.window!)} of the window), ${sent.length} messages`;
    if (receipt.trigger !== undefined) {
      console.log(
        `${file}: ${receipt.trigger} fires at request ${report}.\n  request ${report - 1}: ${last}\n  request ${report}: ${size}`,
      );
      break;
    }
    last = size;
  }
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
