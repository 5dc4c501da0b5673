/**
 * Counts the tokens of a conversation by its parts. Text is decoded only for blocks that were not counted before: counts are
 * remembered with the parts of a block, which all blocks of the same bytes share, so a turn costs only its new messages. Pure except for that memo.
 */
import { memoryIdPattern } from '../checks.ts';
import { type Notes, openNotes, openTexts } from '../caches.ts';
import type { Block, Conversation, Media, Message, Part, Span } from '../conversation/conversation.ts';
import {
  bytesOf,
  perMessage,
  rememberAt,
  textInSteps,
  textOf,
  textsOf,
  textToKeep,
} from '../conversation/messages.ts';
import type { Steps } from '../conversation/steps.ts';
import { countMedia } from './count-media.ts';
import type { AsyncCounts } from './async-counts.ts';
import type { TokenCounter } from './token-counter.ts';
import { argumentsText, definitionText, opaqueTokens, rawText, sealedTokens } from './spelling.ts';

export interface ConversationCounter {
  readonly name: string;
  /** Counts the tokens of a block: its parts, and the wrapping of its calls, results and tool definitions. */
  block(conversation: Conversation, block: Block): number;
  /** Counts the tokens of one part of a block. Remembered as long as the part is alive. */
  part(conversation: Conversation, block: Block, part: Part): number;
  /** Counts the tokens of an image, document or sound of a block. Remembered as long as it is alive. */
  media(conversation: Conversation, block: Block, media: Media): number;
  /** Counts the tokens of all messages, in their order. The list may be longer than the conversation. */
  messages(conversation: Conversation): readonly number[];
  /** Counts all messages as `messages` does, in steps, so that later passes find the counts at once. */
  messagesInSteps(conversation: Conversation): Steps<void>;
  /** Counts the tokens of a message with its wrapping. Throws a RangeError for an index without a message. */
  message(conversation: Conversation, index: number): number;
  /** Counts the tokens of the whole prompt: system, tools and messages. */
  total(conversation: Conversation): number;
  /** Returns the blocks that `total` would count for the first time; none when counts are not remembered. */
  uncounted(conversation: Conversation): readonly Block[];
  /** Counts the tokens of a single text, and remembers them: stubs are counted in every turn. */
  text(text: string): number;
  /** Counts a text as `text` does, in steps. */
  textInSteps(text: string): Steps<number>;
  /** Counts a block as `block` does, in steps. */
  blockInSteps(conversation: Conversation, block: Block): Steps<number>;
  /**
   * For an asynchronous counter: requests the texts of all blocks that were not counted before, so that later counts are exact.
   * Texts without an answer in time are estimated, corrected by the ratio of the answers so far, and requested again with the
   * next request.
   */
  ahead(conversation: Conversation): Promise<void>;
}

/** Returns the counter of conversations for a counter of texts. One serves all requests: it is made of many functions. */
export function conversationCounter(counter: TokenCounter): ConversationCounter {
  const made = counters.get(counter) ?? createCounter(counter);
  counters.set(counter, made);
  return made;
}

const counters = new WeakMap<TokenCounter, ConversationCounter>();

