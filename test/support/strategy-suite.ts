/** The conformance suite of strategies: the laws that each must keep, whatever it folds. Each strategy's test calls it. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { Conversation } from '../../src/conversation/conversation.ts';
import { type Edit, originalsOf, withOriginalIds, withoutTakenIn } from '../../src/conversation/edit.ts';
import { pairCalls } from '../../src/conversation/turns.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import type { FoldView, Protection, Strategy } from '../../src/strategies/strategy.ts';
import { chatBody, freshReading, readChat, type Step } from './chat-conversation.ts';

/** A file of so many lines. */
export function listingOf(name: string, lines: number): string {
  return `export const ${name} = 1;\n`.repeat(lines);
}

/** A step that reads a file of so many lines. */
export function readingStep(name: string, lines: number): Step {
  const input = JSON.stringify({ path: `src/${name}.ts` });
  return { calls: [{ name: 'read_file', input, result: listingOf(name, lines) }] };
}

/** Returns a view of a chat in which the messages from `from` on stay, and those in `stays`. Ids contain the size of the original. */
export function viewOfChat(
  body: Uint8Array,
  from: number,
  { stays = [], ...change }: Partial<FoldView> & { readonly stays?: readonly number[] } = {},
): FoldView {
  return foldView(readChat(body), {
    protects: {
      message: (index) => index >= from || stays.includes(index),
      part: () => false,
      recalled: () => false,
    },
    idOf: (original) => `mem_${String(original.length).padStart(16, '0')}`,
    ...change,
  });
}

/** Returns the contents of the messages that are sent after these edits. */
export function contentsAfter(view: FoldView, edits: readonly Edit[]): readonly unknown[] {
  const { body } = written(view.conversation, withoutTakenIn([...view.edits, ...edits]));
  const { messages } = JSON.parse(new TextDecoder().decode(body)) as { messages: { content: unknown }[] };
  return messages.map(({ content }) => content);
}

/** Returns a view in which four characters are one token, so that expected counts are easy to compute. */
export function foldView(conversation: Conversation, change: Partial<FoldView> = {}): FoldView {
  const text = (value: string) => Math.ceil(value.length / 4);
  const span = (bytes: { readonly start: number; readonly end: number }) =>
    Math.ceil((bytes.end - bytes.start) / 4);
  return {
    conversation,
    edits: [],
    shrunk: () => undefined,
    excess: { unit: 'tokens', amount: 1_000_000 },
    isForced: false,
    isHistoryKept: false,
    measure: {
      text,
      // oxlint-disable-next-line require-yield
      *textInSteps(value) {
        return text(value);
      },
      part: (_block, part) => span(part.span),
      media: (_block, media) => span(media.span),
      message: (index) => span(conversation.messages[index]!.span),
    },
    protects: { message: () => false, part: () => false, recalled: () => false },
    mayEdit: (edit) => openaiChat.rules.mayEdit(conversation, edit),
    idOf: (original) => `mem_${sha256(original).slice(0, 16)}`,
    recallTool: 'read_memory',
    minResultBytes: 1_000,
    reportCompression: () => {},
    ...change,
  };
}

/** Declares the laws every strategy must keep, on random conversations. */
export function strategySuite(strategy: Strategy): void {
  describe(`${strategy.name} as a strategy`, () => {
    it('proposes the same edits for the same view', () => {
      fc.assert(
        fc.property(conversations, (body) => {
          expect(strategy.propose(foldView(readChat(body)))).toEqual(
            strategy.propose(foldView(readChat(body))),
          );
        }),
      );
    });

    it('leaves a valid conversation, calls and results paired', () => {
      fc.assert(
        fc.property(conversations, fc.nat(3_000), (body, amount) => {
          const conversation = readChat(body);
          const after = written(
            conversation,
            strategy.propose(foldView(conversation, { excess: { unit: 'tokens', amount } })),
          );
          expect(openaiChat.rules.problems(after)).toEqual([]);
          expect(pairCalls(after).orphans).toEqual([]);
        }),
      );
    });

    it('never proposes to edit protected messages', () => {
      fc.assert(
        fc.property(conversations, fc.array(fc.nat(12)), (body, kept) => {
          const conversation = readChat(body);
          const protects: Protection = {
            message: (index) => kept.includes(index),
            part: () => false,
            recalled: () => false,
          };
          const edits = strategy.propose(foldView(conversation, { protects }));
          const touched = edits.flatMap((edit) =>
            edit.kind === 'replace-text'
              ? [edit.at.message]
              : edit.kind === 'insert-message'
                ? []
                : [edit.message],
          );
          if (strategy.reach === 'history')
            expect(touched.filter((index) => kept.includes(index))).toEqual([]);
        }),
      );
    });

    it('gives every removal an id that identifies its original', () => {
      fc.assert(
        fc.property(conversations, (body) => {
          const conversation = readChat(body);
          const view = foldView(conversation);
          const edits = withOriginalIds(conversation, strategy.propose(view), view.idOf);
          const originals = originalsOf(conversation, edits);
          for (const edit of edits) {
            if (edit.kind === 'insert-message') continue;
            expect(view.idOf(originals.get(edit.memory!)!)).toBe(edit.memory);
          }
        }),
      );
    });

    it('proposes nothing twice', () => {
      fc.assert(
        fc.property(conversations, (body) => {
          const conversation = readChat(body);
          const edits = strategy.propose(foldView(conversation));
          const again = strategy.propose(foldView(conversation, { edits }));
          const places = (list: typeof edits) =>
            list
              .filter((edit) => edit.kind !== 'insert-message')
              .map((edit) => ({ ...edit, stub: '', input: '', memory: '' }));
          for (const place of places(again)) expect(places(edits)).not.toContainEqual(place);
        }),
      );
    });
  });
}

/** Returns the conversation as it would be sent with these edits. */
export function written(
  conversation: Conversation,
  edits: Parameters<typeof openaiChat.write>[1],
): Conversation {
  return openaiChat.read(openaiChat.write(conversation, edits), freshReading());
}

const texts = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.nat(6_000).map((length) => 'line of a log\n'.repeat(Math.ceil(length / 14)).slice(0, length)),
  fc.constantFrom("Error: tool 'nope' not found", 'Unknown tool: nope'),
);

const inputs = fc.oneof(
  fc.constant('{}'),
  fc.tuple(texts, texts).map(([path, content]) => JSON.stringify({ path, content, times: [1] })),
);

const steps: fc.Arbitrary<Step> = fc.oneof(
  texts.map((user): Step => ({ user })),
  texts.map((assistant): Step => ({ assistant: `${assistant}.` })),
  fc
    .array(fc.record({ name: fc.constantFrom('read_file', 'run', 'nope'), input: inputs, result: texts }), {
      minLength: 1,
      maxLength: 3,
    })
    .map((calls): Step => ({ calls })),
);

const conversations: fc.Arbitrary<Uint8Array> = fc
  .array(steps, { maxLength: 12 })
  .map((list) => chatBody([{ system: 'Be brief.' }, ...list], { tools: ['read_file', 'run'] }));
