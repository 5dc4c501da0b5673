/** Mutates a valid body as hostile or unlucky clients would. */
import { containersIn, copyOf, type Member, memberOf, type Tree, treeOf } from './json-tree.ts';
import type { Random } from './random.ts';

export type Format = 'chat' | 'messages' | 'responses' | 'gemini';

type Mutation = (body: Tree, random: Random, format: Format) => void;

const listKeys: Readonly<Record<Format, string>> = {
  chat: 'messages',
  messages: 'messages',
  responses: 'input',
  gemini: 'contents',
};

/** Applies `count` random mutations to the body in place and returns their names. */
export function mutate(body: Tree, random: Random, format: Format, count: number): readonly string[] {
  return Array.from({ length: count }, () => {
    const name = random.pick(names);
    mutations[name]!(body, random, format);
    return name;
  });
}

const oddValues: readonly unknown[] = [
  null,
  '',
  ' ',
  '\ud83d',
  '__proto__',
  0,
  -1,
  1e308,
  true,
  [],
  {},
  [null],
  ['a'],
  { type: 'text' },
  { text: 'a' },
];
const rawValues = ['1e400', '-0', '12345678901234567890', '"\\ud83d\\u0000"', '0.10000000000000000001'];

const mutations: Readonly<Record<string, Mutation>> = {
  'key twice': (body, random, format) => repeatKey(body, random, format, (value) => copyOf(value)),
  'key twice, first odd': (body, random, format) =>
    repeatKey(body, random, format, () => treeOf(random.pick(oddValues))),
  'proto key': (body, random, format) => {
    const object = someObject(body, random, format);
    object?.splice(random.below(object.length + 1), 0, {
      key: random.pick(['__proto__', 'constructor', '', '\ud83d']),
      value: treeOf(random.pick(oddValues)),
    });
  },
  'member order': (body, random, format) => {
    const object = someObject(body, random, format);
    object?.push(...object.splice(0, random.below(object.length)));
  },
  'message gone': (body, random, format) => {
    const list = messagesIn(body, format);
    if (list.length > 1) list.splice(random.below(list.length), 1);
  },
  'message twice': (body, random, format) => {
    const list = messagesIn(body, format);
    if (list.length > 0) list.splice(random.below(list.length), 0, copyOf(random.pick(list)));
  },
  'messages swapped': (body, random, format) => {
    const list = messagesIn(body, format);
    const at = random.below(Math.max(1, list.length - 1));
    if (list[at + 1]) list.splice(at, 2, list[at + 1]!, list[at]!);
  },
  'element gone': (body, random, format) => {
    const list = someArray(body, random, format);
    if (list && list.length > 1) list.splice(random.below(list.length), 1);
  },
  'element twice': (body, random, format) => {
    const list = someArray(body, random, format);
    if (list && list.length > 0) list.splice(random.below(list.length), 0, copyOf(random.pick(list)));
  },
  'member gone': (body, random, format) => {
    const object = someObject(body, random, format);
    if (object) object.splice(random.below(object.length), 1);
  },
  'value odd': (body, random, format) => {
    const object = someObject(body, random, format);
    if (object && object.length > 0) random.pick(object).value = treeOf(random.pick(oddValues));
  },
  'value raw': (body, random, format) => {
    const object = someObject(body, random, format);
    if (object && object.length > 0)
      random.pick(object).value = { kind: 'text', text: random.pick(rawValues) };
  },
  'no tools': (body) => drop(body, 'tools'),
  'tools loaded': (body, random, format) => loadTools(body, random, format),
  'functions before tools': (body, _random, format) => {
    if (format === 'chat') asFunctions(body);
  },
  'content as text': (body, random, format) => {
    for (const message of messagesIn(body, format)) {
      const content = memberOf(message, 'content');
      if (content?.kind !== 'text' || !content.text.startsWith('"') || content.text === '""') continue;
      if (random.chance(0.5) && message.kind === 'object') {
        const type =
          format === 'responses'
            ? memberOf(message, 'role')?.kind === 'text' &&
              (memberOf(message, 'role') as { text: string }).text === '"assistant"'
              ? 'output_text'
              : 'input_text'
            : 'text';
        const member = message.members.findLast(({ key }) => key === 'content')!;
        member.value = treeOf([{ type, text: JSON.parse(content.text) as unknown }]);
      }
    }
  },
  'response no object': (body, random, format) => {
    if (format !== 'gemini') return;
    const results = containersIn(body).flatMap((node) => {
      const result = memberOf(node, 'functionResponse');
      return result?.kind === 'object' ? [result] : [];
    });
    if (results.length === 0) return;
    const response = random.pick(results).members.find(({ key }) => key === 'response');
    if (response) response.value = treeOf(random.pick(['a text', ['a', 'list'], 5]));
  },
};

