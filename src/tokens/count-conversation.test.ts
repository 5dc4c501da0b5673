import { describe, expect, it } from 'vitest';
import type { Block, Conversation, Media, Part, Span } from '../conversation/conversation.ts';
import { conversationCounter } from './count-conversation.ts';
import type { TokenCounter } from './token-counter.ts';

/** Counts characters, so that every figure below can be checked by eye. */
const characters: TokenCounter = {
  name: 'characters',
  exact: true,
  count: (text) => text.length,
  image: (size) => (size === undefined ? 5_000 : size.width * size.height),
  overhead: { message: 1_000, tool: 100, request: 10 },
};

const encoder = new TextEncoder();

/** Makes a conversation of blocks. Each has its bytes, and parts that are found by their substrings. */
function conversationOf(
  blocks: readonly {
    readonly json: string;
    readonly parts: (span: (text: string) => Span) => readonly Part[];
  }[],
  preamble = 0,
): Conversation {
  const body = encoder.encode(blocks.map(({ json }) => json).join(''));
  let start = 0;
  const read = blocks.map(({ json, parts }, index) => {
    const span = { start, end: start + encoder.encode(json).length };
    start = span.end;
    const spanOf = (text: string): Span => {
      const before = encoder.encode(json.slice(0, json.indexOf(text))).length;
      return { start: before, end: before + encoder.encode(text).length };
    };
    const block: Block = { span, digest: `digest of ${json}`, parts: parts(spanOf) };
    return { ...block, index: index - preamble, role: 'user', canonical: '' } as const;
  });
  return {
    body,
    model: undefined,
    streaming: false,
    replies: 1,
    maxOutputTokens: undefined,
    toolNames: [],
    preamble: read.slice(0, preamble),
    messages: read.slice(preamble),
  };
}

const single = (json: string, part: (span: (text: string) => Span) => Part) =>
  conversationOf([{ json, parts: (span) => [part(span)] }]);

const tokensOf = (conversation: Conversation) =>
  conversationCounter(characters).block(conversation, conversation.messages[0]!);

const media = (kind: Media['kind'], span: Span, data: Span | undefined): Media => ({ kind, span, data });

const tokensOfReasoning = (json: string, sealed: string | undefined) =>
  tokensOf(
    single(json, (span) => ({
      type: 'reasoning',
      span: span(json),
      texts: [span('"why"')],
      signed: sealed !== undefined,
      ...(sealed !== undefined && { sealed: span(sealed) }),
    })),
  );

const tokensOfMedia = (kind: Media['kind'], json: string, data: string | undefined) =>
  tokensOf(
    single(json, (span) => ({
      type: 'media',
      span: span(json),
      media: media(kind, span(json), data === undefined ? undefined : span(data)),
    })),
  );

const text = (json: string) => ({
  json,
  parts: (span: (text: string) => Span): readonly Part[] => [
    { type: 'text', span: span(json), texts: [span(json)] },
  ],
});

const tool = {
  json: '{"name":"t"}',
  parts: (span: (text: string) => Span): readonly Part[] => [
    { type: 'tool-definition', span: span('{"name":"t"}'), name: 't' },
  ],
};

