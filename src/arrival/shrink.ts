/**
 * Shrinks the text of one tool result: what the terminal would not show goes, then the one kind it is of is laid out smaller. To be
 * used once, when a text is first seen, and remembered: a text that was sent is part of a cached prefix. Pure; who decides which
 * results may be shrunk, keeps the original of a lossy one and says how to get it, is somebody else.
 */
import {
  isChange,
  isCode,
  isDocument,
  mayLose,
  type Kind,
  type RecognizedKind,
  type ShrinkDraft,
  type ShrinkOptions,
  type Shrunk,
} from './kind.ts';
import { html } from './html.ts';
import { json } from './json.ts';
import { isShrunk, leftOut } from './markers.ts';
import { numberedLines } from './numbered-lines.ts';
import { search } from './search.ts';
import { sharedLines } from './shared-lines.ts';
import { renderTerminal } from './terminal.ts';

/** UTF-16 units. Shorter texts hold nothing worth a marker; longer ones fit no model, and would keep a server from its other requests. */
export const SHORTEST = 200;
export const LONGEST = 1_000_000;

/**
 * A smaller text for the same content, or undefined where there is none: too short, too long, of no kind we know, shrunk before, or the
 * gain is not worth a new look. Never throws. Shrinking a result again changes nothing.
 *
 * @example
 * shrink('     1→package cli\n     2→\n     3→import "os"\n...', { lossless: true })?.text; // '1→package cli\n2→\n3→import "os"\n...'
 */
export function shrink(text: string, options: ShrinkOptions): Shrunk | undefined {
  if (text.length < SHORTEST || text.length > LONGEST || isShrunk(text)) return undefined;
  const sizeOf = remembered(options.count ?? lengthOf);
  const steps: (ShrinkDraft & { kind: Kind })[] = [];
  const now = (): string => steps.at(-1)?.text ?? text;
  const take = (kind: Kind, drafts: readonly ShrinkDraft[]): void => {
    if (drafts.length === 0 || options.without?.includes(kind)) return;
    const best = smallest([{ text: now(), isLossless: true, note: '' }, ...drafts], sizeOf);
    if (best.note !== '') steps.push({ ...best, kind });
  };

  let claim = detect(text);
  if (claim?.kind !== 'numbered-lines') {
    if (options.mayBeEdited === true) return undefined;
    take('terminal', renderTerminal(text));
    if (!options.lossless && mayLose(now()) && (claim?.kind === 'json' || !isCode(now())))
      take('blob', withoutBlobs(now()));
    if (steps.length > 0) claim = detect(now());
  }
  if (claim) take(claim.kind, claim.drafts(options));

  const last = steps.at(-1);
  if (!last || !isWorthIt(text, last.text, sizeOf, options)) return undefined;
  return {
    text: last.text,
    kind: last.kind,
    isLossless: steps.every(({ isLossless }) => isLossless),
    notes: steps.map(({ note }) => note),
  };
}

/** What a lossy draft may have of the size of the smallest lossless one: to lose something must bring much. */
const LOSSY_SHARE = 0.75;

/** The first of the smallest; the text as it is stands first. */
function smallest(drafts: readonly ShrinkDraft[], sizeOf: (text: string) => number): ShrinkDraft {
  const best = (some: readonly ShrinkDraft[]): ShrinkDraft =>
    some.reduce((least, draft) => (sizeOf(draft.text) < sizeOf(least.text) ? draft : least));
  const lossless = best(drafts.filter(({ isLossless }) => isLossless));
  const lossy = drafts.filter(
    ({ isLossless, text }) => !isLossless && sizeOf(text) <= sizeOf(lossless.text) * LOSSY_SHARE,
  );
  return lossy.length === 0 ? lossless : best(lossy);
}

/** A text that looks different from what its tool is known to print should be worth it. */
function isWorthIt(
  before: string,
  after: string,
  sizeOf: (text: string) => number,
  { count }: ShrinkOptions,
): boolean {
  if (after.trim() === '' || after.length >= before.length) return false;
  const size = sizeOf(before);
  return size - sizeOf(after) >= Math.max(count ? 10 : 40, size * 0.02);
}

function lengthOf(text: string): number {
  return text.length;
}

/** Texts are compared more than once, and counting is most of the work. */
function remembered(sizeOf: (text: string) => number): (text: string) => number {
  const sizes = new Map<string, number>();
  return (text) => {
    const size = sizes.get(text) ?? sizeOf(text);
    sizes.set(text, size);
    return size;
  };
}

function detect(text: string): RecognizedKind | undefined {
  const claim = numberedLines(text) ?? (beginsLikeJson.test(text) ? json(text) : undefined);
  if (claim || isChange(text) || isDocument(text)) return claim;
  return html(text) ?? search(text) ?? json(text) ?? (isCode(text) ? undefined : sharedLines(text));
}

const beginsLikeJson = /^\s*[[{]/;

/** UTF-16 units. Tokens, signatures and hashes that a model may have to pass on are shorter. */
const SHORTEST_BLOB = 1_000;

export function withoutBlobs(text: string): readonly ShrinkDraft[] {
  if (text.includes('-----BEGIN')) return [];
  let characters = 0;
  const rest = text.replace(run, (blob) => {
    if (blob.length < SHORTEST_BLOB || !isEncoded(blob)) return blob;
    characters += blob.length;
    return leftOut(blob.length, 'characters of base64', `: ${blob.slice(0, 16)}...`);
  });
  if (characters === 0) return [];
  return [{ text: rest, isLossless: false, note: `${characters} characters of base64 left out` }];
}

/** Also in the lines of mail, which are all of one length and end in a line break, escaped or not. */
const run = /(?:[A-Za-z0-9+/_-]{60,}(?:\r?\n|\\r\\n|\\n)?)+(?:[A-Za-z0-9+/_-]{0,59}={1,2})?/g;

/** Data has letters of both kinds and digits all over; a long word, a path or a row of one letter has not. */
function isEncoded(blob: string): boolean {
  const sample = blob.slice(0, 1_000);
  return (
    new Set(sample).size > 40 &&
    (sample.match(/\d/g)?.length ?? 0) > 60 &&
    (sample.match(/[A-Z]/g)?.length ?? 0) > 150
  );
}
