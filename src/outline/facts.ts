/**
 * Finds the sentences of replies and results, and scores them by their position, the rare names and numbers in them, and whether later steps use
 * those; no list of words of any language takes part. Linear. Pure.
 */
import { tellingLines, userReply } from './outcome.ts';
import { announcesText, clientSummary, typedText } from './lib/typed-text.ts';
import {
  endsOf,
  isProse,
  isSaying,
  leadsOf,
  nameOf,
  sentencesOf,
  spacedSentences,
  termsOf,
} from './sentences.ts';
import type { StepWords } from './step-line.ts';
import type { SummaryStep } from './summarizer.ts';

/** A sentence that somebody or something said. */
export type Fact = {
  readonly text: string;
  /** The index of its step, and its place in it as a fraction. */
  readonly at: number;
  /** `final`: of a reply after which no call follows. `client`: of a text that was not typed by the user. */
  readonly from: 'final' | 'reply' | 'result' | 'client';
  /** The tool of a result. */
  readonly tool: string;
  /** The line that announces the list of which it is an item. */
  readonly lead?: string | undefined;
  /** True if this list goes on behind it. */
  readonly hasMore?: boolean;
  /** True for the last sentence of a result that the user answered, without a reply between: it says what came of the turn. */
  readonly isClosing?: boolean;
  readonly score: number;
  readonly terms: ReadonlySet<string>;
};

type FactCandidate = Omit<Fact, 'score'> & {
  readonly place: number;
  readonly next: number;
  /** Its place in a reply that a call follows at once; undefined elsewhere. */
  readonly beforeCall: 'only' | 'last' | 'earlier' | undefined;
};

/** Longer user messages, in UTF-16 units, were not typed: pages, plans, logs. */
export const maxTyped = 4_000;

/** Characters read at both ends of a result, and of all results, newest first. */
const maxResult = 8_000;
const maxResults = 1_500_000;
/** Characters read of replies, newest first. */
const maxReplies = 1_500_000;
/** Maximum sentences of one text. */
const maxSentences = 120;

/** Returns the sentences of steps with their scores, in order. `turnEnds`: steps behind which words of the user stay that are no step. */
export function factsIn(
  steps: readonly SummaryStep[],
  calls: ReadonlyMap<number, StepWords>,
  turnEnds: ReadonlySet<number> = new Set(),
): readonly Fact[] {
  return scored(candidatesIn(steps, calls, turnEnds), steps, calls);
}

function candidatesIn(
  steps: readonly SummaryStep[],
  calls: ReadonlyMap<number, StepWords>,
  turnEnds: ReadonlySet<number>,
): readonly FactCandidate[] {
  const found: FactCandidate[][] = [];
  let next = steps.length;
  let isCalled = false;
  let results = 0;
  let replies = 0;
  for (let at = steps.length - 1; at >= 0; at--) {
    const step = steps[at]!;
    if (turnEnds.has(at)) isCalled = false;
    const isBefore = next === at + 1 && !turnEnds.has(at);
    const isClosing = step.type === 'called' && isAnswered(steps[at + 1]);
    const lastLine = isClosing ? (tellingLines(step.result ?? '').at(-1) ?? '') : '';
    const add = (texts: readonly string[], from: Fact['from'], tool = '', leads: readonly string[] = []) => {
      const told = texts.map((text, index) => ({ text, index })).filter(({ text }) => text !== '');
      const chosen =
        told.length <= maxSentences
          ? told
          : [...told.slice(0, maxSentences / 2), ...told.slice(-maxSentences / 2)];
      found.push(
        chosen.map(({ text, index }, place) => {
          const ends = place === 0 || place === chosen.length - 1 ? 1.3 : 1;
          const beforeCall =
            from !== 'reply' || !isBefore
              ? undefined
              : place < chosen.length - 1
                ? 'earlier'
                : place === 0
                  ? 'only'
                  : 'last';
          const terms = termsOf(text);
          const fact: FactCandidate = {
            text,
            at: at + placeIn(index),
            from,
            tool,
            terms,
            lead: leads[index],
            hasMore: Boolean(leads[index]) && leads[index] === leads[index + 1],
            place: ends,
            next,
            beforeCall,
          };
          const isLast =
            place === chosen.length - 1 || (place === chosen.length - 2 && lastLine.includes(text));
          return isLast && isClosing ? { ...fact, isClosing } : fact;
        }),
      );
    };
    if (step.type === 'called') {
      const { result = '', tool } = step;
      const words = calls.get(at);
      // An editing tool says what it always says.
      const isSilent = words?.kind === 'edit' || words?.kind === 'plan' || userReply(result) !== undefined;
      if (results < maxResults && !isSilent) {
        add(sentencesInResult(result, words), 'result', nameOf(tool));
        results += Math.min(result.length, maxResult);
      }
      next = at;
      isCalled = true;
    } else if (step.by === 'assistant') {
      if (replies < maxReplies)
        add(
          spacedSentences(step.text).map(onlyIf(isSaying)),
          isCalled ? 'reply' : 'final',
          '',
          leadsOf(step.text),
        );
      replies += step.text.length;
    } else {
      if (step.by === 'client' || step.text.length > maxTyped)
        add(sentencesOfClient(step.text, textOfStep(steps[at - 1])), 'client');
      if (step.by === 'user') isCalled = false;
    }
  }
  return found.toReversed().flat();
}