describe('a part', () => {
  it('costs the text of its literals, as the model reads them', () => {
    const json = '["a\\nb","caf\u00e9 \\ud83d\\ude00"]';
    expect(
      tokensOf(
        single(json, (span) => ({
          type: 'text',
          span: span(json),
          texts: [span('"a\\nb"'), span('"caf\u00e9 \\ud83d\\ude00"')],
        })),
      ),
    ).toBe('a\nb'.length + 'café 😀'.length);
  });

  it.each([
    ['an object', '{"name":"grep","input":{"q":"x"}}', '{"q":"x"}'],
    ['a string that holds JSON', '{"name":"grep","arguments":"{\\"q\\":\\"x\\"}"}', '"{\\"q\\":\\"x\\"}"'],
  ])('that is a call costs a wrapping, its name and its arguments, given as %s', (_, json, input) => {
    const call = single(json, (span) => ({
      type: 'tool-call',
      span: span(json),
      id: 'call_1',
      name: 'grep',
      input: span(input),
    }));
    expect(tokensOf(call)).toBe(1_000 + 'grep'.length + '{"q":"x"}'.length);
  });

  it('that is a result costs a wrapping, its texts and its media', () => {
    const json = '["found","R0lGODlhCgAEAPAAAA=="]';
    const result = single(json, (span) => ({
      type: 'tool-result',
      span: span(json),
      callId: 'call_1',
      texts: [span('"found"')],
      media: [media('image', span('"R0lG'), span('"R0lGODlhCgAEAPAAAA=="'))],
      isError: undefined,
    }));
    expect(tokensOf(result)).toBe(1_000 + 'found'.length + 10 * 4);
  });

  it('that is reasoning costs its text, or an estimate from its sealed copy when that is more', () => {
    const sealed = `"${'s'.repeat(1_000)}"`;
    expect(tokensOfReasoning(`["why",${sealed}]`, undefined)).toBe(3);
    expect(tokensOfReasoning('["why","short"]', '"short"')).toBe(3);
    expect(tokensOfReasoning(`["why",${sealed},"an id"]`, sealed)).toBe(200);
  });

  it('that is a tool definition costs its JSON', () => {
    const json = '{"name":"café"}';
    expect(
      tokensOf(single(json, (span) => ({ type: 'tool-definition', span: span(json), name: 'café' }))),
    ).toBe(100 + json.length);
  });

  it('that is opaque costs a quarter of its bytes', () => {
    const json = `"${'x'.repeat(398)}"`;
    expect(tokensOf(single(json, (span) => ({ type: 'opaque', span: span(json), kind: 'new' })))).toBe(100);
  });
});

describe('media', () => {
  it('that are images cost the tokens of their size', () => {
    const gif = '"R0lGODlhCgAEAPAAAA=="';
    expect(tokensOfMedia('image', gif, gif)).toBe(40);
    expect(tokensOfMedia('image', '"https://example.org/a.gif"', '"https://example.org/a.gif"')).toBe(5_000);
    expect(tokensOfMedia('image', '{"file_id":"f"}', undefined)).toBe(5_000);
  });

  it('are never counted as the text of their base64', () => {
    const base64 = `"JVBERi0x${'QUJD'.repeat(100_000)}"`;
    expect(tokensOfMedia('document', base64, base64)).toBe(Math.ceil(base64.length / 40));
    expect(tokensOfMedia('audio', base64, base64)).toBe(Math.ceil(base64.length / 800));
    expect(tokensOfMedia('other', base64, base64)).toBe(Math.ceil(base64.length / 800));
  });

  it('that are given by reference cost an estimate', () => {
    expect(tokensOfMedia('document', '"https://example.org/a.pdf"', '"https://example.org/a.pdf"')).toBe(
      1_500,
    );
    expect(tokensOfMedia('document', '{"file_id":"f"}', undefined)).toBe(1_500);
    expect(tokensOfMedia('audio', '{"file_id":"f"}', undefined)).toBe(250);
  });

  it('that are documents of plain text cost their text', () => {
    expect(tokensOfMedia('document', '"Plain words, no code."', '"Plain words, no code."')).toBe(21);
  });

  it('of an unknown kind that hold no data cost a quarter of their JSON', () => {
    const json = `{"type":"search_result","content":"${'x'.repeat(361)}"}`;
    expect(tokensOfMedia('other', json, undefined)).toBe(100);
  });
});