function createCounter(given: TokenCounter): ConversationCounter {
  // Blocks with the same bytes share the list of their parts.
  const blocks = notesOf(given, blocksBy);
  const parts = notesOf(given, partsBy);
  const knownMedia = notesOf(given, mediaBy);
  const totals = notesOf(given, totalsBy);
  const countsBy = notesOf(given, countsOfBy);
  const lists = perMessage<number>(notesOf(given, listsBy));
  /** Messages up to which all messages of their conversation were counted: the newest of each. */
  const listed = notesOf(given, listedBy);
  const texts = openTexts<number>('short texts', 100);
  const longTexts = openTexts<number>('long text counts');
  const { asyncCounts: answers, countInSteps } = given;
  const countText = (text: string): number =>
    remembered(text.length > maxShortLength ? longTexts : texts, text, () => given.count(withUsualIds(text)));
  // `text` always uses the estimate: what is made smaller on arrival must be decided the same way every time.
  const counter = answers ? withAnswers(given, answers) : { ...given, count: countText };
  const isFinal = (conversation: Conversation, block: Block): boolean =>
    answers === undefined ||
    textsIn(counter, conversation.body, block).every((text) => answers.known(text) !== undefined);

  /** Counts what tools cost besides their definitions, or the wrapping of a system text outside the messages: in other formats it is a message. */
  const preambleOverhead = ({ preamble }: Conversation, block: Block): number =>
    block.parts.some(({ type }) => type === 'tool-definition')
      ? (counter.overhead.tools ?? 0)
      : preamble.includes(block)
        ? counter.overhead.message
        : 0;
  /** Counts a long text in steps. Later passes find its count in `longTexts`, unless it is longer than all that is remembered there. */
  function* countLong(text: string): Steps<number> {
    if (text.length < minLongLength || !countInSteps) return countText(text);
    const tokens = longTexts.get(text) ?? (yield* countInSteps(withUsualIds(text)));
    longTexts.set(text, tokens);
    return tokens;
  }
  function* countPartInSteps({ body }: Conversation, block: Block, part: Part): Steps<number> {
    const spans = textsOf(part);
    if (part.type === 'tool-call' && !answers && lengthOf(part.input) >= minLongLength) {
      const input = yield* countLong(inputText(body, block, part.input));
      return counter.overhead.message + counter.count(part.name) + input;
    }
    if (spans.length < manyTexts && lengthOf(part.span) < minLongLength)
      return countPart(counter, body, block, part);
    let tokens = 0;
    for (const span of spans) {
      if (lengthOf(span) < minLongLength) tokens += counter.count(textOf(body, block, span));
      else tokens += yield* countLong(yield* textInSteps(body, block, span));
      yield;
    }
    if (part.type === 'reasoning') return Math.max(tokens, sealedTokens(part));
    return tokens + countPart(counter, body, block, { ...part, texts: [] } as Part);
  }

  /** Keeps the tokens of a large part, because a fold asks for the parts of blocks that were counted. Returns them. */
  const keptCount = (part: Part, tokens: number): number => {
    if (answers === undefined && lengthOf(part.span) >= minKeptBytes) parts.set(part, tokens);
    return tokens;
  };
  const countBlock = (conversation: Conversation, block: Block): number => {
    const known = blocks.get(block.parts);
    if (known !== undefined) return known;
    let tokens = preambleOverhead(conversation, block);
    for (const part of block.parts)
      tokens += keptCount(part, countPart(counter, conversation.body, block, part));
    if (isFinal(conversation, block)) blocks.set(block.parts, tokens);
    return tokens;
  };
  const countNow = (conversation: Conversation, message: Message): number =>
    wrappingsOf(conversation, message) * counter.overhead.message + countBlock(conversation, message);
  /** Returns the tokens of each message. A text without an answer may count differently later, so then nothing is remembered. */
  const countsOf = (conversation: Conversation): readonly number[] => {
    if (answers) return conversation.messages.map((message) => countNow(conversation, message));
    const known = countsBy.get(conversation);
    if (known) return known;
    const counts = lists(conversation.messages, (message) => countNow(conversation, message));
    countsBy.set(conversation, counts);
    rememberAt(listed, conversation.messages, 0, true);
    return counts;
  };
  const countMessage = (conversation: Conversation, index: number): number => {
    const { messages } = conversation;
    const message = messages[index];
    if (message === undefined)
      throw new RangeError(`There is no message ${index}: the conversation has ${messages.length}.`);
    return answers ? countNow(conversation, message) : countsOf(conversation)[index]!;
  };

  return {
    name: counter.name,
    block: countBlock,
    part: (conversation, block, part) =>
      answers
        ? countPart(counter, conversation.body, block, part)
        : remembered(parts, part, () => countPart(counter, conversation.body, block, part)),
    messages: countsOf,
    *messagesInSteps(conversation) {
      const { messages } = conversation;
      if (answers) return;
      for (let length = messagesPerStep; length < messages.length; length += messagesPerStep) {
        lists(messages.slice(0, length), (message) => countNow(conversation, message));
        yield;
      }
    },
    message: countMessage,
    total(conversation) {
      const known = totals.get(conversation);
      if (known !== undefined) return known;
      let tokens = counter.overhead.request;
      for (const block of conversation.preamble) tokens += countBlock(conversation, block);
      const counts = countsOf(conversation);
      for (let index = 0; index < conversation.messages.length; index++) tokens += counts[index]!;
      if (answers === undefined) totals.set(conversation, tokens);
      return tokens;
    },
    uncounted({ preamble, messages }) {
      if (answers) return [];
      const tools = preamble.filter((block) => !blocks.has(block.parts));
      let from = messages.length;
      while (from > 0 && !listed.has(messages[from - 1]!)) from--;
      return [...tools, ...messages.slice(from).filter((message) => !blocks.has(message.parts))];
    },
    media: ({ body }, block, media) =>
      remembered(knownMedia, media, () => countMedia(counter, body, block, media)),
    text: countText,
    textInSteps: countLong,
    *blockInSteps(conversation, block) {
      const isLong = block.span.end - block.span.start >= minLongLength;
      if (!isLong || answers || blocks.has(block.parts)) return countBlock(conversation, block);
      let tokens = preambleOverhead(conversation, block);
      for (const part of block.parts) {
        tokens += keptCount(part, yield* countPartInSteps(conversation, block, part));
        yield;
      }
      blocks.set(block.parts, tokens);
      return tokens;
    },
    async ahead(conversation) {
      if (!answers) return;
      const { body, preamble, messages } = conversation;
      let asked: Block[] = [];
      let questions: string[] = [];
      let length = 0;
      const settle = async (): Promise<boolean> => {
        const isAnswered = await answers.ask(questions);
        // The blocks are counted while the answers are at hand: the memory for texts is bounded, and may be smaller than one
        // request.
        for (const block of asked) countBlock(conversation, block);
        [asked, questions, length] = [[], [], 0];
        return isAnswered;
      };
      for (const block of [...preamble, ...messages]) {
        if (blocks.has(block.parts)) continue;
        asked.push(block);
        for (const text of textsIn(counter, body, block)) {
          questions.push(text);
          length += text.length;
        }
        if (length > maxRequestedAtOnce && !(await settle())) return;
      }
      await settle();
    },
  };
}

