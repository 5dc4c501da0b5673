/**
 * Makes a codec's fixture of a request body that `npm run test:clients -- --bodies FOLDER` kept: none of the vendor's words is left in it.
 * Usage: node scripts/bootstrap.mjs scripts/anonymize.mjs BODY FIXTURE, the latter as src/codecs/CODEC/fixtures/CLIENT.json
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { anonymize } from '../test/clients/anonymize.ts';
import { survivors } from '../test/clients/anonymize-check.ts';

const [from = '', to = ''] = process.argv.slice(2);
if (from === '' || to === '') {
  console.error('Usage: scripts/anonymize.mjs BODY FIXTURE');
  process.exitCode = 2;
} else {
  const recorded = readFileSync(from);
  const fixture = anonymize(recorded);
  const left = survivors(recorded, fixture);
  if (left.length === 0) writeFileSync(to, fixture);
  else process.exitCode = 1;
  const result =
    left.length === 0 ? 'nothing of it is left' : `not written, it still has: ${left.join(' | ')}`;
  console.log(`${to}: ${recorded.length} to ${fixture.length} bytes, ${result}`);
}
