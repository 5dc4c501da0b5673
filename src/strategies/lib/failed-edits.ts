/**
 * Finds the folded lines that a failed edit must match, and adds them to the result that reports the failure. The text of the newest folded result
 * or argument that shows the file is searched for the lines that have the most words of the quoted text. Pure; linear in the conversation.
 */
import type { Conversation, Message, Part, TextPlace } from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import { isRecord, parseRecord } from '../../conversation/json-scan.ts';
import { inputOf, textInSteps, textsDeepIn, textsOf } from '../../conversation/messages.ts';
import type { Steps } from '../../conversation/steps.ts';
import { type PartPlace, callsByResult, lastAssistant, placeKey } from '../../conversation/turns.ts';
import { callWords } from '../../outline/step-line.ts';
import { filesRead, isSamePath } from '../../outline/files-shown.ts';
import { placesEdited } from './editable-texts.ts';
import { numberSigns } from './stubs.ts';

/** UTF-16 units of all lines that are added. */
const maxAdded = 12_000;

/** Lines around those that the edit must match. */
const margin = 3;

/** UTF-16 units of the lines behind these that are added if there is space: an agent mostly goes on in the same file, further down. */
const maxBehind = 10_000;

/** The number of folded texts that are searched, the newest first, and the UTF-16 units of the longest one. */
const maxSources = 60;
const maxSource = 200_000;

/** The number of failed edits in one request, and of texts that one edit must match. */
const maxReports = 4;
const maxQuoted = 4;

/** A text after the newest reply that says that the text of an edit was not found. */
export type FailureReport = { readonly at: TextPlace; readonly report: string };

/** A text that an edit must match in a file. `path` is empty if the call does not name the file. */
export type QuotedText = { readonly path: string; readonly text: string };

/** A reported failure, and the texts that its edit must match. */
type FailedEdit = FailureReport & { readonly quoted: readonly QuotedText[] };

/**
 * Returns edits that add the folded lines to these reports. `edits` are those of folds, and `sent` is the conversation under them: lines that it
 * shows are not added.
 */
export function* repairsOf(
  conversation: Conversation,
  { edits, sent }: { readonly edits: readonly Edit[]; readonly sent: Conversation },
  reports: readonly FailureReport[],
): Steps<readonly Edit[]> {
  const failed = failedEditsIn(conversation, edits, reports);
  if (failed.length === 0) return [];
  const sources = yield* foldedFiles(conversation, edits);
  const shown = yield* shownLines(sent);
  const repairs: Edit[] = [];
  let left = maxAdded;
  for (const { at, report, quoted } of failed) {
    const pieces: string[] = [];
    for (const one of quoted) {
      yield;
      const found = yield* findLines(conversation, sources, one, shown);
      if (!found) continue;
      const text = [widened(found), found].map(repairText).find(({ length }) => length <= left);
      if (text === undefined) continue;
      left -= text.length;
      pieces.push(text);
      for (const line of text.split('\n')) shown.add(line.trim());
    }
    if (pieces.length === 0) continue;
    repairs.push({
      kind: 'replace-text',
      at,
      stub: [report, ...pieces].join('\n\n'),
      memory: undefined,
      by: 'repair-edit',
    });
  }
  return repairs;
}

function failedEditsIn(
  conversation: Conversation,
  edits: readonly Edit[],
  reports: readonly FailureReport[],
): readonly FailedEdit[] {
  const edited = placesEdited(edits).texts;
  const callOf = callsByResult(conversation);
  return reports.slice(0, maxReports).flatMap(({ at, report }) => {
    if (edited.has(`${placeKey(at)}.${at.text}`)) return [];
    const call = callOf.get(placeKey(at));
    const isSaid = conversation.messages[at.message]!.parts[at.part]!.type === 'text';
    const quoted = isSaid ? blocksIn(report) : call ? quotedTexts(inputAt(conversation, call)) : [];
    return quoted.length > 0 ? [{ at, report, quoted: quoted.slice(0, maxQuoted) }] : [];
  });
}

function inputAt({ body, messages }: Conversation, { message, part }: PartPlace): string {
  const call = messages[message]!.parts[part]!;
  return call.type === 'tool-call' ? inputOf(body, messages[message]!, call) : '';
}

/** Writes the lines that are added to a failed result. */
export function repairText({ path, lines, from, isEditedSince }: Omit<FoundLines, 'behind'>): string {
  const since = isEditedSince ? ', before later edits' : '';
  const where = path === '' ? '' : ` of ${path}`;
  return `[Lines ${from}-${from + lines.length - 1}${where} as last shown${since}. They were folded when the edit was made:\n${lines.join('\n')}\n]`;
}

/** A folded text that shows a file, or what was written to it. */
type FoldedFile = {
  readonly path: string;
  readonly texts: () => Steps<readonly string[]>;
  readonly order: number;
};

