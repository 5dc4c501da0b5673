/** The version of this package, from its manifest. */
import { readFileSync } from 'node:fs';

export function packageVersion(): string {
  // As far from src/cli as from dist/cli.
  const manifest = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string }).version;
}
