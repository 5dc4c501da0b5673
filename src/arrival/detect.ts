/**
 * Which kind a text is of: exactly one, from the text alone. Listings of files come first, since what they list may be anything; then what
 * must stay as it is; then the rest by how surely it can be told. A kind keeps its text when it is shrunk, or leaves a marker.
 */
import type { Claim } from './content.ts';
import { isChange, isCode, isDocument } from './guards.ts';
import { html } from './html.ts';
import { json } from './json.ts';
import { numberedLines } from './numbered-lines.ts';
import { search } from './search.ts';
import { sharedLines } from './shared-lines.ts';

export function detect(text: string): Claim | undefined {
  const claim = numberedLines(text) ?? (beginsLikeJson.test(text) ? json(text) : undefined);
  if (claim || isChange(text) || isDocument(text)) return claim;
  return html(text) ?? search(text) ?? json(text) ?? (isCode(text) ? undefined : sharedLines(text));
}

const beginsLikeJson = /^\s*[[{]/;
