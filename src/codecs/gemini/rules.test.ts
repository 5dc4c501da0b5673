import { describe, expect, it } from 'vitest';
import type { Edit } from '../../conversation/edit.ts';
import { newReading, view } from '../../../test/support/codec-suite/views.ts';
import { drop, dropPart, insert, replace } from '../../../test/support/edits.ts';
import { gemini, geminiFor } from './index.ts';

const { rules } = gemini;
const user = (...parts: readonly unknown[]) => ({ role: 'user', parts });
const model = (...parts: readonly unknown[]) => ({ role: 'model', parts });
const text = (said: string, more: object = {}) => ({ text: said, ...more });
const call = (id: string, more: object = {}) => ({ functionCall: { id, name: 'f', args: {} }, ...more });
const result = (id: string) => ({ functionResponse: { id, name: 'f', response: { output: 'r' } } });
const signed = { thoughtSignature: 's' };

function read(contents: readonly unknown[], name = 'gemini-3-pro') {
  const body = new TextEncoder().encode(JSON.stringify({ contents }));
  return geminiFor({ model: name, streaming: false }).read(body, newReading());
}
const broken = (contents: readonly unknown[], name?: string) =>
  rules.problems(read(contents, name)).map(({ rule, message }) => `${rule} ${message}`);

/** A finished turn and a running one. */
const contents = [
  user(text('one')),
  model(text('t', { thought: true }), text('a1'), call('c1', signed), call('c2')),
  user(result('c1'), result('c2')),
  model(text('a2', signed)),
  user(text('two')),
  model(text('t', { thought: true }), call('c3', signed), call('c4')),
  user(result('c3'), result('c4')),
];

describe('what may be edited', () => {
  const now = read(contents);
  const may = (edit: Edit) => rules.mayEdit(now, edit);

  it('includes unsigned texts, and results of every turn', () => {
    expect([replace(0), replace(1, 1), replace(2), replace(4), replace(6, 1)].map(may)).toEqual(
      Array(5).fill(true),
    );
    expect([replace(3), replace(1, 0), replace(1, 2)].map(may)).toEqual([false, false, false]);
  });

  it('includes the arguments of unsigned calls that have any', () => {
    const withoutArguments = { functionCall: { id: 'c5', name: 'f' } };
    const calling = read([...contents, model(withoutArguments)]);
    const replaceInput = (message: number, part: number): Edit => ({
      kind: 'replace-input',
      message,
      part,
      input: '{}',
      memory: 'm',
    });
    const places = [replaceInput(1, 3), replaceInput(5, 2), replaceInput(1, 2), replaceInput(7, 0)];
    expect(places.map((edit) => rules.mayEdit(calling, edit))).toEqual([true, true, false, false]);
  });

  it('includes any part of a finished turn, and parts of the current one that are neither signed nor thoughts', () => {
    expect([dropPart(1, 0), dropPart(1, 2), dropPart(1, 3), dropPart(3, 0)].map(may)).toEqual(
      Array(4).fill(true),
    );
    expect([dropPart(5, 0), dropPart(5, 1), dropPart(5, 2), dropPart(6, 1)].map(may)).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });

  it('includes a whole step, and nothing comes between a call and its result', () => {
    expect([drop(1), drop(2), drop(5), drop(6)].map(may)).toEqual(Array(4).fill(true));
    expect([insert(0), insert(1), insert(2), insert(6)].map(may)).toEqual([true, true, false, false]);
  });

  it('excludes calls that the provider ran, and unknown parts', () => {
    const odd = view(
      gemini,
      '{"contents":[{"parts":[{"executableCode":{}},{"inlineData":{}}]},{"parts":[],"parts":[]}]}',
    );
    expect(
      [dropPart(0, 0), dropPart(0, 1), drop(1), drop(0)].map((edit) => rules.mayEdit(odd, edit)),
    ).toEqual([false, false, false, true]);
  });

  it('needs no further edits', () => {
    expect(rules.complete(now, [drop(0)])).toEqual({ status: 'ok', edits: [drop(0)] });
  });
});

describe('user and model', () => {
  it('alternate', () => {
    expect(broken(contents)).toEqual([]);
    expect(broken([user(text('a')), user(text('b'))])).toEqual(['roles-alternate 1']);
  });

  it('but the model may have several contents in a row, as the official client keeps a stream', () => {
    const pieces = [user(text('a')), model(text('b')), model(call('c1', signed)), model(text(''))];
    expect(broken([...pieces, user(result('c1'))])).toEqual([]);
  });

  it('and words of the user may come right after results', () => {
    const [a, b, c] = contents;
    expect(broken([a, b, c, user(text('quick'))])).toEqual([]);
    expect(broken([a, b, user(result('c1'), result('c2'), text('so')), user(text('quick'))])).toEqual([
      'roles-alternate 3',
    ]);
  });
});

describe('signatures', () => {
  const unsignedNow = [...contents.slice(0, 5), model(call('c3'), call('c4', signed)), contents[6]];
  const unsignedThen = [contents[0], model(call('c1'), call('c2')), ...contents.slice(2)];

  it('are required on the first call of each step of the current turn', () => {
    expect(broken(unsignedNow)).toEqual(['calls-signed 5']);
    expect(broken(unsignedThen)).toEqual([]);
  });

  it('are required by newer models only', () => {
    expect(broken(unsignedNow, 'gemini-2.5-pro')).toEqual([]);
    expect(broken(unsignedNow, 'gemini-3.1-flash')).toEqual(['calls-signed 5']);
    expect(broken(unsignedNow, 'gemini-10-pro')).toEqual(['calls-signed 5']);
  });
});

describe('results', () => {
  const g = (kind: 'functionCall' | 'functionResponse', name: string) => ({
    [kind]: { name, ...(kind === 'functionCall' ? { args: {} } : { response: {} }) },
  });

  it('without ids follow their calls in name, order and number', () => {
    const asked = [user(text('a')), model(g('functionCall', 'f'), g('functionCall', 'g'))];
    const answered = (...names: readonly string[]) =>
      broken([...asked, user(...names.map((name) => g('functionResponse', name)))], 'gemini-2.5-pro');
    expect(answered('f', 'g')).toEqual([]);
    expect(answered('g', 'f')).toEqual(['results-in-order 2']);
    expect(answered('f')).toEqual(['calls-answered-next 1']);
    expect(answered('f', 'f')).toEqual(['calls-answered-next 1', 'one-result-a-call 2']);
    expect(answered('f', 'h')).toEqual(['calls-answered-next 1', 'results-answer-calls 2']);
  });

  it('with ids may come in any order', () => {
    expect(broken([...contents.slice(0, 2), user(result('c2'), result('c1')), ...contents.slice(3)])).toEqual(
      [],
    );
  });
});
