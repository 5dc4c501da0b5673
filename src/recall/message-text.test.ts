import { describe, expect, it } from 'vitest';
import { argumentLines, messagePage, spellCall } from './read-original.ts';
import { readOriginal } from './read-original.ts';

const code = 'func main() {\n\tfmt.Println("hello")\n}\n';
const edit = { file_path: 'src/a.go', replace_all: false, content: code };

const page = [
  '── 1 of 3 · user ──',
  'Write it.',
  '── 2 of 3 · assistant ──',
  'I write it now.',
  '── 2 of 3 · call Write src/a.go replace_all=false content="func main() { fmt.Println("hello") }" ──',
  'file_path: src/a.go',
  'replace_all: false',
  'content:',
  'func main() {',
  '\tfmt.Println("hello")',
  '}',
  '── 3 of 3 · result of Write src/a.go replace_all=false content="func main() { fmt.Println("hello") }" ──',
  'written',
  '',
].join('\n');

const call = { name: 'Write', arguments: JSON.stringify(edit) };

describe('removed messages', () => {
  it.each([
    [
      'messages with lists of calls',
      [
        { role: 'user', content: 'Write it.' },
        {
          role: 'assistant',
          content: 'I write it now.',
          tool_calls: [{ id: 'call_1', type: 'function', function: call }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'written' },
      ],
    ],
    [
      'messages of blocks',
      [
        { role: 'user', content: [{ type: 'text', text: 'Write it.' }] },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'I write it now.' },
            { type: 'tool_use', id: 'call_1', name: 'Write', input: edit },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'call_1', content: [{ type: 'text', text: 'written' }] },
          ],
        },
      ],
    ],
  ])('are laid out as text, under headings without ids: %s', (_format, messages) => {
    expect(readOriginal(JSON.stringify(messages)).text).toBe(page);
  });

  it('may be items without a role, and parts without a type', () => {
    const items = [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Run it.' }] },
      { type: 'function_call', call_id: 'c1', name: 'run', arguments: '{"command":"npm test"}' },
      { type: 'function_call_output', call_id: 'c1', output: 'ok' },
      {
        role: 'model',
        parts: [{ text: 'Again.' }, { functionCall: { name: 'run', args: { command: 'go' } } }],
      },
      { role: 'user', parts: [{ functionResponse: { name: 'run', response: { output: 'done' } } }] },
    ];
    expect(readOriginal(JSON.stringify(items)).text).toBe(
      [
        '── 1 of 5 · user ──',
        'Run it.',
        '── 2 of 5 · call run "npm test" ──',
        'command: npm test',
        '── 3 of 5 · result of run "npm test" ──',
        'ok',
        '── 4 of 5 · model ──',
        'Again.',
        '── 4 of 5 · call run go ──',
        'command: go',
        '── 5 of 5 · result of run go ──',
        'output: done',
        '',
      ].join('\n'),
    );
  });

  it('stay JSON where nothing is known of them', () => {
    const odd = JSON.stringify([{ type: 'reasoning', n: 2512292042121, deep: [[[[[{ a: 1 }]]]]] }, 7]);
    expect(messagePage(odd, 0).text).toBe(
      `── 1 of 2 · reasoning ──\n${odd.slice(1, -3)}\n── 2 of 2 · message ──\n7\n`,
    );
  });

  it('have sections that begin behind their headings', () => {
    const { text, sections } = messagePage(JSON.stringify([{ role: 'user', content: 'Hi.' }]), 0);
    expect(sections.map(({ start, end, kind }) => [text.slice(start, end), kind])).toEqual([
      ['Hi.\n', 'user'],
    ]);
  });
});

describe('a call', () => {
  it('is spelled in one line, the first text bare', () => {
    expect(spellCall('Read', '{"limit":20,"file_path":"src/a.ts"}')).toBe('Read src/a.ts limit=20');
    expect(spellCall('Bash', JSON.stringify({ command: `echo ${'x'.repeat(200)}` }))).toBe(
      `Bash "echo ${'x'.repeat(85)}…"`,
    );
    expect(spellCall('list', '{}')).toBe('list');
    expect(spellCall('odd', 'no JSON')).toBe('odd "no JSON"');
  });

  it('has its arguments as text', () => {
    expect(argumentLines('{"n":1.0,"content":"a\\nb"}')).toBe('n: 1.0\ncontent:\na\nb');
    expect(argumentLines('["a"]')).toBe('["a"]');
  });
});