/** Returns the folded texts that show files, the newest first. */
function* foldedFiles(conversation: Conversation, edits: readonly Edit[]): Steps<readonly FoldedFile[]> {
  const { body, messages } = conversation;
  const edited = placesEdited(edits);
  const calls = callsByResult(conversation);
  const files: FoldedFile[] = [];
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]!;
    const isGone = edited.messages.has(index);
    for (let at = message.parts.length - 1; at >= 0; at--) {
      const part = message.parts[at]!;
      const key = placeKey({ message: index, part: at });
      if (part.type === 'tool-call' && (isGone || edited.inputs.has(key) || edited.parts.has(key))) {
        const input = inputOf(body, message, part);
        const { kind, path } = callWords({ tool: part.name, input });
        if (kind === 'edit') files.push({ path, order: index, texts: () => written(input) });
      } else if (part.type === 'tool-result') {
        const isFolded =
          isGone || edited.parts.has(key) || part.texts.some((_, text) => edited.texts.has(`${key}.${text}`));
        const call = isFolded ? calls.get(key) : undefined;
        if (!call) continue;
        const path = pathOf(conversation, call);
        if (path !== '')
          files.push({ path, order: index, texts: () => textsIn(conversation, message, part) });
      } else if (part.type === 'text' && message.role === 'user' && isGone) {
        files.push({ path: '', order: index, texts: () => textsIn(conversation, message, part) });
      }
    }
    yield;
  }
  return files;
}

function pathOf({ body, messages }: Conversation, { message, part }: PartPlace): string {
  const call = messages[message]!.parts[part]!;
  if (call.type !== 'tool-call') return '';
  const input = inputOf(body, messages[message]!, call);
  const [read] = filesRead({ tool: call.name, input });
  return read?.path ?? callWords({ tool: call.name, input }).path;
}

// oxlint-disable-next-line require-yield
function* written(input: string): Steps<readonly string[]> {
  const sent = parseRecord(input) ?? {};
  const list = Array.isArray(sent['edits']) ? sent['edits'].filter(isRecord) : [];
  return [sent, ...list].flatMap((one) =>
    ['content', 'new_string', 'newString', 'new_str', 'newText', 'new_text']
      .map((key) => one[key])
      .filter((text) => typeof text === 'string'),
  );
}

function* textsIn({ body }: Conversation, message: Message, part: Part): Steps<readonly string[]> {
  const texts: string[] = [];
  for (const span of textsOf(part)) texts.push(yield* textInSteps(body, message, span));
  return texts;
}

/** Lines of a file, without numbers. `from` is the number of the first one. `behind` are the lines after them. */
type FoundLines = {
  readonly path: string;
  readonly lines: readonly string[];
  readonly behind: readonly string[];
  readonly from: number;
  readonly isEditedSince: boolean;
};

/** Adds the lines behind those that were found. */
function widened(found: FoundLines): FoundLines {
  const lines = [...found.lines];
  let units = 0;
  for (const line of found.behind) {
    units += line.length + 1;
    if (units > maxBehind) break;
    lines.push(line);
  }
  return { ...found, lines };
}

/** An older text is taken only if it holds so many times as many words of the quoted text. */
const minBetter = 1.1;

/**
 * Finds the lines that a quoted text is most like, in the newest text of its file that holds half of its words, or in an older one that holds
 * more of them. Lines that the request shows are passed over.
 */
function* findLines(
  conversation: Conversation,
  sources: readonly FoldedFile[],
  quoted: QuotedText,
  shown: ReadonlySet<string>,
): Steps<FoundLines | undefined> {
  const words = wordsIn(quoted.text);
  if (words.size === 0) return undefined;
  const height = quoted.text.split('\n').length;
  const ofFile = sources.filter(({ path }) => isSamePath(path, quoted.path)).slice(0, maxSources);
  let held = 0;
  let found: FoundLines | undefined;
  for (const { path, texts, order } of ofFile) {
    for (const text of yield* texts()) {
      yield;
      if (text.length > maxSource || held === words.size) continue;
      const listed = text.split('\n');
      const numbered = listed.map((line) => numberedLine.exec(line));
      const lines = listed.map((line, at) => numbered[at]?.[2] ?? line);
      const best = bestWindow(lines, words, height);
      if (!best || best.held < held * minBetter) continue;
      const window = lines.slice(best.from, best.to);
      if (window.every((line) => line.trim().length < 8 || shown.has(line.trim()))) continue;
      held = best.held;
      const later = ofFile.some((other) => other.order > order);
      found = {
        path: path === '' ? quoted.path : path,
        lines: window,
        behind: lines.slice(best.to),
        from: Number(numbered[best.from]?.[1] ?? best.from + 1),
        isEditedSince: later || isEditedAfter(conversation, order, path),
      };
    }
  }
  return found;
}

/** Matches a line of a listed file: its number and its text. */
const numberedLine = new RegExp(String.raw`^\s*(\d{1,7})${numberSigns}(.*)$`, 's');

/** True if a later call edited the file, or tried to. The calls of the newest reply do not count: one of them is the edit that failed. */
function isEditedAfter(conversation: Conversation, order: number, path: string): boolean {
  const { body, messages } = conversation;
  const last = lastAssistant(conversation) ?? 0;
  return messages.slice(order + 1, last).some((message) =>
    message.parts.some((part) => {
      if (part.type !== 'tool-call') return false;
      const { kind, path: other } = callWords({ tool: part.name, input: inputOf(body, message, part) });
      return kind === 'edit' && isSamePath(other, path);
    }),
  );
}

