import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Conversation } from '../../conversation/conversation.ts';
import { bytesOf } from '../../conversation/messages.ts';
import type { Edit } from '../../conversation/edit.ts';
import { editSeeds, editsFrom, requests } from '../../../test/support/codec-suite/arbitrary.ts';
import { geminiFixture } from '../../../test/support/codec-suite/gemini/fixture.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import { drop, insert } from '../../../test/support/edits.ts';
import { gemini } from './index.ts';
import { write, writeApart } from './request.ts';

const kinds = ['replace-text', 'drop-part', 'drop-message', 'insert-message'] as const;

const user = (said: string) => ({ role: 'user', parts: [{ text: said }] });
const model = (said: string) => ({ role: 'model', parts: [{ text: said }] });
const asks = { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] };
const answers = { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: 'r' } } }] };

/** Returns the written contents, one a line. */
function written(contents: readonly unknown[], edits: readonly Edit[]): readonly string[] {
  const body = write(view(gemini, JSON.stringify({ contents })), edits);
  const after = JSON.parse(shown(body)) as { contents: { role: string; parts: Record<string, string>[] }[] };
  return after.contents.map(
    ({ role, parts }) => `${role}: ${parts.map((part) => part['text'] ?? Object.keys(part)[0]).join(', ')}`,
  );
}

describe('an inserted message', () => {
  it('is joined with the user content before it', () => {
    expect(written([user('a'), model('b'), user('c')], [insert(1)])).toEqual([
      'user: a, stub',
      'model: b',
      'user: c',
    ]);
  });

  it('or after it', () => {
    expect(written([user('a'), model('b'), user('c')], [insert(2)])).toEqual([
      'user: a',
      'model: b',
      'user: stub, c',
    ]);
    expect(written([user('a'), model('b'), user('c')], [insert(0), insert(0, 'more')])).toEqual([
      'user: stub, more, a',
      'model: b',
      'user: c',
    ]);
  });

  it('or stays alone between contents of the model', () => {
    expect(written([user('a'), model('b'), model('c')], [insert(2)])).toEqual([
      'user: a',
      'model: b',
      'user: stub',
      'model: c',
    ]);
  });

  it('stays separate from results, but is joined with following words of the user', () => {
    const before = [user('a'), asks, answers];
    expect(written([...before, model('b')], [insert(3)])).toEqual([
      'user: a',
      'model: functionCall',
      'user: functionResponse, stub',
      'model: b',
    ]);
    expect(written([...before, model('b'), user('c')], [drop(3), insert(3)])).toEqual([
      'user: a',
      'model: functionCall',
      'user: functionResponse',
      'model: [Earlier replies are folded.]',
      'user: stub, c',
    ]);
  });
});

describe('a dropped message', () => {
  it('leaves no neighbors of one side', () => {
    const contents = [user('a'), model('b'), user('c'), model('d'), user('e')];
    expect(written(contents, [drop(1)])).toEqual(['user: a, c', 'model: d', 'user: e']);
    expect(written(contents, [drop(2)])).toEqual(['user: a', 'model: b, d', 'user: e']);
    expect(written(contents, [drop(1), drop(3), insert(1)])).toEqual(['user: a, stub, c, e']);
    expect(written(contents, [drop(1), drop(2), drop(3), insert(1)])).toEqual(['user: a, stub, e']);
  });

  it('keeps neighbors that the client sent, and contents that cannot be joined without a loss', () => {
    expect(written([user('a'), user('b'), model('c'), user('d')], [drop(2)])).toEqual([
      'user: a',
      'user: b, d',
    ]);
    const odd = { ...user('c'), weight: 1 };
    const folded = 'model: [Earlier replies are folded.]';
    expect(written([user('a'), model('b'), odd], [drop(1)])).toEqual(['user: a', folded, 'user: c']);
    expect(written([{ ...user('a'), weight: 1 }, model('b'), user('c')], [drop(1)])).toEqual(['user: a, c']);
    const single = { role: 'user', parts: { text: 'a' } };
    expect(written([{ role: 'user', parts: [] }, model('b'), user('c')], [drop(1)])).toEqual([
      'user: ',
      folded,
      'user: c',
    ]);
    const kept = shown(
      write(view(gemini, JSON.stringify({ contents: [single, model('b'), user('c')] })), [drop(1)]),
    );
    const between = model('[Earlier replies are folded.]');
    expect(kept).toBe(JSON.stringify({ contents: [single, between, user('c')] }));
  });
});

describe('joining', () => {
  it('moves no part and changes no byte of a part', () => {
    fc.assert(
      fc.property(
        requests({ open: true }),
        editSeeds(kinds),
        fc.constantFrom(undefined, 1),
        (request, seeds, space) => {
          const body = JSON.stringify(JSON.parse(shown(geminiFixture.body(request))), null, space);
          const conversation = view(gemini, body);
          const edits = editsFrom(conversation, seeds);
          const [joined, apart] = [write(conversation, edits), writeApart(conversation, edits)];
          const isFolded = (part: string) => part === 'model {"text":"[Earlier replies are folded.]"}';
          expect(partsIn(view(gemini, joined)).filter((part) => !isFolded(part))).toEqual(
            partsIn(view(gemini, apart)),
          );
          expect(outsideContents(joined)).toEqual(outsideContents(apart));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('leaves no more neighbors than the client sent, as long as calls and results stay together', () => {
    fc.assert(
      fc.property(requests(), editSeeds(['drop-message', 'insert-message']), (request, seeds) => {
        const conversation = view(gemini, geminiFixture.body(request));
        const isPaired = ({ message }: { readonly message: number }) =>
          conversation.messages[message]!.parts.some(({ type }) => type.startsWith('tool-'));
        const edits = editsFrom(conversation, seeds)
          .filter((edit) => gemini.rules.mayEdit(conversation, edit))
          .filter((edit) => edit.kind !== 'drop-message' || !isPaired(edit));
        expect(neighbours(view(gemini, write(conversation, edits)))).toBeLessThanOrEqual(
          neighbours(conversation),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('gives the same bytes for the beginning of a longer conversation', () => {
    fc.assert(
      fc.property(requests(), requests(), editSeeds(kinds), (one, other, seeds) => {
        const conversation = view(gemini, geminiFixture.body(one));
        const last = conversation.messages.length - 1;
        const edits = editsFrom(conversation, seeds).filter(
          (edit) => edit.kind !== 'drop-message' || edit.message !== last,
        );
        const short = write(
          conversation,
          edits.filter((edit) => edit.kind !== 'drop-part'),
        );
        const turns = [...one.turns, ...other.turns.filter((turn) => turn.say !== 'system')];
        const long = write(
          view(gemini, geminiFixture.body({ ...one, turns })),
          edits.filter((edit) => edit.kind !== 'drop-part'),
        );
        const end = view(gemini, short).messages.at(-1)!.span.end;
        expect(shown(long.subarray(0, end))).toBe(shown(short.subarray(0, end)));
      }),
      { numRuns: 300 },
    );
  });
});

function partsIn({ body, messages }: Conversation): readonly string[] {
  return messages.flatMap((message) =>
    message.parts.map(
      ({ span }) =>
        `${message.role === 'assistant' ? 'model' : 'user'} ${shown(bytesOf(body, message, span))}`,
    ),
  );
}

function outsideContents(body: Uint8Array): unknown {
  const { contents, ...others } = JSON.parse(shown(body)) as Record<string, unknown>;
  return [Array.isArray(contents), others];
}

function neighbours(conversation: Conversation): number {
  return gemini.rules.problems(conversation).filter(({ rule }) => rule === 'roles-alternate').length;
}