/** Returns the place of a sentence in its text, as a fraction. */
export function placeIn(index: number): number {
  return Math.min(index, 999) / 1_000;
}

/** Returns a function that leaves an empty text where a sentence is left out, so that the places of the others stay. */
function onlyIf(isKept: (sentence: string) => boolean): (sentence: string) => string {
  return (sentence) => (isKept(sentence) ? sentence : '');
}

function isAnswered(next: SummaryStep | undefined): boolean {
  return next?.type === 'said' && next.by === 'user';
}

/**
 * Returns sentences of a text that a client sent in the user's place. A skill says the same in every conversation, and a summary by the client
 * is told as such.
 */
function sentencesOfClient(text: string, before: string): readonly string[] {
  if (announcesText.test(before) || clientSummary.test(text) || commandOutput.test(text)) return [];
  if (typedText(text).note.startsWith('skill ')) return [];
  return sentencesOf(text, maxResult).filter(isProse);
}

/** Matches what a command of the client printed. */
const commandOutput = /^\s*<(?:local-command|bash)-std/;

/** Returns the text of a step that may announce another one: of a user message or a result. */
export function textOfStep(step: SummaryStep | undefined): string {
  if (step?.type === 'called') return step.result ?? '';
  return step?.by === 'assistant' ? '' : (step?.text ?? '');
}

/** Maximum sentences of a file of code. One with more is full of comments, which say what its code says. */
const maxRemarks = 3;

/** Matches the names of files that people write in sentences. The sentences of other files are comments. */
const proseFile = /\.(?:md|mdx|markdown|txt|text|rst|adoc|org|tex|html?|csv|tsv|log|out|pdf|docx?)$/i;