/** Returns the window of lines with the most telling words of a text, some lines around it, and the number of words that it holds; undefined if these are less than half. */
function bestWindow(
  lines: readonly string[],
  words: ReadonlySet<string>,
  height: number,
): { readonly from: number; readonly to: number; readonly held: number } | undefined {
  const found = lines.map((line) => [...wordsIn(line)].filter((word) => words.has(word)));
  const counts = new Map<string, number>();
  for (const word of found.flat()) counts.set(word, (counts.get(word) ?? 0) + 1);
  const scores = found.map((all) => all.reduce((sum, word) => sum + 1 / counts.get(word)!, 0));
  let [score, best, from] = [0, 0, 0];
  for (const [at, own] of scores.entries()) {
    score += own - (scores[at - height] ?? 0);
    if (score > best + 1e-9) [best, from] = [score, Math.max(0, at - height + 1)];
  }
  const held = new Set(found.slice(from, from + height).flat()).size;
  if (held * 2 < words.size) return undefined;
  return { from: Math.max(0, from - margin), to: Math.min(lines.length, from + height + margin), held };
}

function wordsIn(text: string): ReadonlySet<string> {
  return new Set(text.match(/[\p{L}\p{N}_]{3,40}/gu));
}

/** Returns the lines that a conversation shows, without numbers and spaces around them. */
function* shownLines(conversation: Conversation): Steps<Set<string>> {
  const shown = new Set<string>();
  const { body } = conversation;
  const add = (text: string) => {
    for (const line of text.split('\n')) shown.add((numberedLine.exec(line)?.[2] ?? line).trim());
  };
  for (const message of conversation.messages) {
    for (const part of message.parts) {
      if (part.type === 'tool-call')
        for (const text of textsDeepIn(parseRecord(inputOf(body, message, part)) ?? {}, 4)) add(text);
      for (const span of textsOf(part)) add(yield* textInSteps(body, message, span));
    }
    yield;
  }
  return shown;
}

// Texts that an edit must match

const oldKeys = ['old_string', 'oldString', 'old_str', 'oldText', 'old_text'];

/** Returns the texts that an edit must match in its file; none for a call that is no edit. */
export function quotedTexts(input: string): readonly QuotedText[] {
  if (input.length > maxEdit) return [];
  const sent = parseRecord(input);
  if (sent === undefined) return input.includes(patchBegin) ? patchTexts(input) : [];
  const { path } = callWords({ tool: 'edit', input });
  const lists = [sent['edits'], sent['replacements']].flatMap((list) =>
    Array.isArray(list) ? list.filter(isRecord) : [],
  );
  const quoted = [sent, ...lists].flatMap((one) => {
    const found = [
      ...oldKeys.map((key) => one[key]),
      'replace' in one ? (one['search'] ?? one['find']) : undefined,
    ];
    const own = typeof one['path'] === 'string' ? one['path'] : path;
    return found.flatMap((text) => (typeof text === 'string' && text !== '' ? [{ path: own, text }] : []));
  });
  const texts = textsDeepIn(sent, 2);
  return [
    ...quoted,
    ...texts.filter((text) => text.includes(patchBegin)).flatMap(patchTexts),
    ...texts.filter((text) => text.includes('<<<<<<< SEARCH')).flatMap((text) => blocksIn(text, path)),
  ];
}

/** UTF-16 units of the longest edit that is read. */
const maxEdit = 200_000;
const patchBegin = '*** Begin Patch';

/** Returns the lines that each hunk of a patch must match. */
function patchTexts(patch: string): readonly QuotedText[] {
  return patch
    .split(/^\*\*\* Update File: /m)
    .slice(1)
    .flatMap((file) => {
      const [path = '', ...lines] = file.split('\n');
      const end = lines.findIndex(
        (line) =>
          line.startsWith('*** ') && !line.startsWith('*** Move') && !line.startsWith('*** End of File'),
      );
      const hunks = (end < 0 ? lines : lines.slice(0, end)).join('\n').split(/^@@.*$/m);
      return hunks.flatMap((hunk) => {
        const old = hunk
          .split('\n')
          .filter((line) => /^[ -]/.test(line))
          .map((line) => line.slice(1));
        return old.length === 0 ? [] : [{ path: path.trim(), text: old.join('\n') }];
      });
    });
}

/** Returns the texts of blocks that begin with `<<<<<<< SEARCH`, with the file that the words before a block name. */
function blocksIn(text: string, path = ''): readonly QuotedText[] {
  return text
    .split('<<<<<<< SEARCH')
    .slice(1)
    .flatMap((block, at, all) => {
      const end = block.indexOf('\n=======');
      if (end < 0) return [];
      const before = at === 0 ? text.slice(0, text.indexOf('<<<<<<< SEARCH')) : all[at - 1]!;
      const named = /\bin (\S+)\s*$/.exec(before.trimEnd().split('\n').at(-1) ?? '')?.[1];
      return [{ path: named ?? path, text: block.slice(block.indexOf('\n') + 1, end) }];
    });
}
