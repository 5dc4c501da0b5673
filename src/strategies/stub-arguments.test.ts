import { describe, expect, it } from 'vitest';
import { inputOf } from '../conversation/messages.ts';
import { originalsOf } from '../conversation/edit.ts';
import { resolveRecall } from '../recall/resolve.ts';
import { chatBody, readChat, type Step } from '../../test/support/chat-conversation.ts';
import { foldView, strategySuite, written } from '../../test/support/strategy-suite.ts';
import { stubArguments } from './offload.ts';

strategySuite(stubArguments());

const file = 'const x = 1;\n'.repeat(100);
const write = (input: string, result = 'ok'): Step => ({ calls: [{ name: 'write_file', input, result }] });
const long = write(JSON.stringify({ path: 'src/app.ts', content: file }));
const newest = write('{}');

/** Returns the arguments that would be sent, by message. */
function sentInputs(steps: readonly Step[], change: Parameters<typeof foldView>[1] = {}) {
  const conversation = readChat(chatBody(steps));
  const after = written(conversation, stubArguments().propose(foldView(conversation, change)));
  return after.messages.flatMap((message) =>
    message.parts.flatMap((part) => (part.type === 'tool-call' ? [inputOf(after.body, message, part)] : [])),
  );
}

describe('stub-arguments', () => {
  it('replaces each long text by a stub; everything else keeps its spelling', () => {
    const input = `{ "n": 1.0,\t"id":12345678901234567890,"content":${JSON.stringify(file)}, "edits":[{"new":${JSON.stringify(file)}}] }`;
    const conversation = readChat(chatBody([{ user: 'Go' }, write(input), newest]));
    const view = foldView(conversation, { idOf: () => 'mem_0123456789abcdef' });
    const stub = (path: string) =>
      '"[101 lines were written here; this note stands in their place and is not what was written. ' +
      `read_memory {\\"id\\":\\"mem_0123456789abcdef\\",\\"path\\":\\"${path}\\"} shows it]"`;
    expect(stubArguments().propose(view)).toEqual([
      {
        kind: 'replace-input',
        message: 1,
        part: 0,
        memory: 'mem_0123456789abcdef',
        input: `{ "n": 1.0,\t"id":12345678901234567890,"content":${stub('$.content')}, "edits":[{"new":${stub('$.edits[0].new')}}] }`,
      },
    ]);
  });

  it('keeps the original that the stub refers to', async () => {
    const input = JSON.stringify({ 'the "key"': file, plain: `${file}other` });
    const conversation = readChat(chatBody([write(input), newest]));
    const edits = stubArguments().propose(foldView(conversation));
    const originals = originalsOf(conversation, edits);
    const [sent] = sentInputs([write(input), newest]);
    const asked = Object.values(JSON.parse(sent!) as Record<string, string>).map(
      (stub) => /read_memory (\{.*\}) shows it\]$/.exec(stub)![1]!,
    );
    const read = asked.map((argumentsJson) =>
      resolveRecall({
        argumentsJson,
        lookup: (id) => new TextDecoder().decode(originals.get(id)),
        maxTokens: 10_000,
        countTokens: (text) => text.length / 4,
      }),
    );
    expect(await Promise.all(read)).toEqual([file, `${file}other`]);
  });

  it('replaces the oldest first, stops when enough is saved, and keeps calls whose result is protected, and calls without result', () => {
    const steps: readonly Step[] = [{ user: 'Go' }, long, long, long];
    const isStubbed = (input: string) => input.includes('were written here');
    const protects = { message: (index: number) => index === 6, part: () => false, recalled: () => false };
    expect(sentInputs(steps, { protects }).map(isStubbed)).toEqual([true, true, false]);
    expect(
      sentInputs([long, newest, { calls: [{ name: 'run', input: JSON.stringify({ a: file }) }] }]).map(
        isStubbed,
      ),
    ).toEqual([true, false, false]);
    const excess = { unit: 'tokens', amount: 200 } as const;
    expect(sentInputs(steps, { excess }).map(isStubbed)).toEqual([true, false, false]);
  });

  it('keeps arguments below the threshold, without an object, without JSON, or with duplicate names', () => {
    const left = [
      JSON.stringify({ content: 'x'.repeat(999), more: 'y'.repeat(999) }),
      JSON.stringify(['x'.repeat(2_000)]),
      `{"content":"${'x'.repeat(2_000)}`,
      `{"a":"${'x'.repeat(2_000)}","a":"${'y'.repeat(2_000)}"}`,
      `{"a":"${'x'.repeat(2_000)}","b":"\ud83d"}`,
    ];
    expect(sentInputs([...left.map((input) => write(input)), newest])).toEqual([...left, '{}']);
  });

  it('keeps pinned calls, recalls, and calls in protected messages', () => {
    const steps: readonly Step[] = [long, newest];
    const protects = { message: () => false, part: () => false, recalled: () => false };
    for (const kind of ['message', 'part', 'recalled'] as const)
      expect(sentInputs(steps, { protects: { ...protects, [kind]: () => true } })).toEqual(
        sentInputs(steps, { recallTool: undefined, mayEdit: () => false }),
      );
  });

  it('proposes nothing against too many messages', () => {
    const excess = { unit: 'messages', amount: 5 } as const;
    expect(stubArguments().propose(foldView(readChat(chatBody([long, newest])), { excess }))).toEqual([]);
  });
});