/** UTF-16 units of the shortest text, and bytes of the shortest block, that are counted in steps. */
const minLongLength = 16_384;

/** Bytes of the smallest part whose tokens are kept when its block is counted. Counting smaller ones again takes microseconds. */
const minKeptBytes = 512;

/** Messages whose counts are put into a list in one step: about 1 ms. */
const messagesPerStep = 4_000;

/** From this number of texts on, a part is counted text by text. */
const manyTexts = 64;

/** UTF-16 units requested at once. */
const maxRequestedAtOnce = 1_000_000;

/** Returns the counter with its answers, and its estimate corrected by them. */
function withAnswers(counter: TokenCounter, answers: AsyncCounts): TokenCounter {
  return {
    ...counter,
    count: (text) => answers.known(text) ?? Math.round(counter.count(text) * answers.ratio()),
  };
}

/** Returns all texts that counting a block counts. */
function textsIn(counter: TokenCounter, body: Uint8Array, block: Block): readonly string[] {
  const texts: string[] = [];
  const collecting: TokenCounter = {
    ...counter,
    count(text) {
      texts.push(text);
      return 0;
    },
  };
  for (const part of block.parts) countPart(collecting, body, block, part);
  return texts;
}

/** UTF-16 units of the longest text whose tokens are kept with those of stubs, where texts of one large request would displace them. */
const maxShortLength = 4_000;

function remembered<Key>(
  memo: { get(key: Key): number | undefined; set(key: Key, tokens: number): unknown },
  key: Key,
  count: () => number,
): number {
  const known = memo.get(key);
  if (known !== undefined) return known;
  const tokens = count();
  memo.set(key, tokens);
  return tokens;
}