/** Matches the end of a sentence: a line of a listing, or of code, has none. */
const ended = /[.!?…。！？]["'”’»」』)\]]*$/;
/** Matches the beginning of a sentence: one of a listing has an id or a time there. */
const begun = /^["'“”«„¿¡(`*]*(?:\p{L}|\d{1,4} \p{L})/u;
/** Matches a member of JSON in a line. */
const jsonMember = /"[\w-]{1,40}": ?["{[\d]/;

/** Matches a command that shows lines of files, or how things stand in a form of its own. */
const showsCode =
  /^(?:git (?:-\S+ \S+ ){0,9}(?:diff|show|grep|blame|status|log|branch|ls-\w+)|e?grep|rg|ag|ls|find)\b/;

/** Matches the beginning of changed lines. */
const hunk = /^@@ -\d+/m;

/** Matches what a client adds to a result. */
const reminder = /<system-reminder>[^]*?(?:<\/system-reminder>|$)/g;

/** Returns sentences of a result: of JSON, of its texts; of another text, of its lines. */
function sentencesInResult(result: string, words: StepWords | undefined): readonly string[] {
  const text = endsOf(result, maxResult).replaceAll(reminder, '');
  const isFile = words?.kind === 'read' || words?.kind === 'search' || words?.isListing === true;
  const isCode = words?.isListing && (showsCode.test(words.about) || hunk.test(text));
  if (words?.kind === 'search' || isCode) return [];
  if (words?.kind === 'read' && /\.\w+$/.test(words.path) && !proseFile.test(words.path)) return [];
  if (isFile || !/^\s*[[{]/.test(text)) {
    const lines = sentencesOf(text);
    const isKept = (line: string) =>
      isProse(line) && begun.test(line) && ended.test(line) && !jsonMember.test(line);
    const sentences = lines.filter(isKept).length;
    const isCommented = sentences > maxRemarks && sentences * 2 < lines.length;
    return isFile && isCommented ? [] : lines.map(onlyIf(isKept));
  }
  const texts = [...text.matchAll(/"((?:[^"\\]|\\.){12,2000})"/g)].map(([, inside = '']) =>
    inside.replaceAll(/\\[nrt]/g, '\n').replaceAll(/\\(.)/g, '$1'),
  );
  const after = text.slice(Math.max(text.lastIndexOf('}'), text.lastIndexOf(']')) + 1);
  return [...texts, after].flatMap((one) => sentencesOf(one)).map(onlyIf(isProse));
}

const worthOf: Readonly<Record<Fact['from'], number>> = { final: 1.6, reply: 1.2, result: 0.6, client: 0.6 };

/** Sentences in files are read again where they matter. */
const ofFile = 0.4;

// Announcements: sentences that only say which call comes next. Models begin (or in languages without spaces, end) them alike, and put them last.

/** So many sentences must begin alike before their places say whether they announce a call. The only sentence of a reply counts half. */
const minAlike = 3;

/** UTF-16 units of the shortest sentence that may be a reason, if no name is in it. */
const minReason = 45;

/** Matches a text in a language without spaces, in which names are no terms of their own. */
const isUnspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

/** Returns the beginnings and endings by which sentences are alike, the most specific first. */
function likenessOf(text: string): readonly string[] {
  const [first = '', second = ''] = text
    .slice(0, 80)
    .toLowerCase()
    .split(/[\s,]+/);
  if (second !== '' && !isUnspaced.test(first)) return [`${first} ${second}`, first];
  const bare = text.replace(/(?<![\p{P}\p{S}\s])[\p{P}\p{S}\s]+$/u, '');
  return [`…${bare.slice(-6)}`, bare.slice(0, 4)];
}

/**
 * Returns a function that tells an announcement by where sentences that begin alike stand: at the end of replies that a call follows, while findings
 * come earlier, or in replies that end a turn. If too few begin alike, the words of the next call decide.
 */
function createIsAnnouncement(candidates: readonly FactCandidate[]) {
  const places = new Map<string, { last: number; other: number }>();
  const times = new Map<string, number>();
  for (const { text, from, beforeCall, terms } of candidates) {
    if (from !== 'reply' && from !== 'final') continue;
    for (const term of terms) times.set(term, (times.get(term) ?? 0) + 1);
    for (const key of likenessOf(text)) {
      const place = places.get(key) ?? { last: 0, other: 0 };
      place[beforeCall === 'last' || beforeCall === 'only' ? 'last' : 'other'] +=
        beforeCall === 'only' ? 0.5 : 1;
      places.set(key, place);
    }
  }
  return ({ text, beforeCall, terms }: FactCandidate, call: ReadonlySet<string> | undefined): boolean => {
    if (beforeCall === undefined) return false;
    // Before its call, a sentence without a name or number that the call lacks only says that the call comes; earlier ones may be a reason.
    const mayBeReason = beforeCall === 'earlier' && text.length >= minReason;
    if (!mayBeReason && !isUnspaced.test(text) && !holdsMore(terms, call)) return true;
    for (const key of likenessOf(text)) {
      const { last = 0, other = 0 } = places.get(key) ?? {};
      if (last + other >= minAlike) return last > 2 * other;
    }
    if (beforeCall === 'earlier') return false;
    let [shared, all] = [0, 0];
    for (const term of terms) {
      const weight = 1 / (times.get(term) ?? 1);
      all += weight;
      if (call?.has(term)) shared += weight;
    }
    return shared * 2 >= all;
  };
}

/** True if names or numbers are among these terms that a call does not have. */
function holdsMore(terms: ReadonlySet<string>, call: ReadonlySet<string> | undefined): boolean {
  return [...terms].some((term) => term.startsWith('=') && term.length > 2 && !call?.has(term));
}

/** Scores sentences: rare terms count, names and numbers twice; terms of the very next call do not, terms that later steps use do more. */
function scored(
  candidates: readonly FactCandidate[],
  steps: readonly SummaryStep[],
  calls: ReadonlyMap<number, StepWords>,
): readonly Fact[] {
  const times = new Map<string, number>();
  for (const { terms } of candidates) for (const term of terms) times.set(term, (times.get(term) ?? 0) + 1);
  const inputs = new Map<number, ReadonlySet<string>>();
  const lastUse = new Map<string, number>();
  for (const [at, step] of steps.entries()) {
    const said =
      step.type === 'called'
        ? step.input.slice(0, 4_000)
        : step.by === 'assistant'
          ? step.text.slice(0, 4_000)
          : '';
    if (said === '') continue;
    const terms = termsOf(said);
    if (step.type === 'called') inputs.set(at, terms);
    for (const term of terms) if (times.has(term)) lastUse.set(term, at);
  }
  const isAnnouncement = createIsAnnouncement(candidates);
  const findings = candidates.filter((candidate) => !isAnnouncement(candidate, inputs.get(candidate.next)));
  return findings.map(({ place, next, text, at, from, tool, terms, lead, ...marks }) => {
    const { hasMore = false, isClosing = false } = marks;
    const fact = { text, at, from, tool, terms, hasMore, isClosing, ...(lead && { lead }) };
    const announced = from === 'reply' ? inputs.get(next) : undefined;
    let sum = 0;
    let used = 0;
    for (const term of terms) {
      const rare = 1 / (times.get(term) ?? 1);
      const own = (term.startsWith('=') ? 2 : 1) * rare;
      if (announced?.has(term)) continue;
      sum += own;
      if (rare >= 0.25 && (lastUse.get(term) ?? -1) > fact.at) used += rare;
    }
    const kind = from === 'result' ? calls.get(Math.floor(fact.at))?.kind : undefined;
    const share = kind === 'read' || kind === 'search' ? ofFile : 1;
    const score = (share * place * worthOf[from] * (sum + Math.min(2 * used, 5))) / Math.sqrt(terms.size + 6);
    return { ...fact, score };
  });
}