describe('a conversation', () => {
  it('costs its tools, its system text, its messages and their wrapping', () => {
    const conversation = conversationOf([tool, text('"Be brief."'), text('"Hello"'), text('"Well?"')], 2);
    const counter = conversationCounter(characters);
    expect([0, 1].map((index) => counter.message(conversation, index))).toEqual([1_005, 1_005]);
    expect(counter.total(conversation)).toBe(10 + 112 + 1_009 + 1_005 + 1_005);
    expect(counter.text('Hello')).toBe(5);
  });

  it('without messages costs the request', () => {
    expect(conversationCounter(characters).total(conversationOf([]))).toBe(10);
  });

  it('has no message beyond its last', () => {
    const counter = conversationCounter(characters);
    expect(() => counter.message(conversationOf([text('"Hello"')]), 1)).toThrow(
      new RangeError('There is no message 1: the conversation has 1.'),
    );
  });

  it('is counted once per block and counter', () => {
    let counted = 0;
    const counter: TokenCounter = { ...characters, count: (value) => (counted++, value.length) };
    const first = conversationOf([text('"Hello"'), text('"Well?"')]);
    const longer = conversationOf([text('"Hello"'), text('"Well?"'), text('"So."')]);
    // As read from the bytes of a conversation that continues another: equal blocks share their parts.
    const messages = longer.messages.map((message, at) => ({ ...message, ...first.messages[at] }));
    expect(conversationCounter(counter).total(first)).toBe(2_020);
    expect(conversationCounter(counter).total({ ...longer, messages })).toBe(3_023);
    expect(counted).toBe(3);
    const other: TokenCounter = { ...counter, image: () => 1 };
    expect(conversationCounter(other).total(first)).toBe(2_020);
    expect(counted).toBe(5);
  });

  it('is counted ahead of others that were counted before, as after an edit', () => {
    const counts = conversationCounter({ ...characters });
    const before = conversationOf([text('"Hello"'), text('"Well?"')]);
    const after = conversationOf([text('"Bye"'), text('"Well?"')]);
    counts.total(before);
    const [changed, same] = [after.messages[0]!, { ...after.messages[1]!, parts: before.messages[1]!.parts }];
    const edited = { ...after, messages: [changed, same] };
    expect(counts.uncounted(edited)).toEqual([changed]);
    counts.total(edited);
    expect(counts.uncounted(edited)).toEqual([]);
  });

  it('has its parts, and the texts that replace others, counted once per counter', () => {
    let counted = 0;
    const counter: TokenCounter = { ...characters, count: (value) => (counted++, value.length) };
    const conversation = conversationOf([text('"Hello"')]);
    const [block] = conversation.messages;
    for (let turn = 0; turn < 3; turn++) {
      const counts = conversationCounter(counter);
      expect(counts.part(conversation, block!, block!.parts[0]!)).toBe(5);
      expect(counts.text('a stub')).toBe(6);
    }
    expect(counted).toBe(2);
    conversationCounter(counter).text('x'.repeat(5_000));
    conversationCounter(counter).text('x'.repeat(5_000));
    expect(counted).toBe(3);
  });

  it.each([100, 5_000])('has a result of %i characters counted once, with its smaller form', (length) => {
    let counted = 0;
    const counter: TokenCounter = { ...characters, count: (value) => (counted++, value.length) };
    const output = 'x'.repeat(length);
    const conversation = single(JSON.stringify(output), (span) => ({
      type: 'tool-result',
      span: span(output),
      callId: 'call',
      isError: false,
      texts: [span(JSON.stringify(output))],
      media: [],
    }));
    const counts = conversationCounter(counter);
    counts.total(conversation);
    expect(counts.text(output)).toBe(length);
    expect(counted).toBe(1);
  });

  it('counts a text once, in steps, that is longer than all that is remembered of long texts', () => {
    const counter: TokenCounter = {
      ...characters,
      count(counted) {
        if (counted.length > 1_000_000) throw new Error('counted at once');
        return counted.length;
      },
      *countInSteps(counted) {
        yield;
        return counted.length;
      },
    };
    const long = conversationOf([text(JSON.stringify('x'.repeat(16_100_000)))]);
    const counts = conversationCounter(counter);
    for (const block of counts.uncounted(long)) for (const _ of counts.blockInSteps(long, block));
    expect(counts.block(long, long.messages[0]!)).toBe(16_100_000);
    expect(counts.part(long, long.messages[0]!, long.messages[0]!.parts[0]!)).toBe(16_100_000);
  });
});