/** The values of each counter: nearly always there is one. */
type ByCounter<Value> = { readonly counter: TokenCounter; value: Value }[];
const blocksBy = openNotes<readonly Part[], ByCounter<number>>('block');
const partsBy = openNotes<Part, ByCounter<number>>('part');
const mediaBy = openNotes<Media, ByCounter<number>>();
const totalsBy = openNotes<Conversation, ByCounter<number>>();
const listsBy = openNotes<Message, ByCounter<number[]>>('message');
const listedBy = openNotes<Message, ByCounter<true>>('message');
const countsOfBy = openNotes<Conversation, ByCounter<readonly number[]>>();

/** The most counters whose values are remembered with one object. */
const maxCounters = 4;

/** Returns the notes of one counter. */
function notesOf<Key extends object, Value>(
  counter: TokenCounter,
  all: Notes<Key, ByCounter<Value>>,
): Notes<Key, Value> {
  function own(key: Key): ByCounter<Value>[number] | undefined {
    const known = all.get(key);
    if (known) for (const one of known) if (one.counter === counter) return one;
    return undefined;
  }
  return {
    get: (key) => own(key)?.value,
    has: (key) => own(key) !== undefined,
    set(key, value) {
      const known = own(key);
      if (known) known.value = value;
      else all.set(key, [{ counter, value }, ...(all.get(key) ?? [])].slice(0, maxCounters));
    },
  };
}

/**
 * Returns how often a message costs the wrapping of one, besides that of each call and each result in it. Recorded usage of two providers shows that a
 * call with its result costs about four wrappings, two calls at once seven: one for the turn of the model, one for each call, and two for each
 * result. It is the same in each wire format, although some divide a turn of the model into several messages and some have several results in one.
 */
function wrappingsOf({ messages }: Conversation, { index, role, parts }: Message): number {
  if (role === 'assistant' || role === 'system') return messages[index - 1]?.role === role ? 0 : 1;
  const results = parts.filter(({ type }) => type === 'tool-result').length;
  return parts.length > results ? results + 1 : Math.max(1, results);
}

/** Counts a part. A call and a result cost the wrapping of a message each, in addition to those of their message. */
function countPart(counter: TokenCounter, body: Uint8Array, block: Block, part: Part): number {
  switch (part.type) {
    case 'text':
      return countTexts(counter, body, block, part.texts);
    case 'tool-call':
      return (
        counter.overhead.message +
        counter.count(part.name) +
        counter.count(inputText(body, block, part.input))
      );
    case 'tool-result': {
      const media = part.media.reduce((sum, item) => sum + countMedia(counter, body, block, item), 0);
      // A new result is made smaller next, which needs its texts again.
      return counter.overhead.message + countTexts(counter, body, block, part.texts, textToKeep) + media;
    }
    case 'reasoning':
      return Math.max(countTexts(counter, body, block, part.texts), sealedTokens(part));
    case 'media':
      return countMedia(counter, body, block, part.media);
    case 'tool-definition':
      // A tool that the model found is in the prompt; this is left to the calibration by reported usage.
      if (part.isDeferred) return 0;
      return (
        counter.overhead.tool +
        counter.count(definitionText(rawText(body, block, part.span), counter.toolsAs))
      );
    case 'opaque':
      return opaqueTokens(body, block, part);
  }
}

function countTexts(
  counter: TokenCounter,
  body: Uint8Array,
  block: Block,
  texts: readonly Span[],
  read = textOf,
): number {
  return texts.reduce((tokens, span) => tokens + counter.count(read(body, block, span)), 0);
}

/** Arguments are a string literal that holds JSON in some formats, which the model reads as it is, and JSON in others. */
function inputText(body: Uint8Array, block: Block, span: Span): string {
  const quoted = bytesOf(body, block, span)[0] === 0x22;
  return quoted ? textOf(body, block, span) : argumentsText(rawText(body, block, span));
}

const lengthOf = ({ start, end }: Span): number => end - start;

const memoryIds = new RegExp(String.raw`\b${memoryIdPattern}\b`, 'g');

/** Returns the text with one usual id in place of all ids of originals: these depend on the wire format, and a fold must not. */
function withUsualIds(text: string): string {
  return text.includes('mem_') ? text.replaceAll(memoryIds, usualId) : text;
}

/** Takes as many tokens as ids take on average. */
const usualId = 'mem_yz4mse4gge9fv3wx';