const names = Object.keys(mutations);

/** Picks an object, mostly in the messages, where calls and results are. */
function someObject(body: Tree, random: Random, format: Format): Member[] | undefined {
  const objects = containersIn(random.chance(0.9) ? listIn(body, format) : body).flatMap((node) =>
    node.kind === 'object' && node.members.length > 0 ? [node.members] : [],
  );
  return objects.length === 0 ? undefined : random.pick(objects);
}

function someArray(body: Tree, random: Random, format: Format): Tree[] | undefined {
  const arrays = containersIn(listIn(body, format)).flatMap((node) =>
    node.kind === 'array' ? [node.items] : [],
  );
  return arrays.length === 0 ? undefined : random.pick(arrays);
}

function repeatKey(body: Tree, random: Random, format: Format, first: (value: Tree) => Tree): void {
  const object = someObject(body, random, format);
  if (!object) return;
  const member = random.pick(object);
  object.splice(random.below(object.indexOf(member) + 1), 0, { key: member.key, value: first(member.value) });
}

function listIn(body: Tree, format: Format): Tree {
  return memberOf(body, listKeys[format]) ?? treeOf([]);
}

/** Returns the messages, to be changed in place. */
export function messagesIn(body: Tree, format: Format): Tree[] {
  const list = listIn(body, format);
  return list.kind === 'array' ? list.items : [];
}

function drop(body: Tree, name: string): void {
  if (body.kind !== 'object') return;
  const kept = body.members.filter(({ key }) => key !== name);
  body.members.splice(0, body.members.length, ...kept);
}

/** Returns true for a user message that is not a tool result. */
function isStart(message: Tree): boolean {
  const role = memberOf(message, 'role');
  return role?.kind === 'text' && role.text === '"user"' && !JSON.stringify(message).includes('tool_result');
}

/** Inserts a step that loads tools before a user message. */
function loadTools(body: Tree, random: Random, format: Format): void {
  const list = messagesIn(body, format);
  const starts = list.flatMap((message, at) => (isStart(message) ? [at] : []));
  const at = starts.length === 0 ? list.length : random.pick(starts);
  const id = `search_${list.length}_${at}`;
  const reference = { type: 'tool_reference', tool_name: `deferred_${at}` };
  const found = [reference, { type: 'text', text: 'A tool was found. '.repeat(random.below(80)) }];
  const steps: Readonly<Record<Format, readonly unknown[]>> = {
    messages: [
      { role: 'user', content: 'Find a tool.' },
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'find', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: found.slice(0, 1) }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Found.' }] },
    ],
    chat: [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'ToolSearch', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: id, content: [found[1]] },
    ],
    responses: [
      { type: 'tool_search_call', call_id: id, execution: 'client', arguments: {} },
      {
        type: 'tool_search_output',
        call_id: id,
        execution: 'client',
        tools: [{ type: 'function', name: id }],
      },
    ],
    gemini: [],
  };
  list.splice(at, 0, ...steps[format].map(treeOf));
}

/** Rewrites single calls and their results in the legacy form, as `function_call` and role `function`. */
function asFunctions(body: Tree): void {
  const list = messagesIn(body, 'chat');
  for (const [at, message] of list.entries()) {
    const calls = memberOf(message, 'tool_calls');
    const result = list[at + 1];
    if (calls?.kind !== 'array' || calls.items.length !== 1 || message.kind !== 'object') continue;
    const called = memberOf(calls.items[0], 'function');
    const name = memberOf(called, 'name');
    if (!called || !name || result?.kind !== 'object' || !memberOf(result, 'tool_call_id')) continue;
    const content = memberOf(result, 'content') ?? treeOf('');
    drop(message, 'tool_calls');
    message.members.push({ key: 'function_call', value: called });
    list[at + 1] = {
      kind: 'object',
      members: [
        { key: 'role', value: treeOf('function') },
        { key: 'name', value: name },
        { key: 'content', value: content },
      ],
    };
  }
}
