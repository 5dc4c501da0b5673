import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { messagesFixture } from '../../../test/support/codec-suite/anthropic-messages/fixture.ts';
import { requestsFor } from '../../../test/support/codec-suite/arbitrary.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import { messagesRefusal } from '../../../test/support/fake-provider/messages-rules.ts';
import type { JsonObject } from '../../../test/support/fake-provider/script.ts';
import { cacheMarks } from './cache-marks.ts';
import { anthropicMessages } from './index.ts';

const encoder = new TextEncoder();
const mark = ',"cache_control":{"type":"ephemeral"}';
const set = (body: string, behind: readonly number[]) =>
  shown(cacheMarks.set(encoder.encode(body), behind).body);
const user = (text: string) => `{"role":"user","content":"${text}"}`;
const block = (text: string, more = '') => `{"type":"text","text":"${text}"${more}}`;

describe('cache marks', () => {
  it('are set on the last system block and on the last block of each named message', () => {
    const body = (one: string, two: string, three: string) => `{ "model":"m", "messages":[
      {"role":"user","content":[${block('a')}, ${block('b', one)} ]},
      {"role":"assistant","content":[ {"type":"tool_use","id":"x","name":"f","input":{"n":1.0}} ]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"r"${two}}]}
    ],"system":[${block('s')},${block('t', three)}],"tools":[{"name":"f","input_schema":{}}] }`;
    expect(set(body('', '', ''), [0, 2])).toBe(body(mark, mark, mark));
    expect(cacheMarks.set(encoder.encode(body('', '', '')), [0, 2]).count).toBe(3);
  });

  it('turn a string into one text block, which means the same', () => {
    const body = `{"system":"Be \\u0062rief.","messages":[${user('Go \\"on\\"')}]}`;
    const marked = set(body, [0]);
    expect(marked).toBe(
      `{"system":[${block('Be \\u0062rief.', mark)}],"messages":[{"role":"user","content":[${block('Go \\"on\\"', mark)}]}]}`,
    );
    const [before, after] = [body, marked].map((text) => view(anthropicMessages, text));
    expect(after!.messages[0]!.canonical).toBe(before!.messages[0]!.canonical);
  });

  it('are set on the last tool without a system text, but not on tools that are loaded on demand', () => {
    const tools = (more: string) =>
      `"tools":[{"name":"f"},{"name":"g","input_schema":{}${more}},{"name":"h","defer_loading":true}]`;
    expect(set(`{"messages":[],${tools('')}}`, [])).toBe(`{"messages":[],${tools(mark)}}`);
    const systems = ['null', '""', '[]', `[${block('')}]`];
    for (const system of systems)
      expect(set(`{"system":${system},${tools('')},"messages":[]}`, [])).toBe(
        `{"system":${system},${tools(mark)},"messages":[]}`,
      );
  });

  it('are set as near the end as allowed: not on thinking, empty texts, unknown blocks and system messages', () => {
    const thinking = '{"type":"thinking","thinking":"t","signature":"s"}';
    const body = (more: string) =>
      `{"messages":[{"role":"user","content":[${block('a', more)},{"type":"odd"},${block('')}]},{"role":"assistant","content":[${thinking}]},{"role":"system","content":"Note."}]}`;
    expect(set(body(''), [2])).toBe(body(mark));
    expect(set(body(''), [0, 2])).toBe(body(mark));
    expect(cacheMarks.set(encoder.encode(body('')), [0, 2]).count).toBe(1);
  });

  it('are not set when nothing can be marked: the same array comes back', () => {
    const body = encoder.encode('{"messages":[{"role":"user","content":[{"type":"odd"}]}]}');
    expect(cacheMarks.set(body, [0])).toEqual({ body, count: 0 });
    expect(cacheMarks.set(body, [0]).body).toBe(body);
  });

  it('are accepted by the provider and change no content, in any conversation', () => {
    fc.assert(
      fc.property(requestsFor(messagesFixture), fc.nat(), fc.nat(), (request, one, other) => {
        const body = messagesFixture.body(request);
        const before = view(anthropicMessages, body);
        const behind = [one, other].map((at) => at % before.messages.length);
        const { body: marked, count } = cacheMarks.set(body, behind);
        expect(cacheMarks.set(body, behind, before.messages)).toEqual({ body: marked, count });
        const moved = encoder.encode(shown(body).replace('{', '{"metadata":{"user_id":"somebody"},'));
        expect(cacheMarks.set(moved, behind, before.messages)).toEqual(cacheMarks.set(moved, behind));
        expect(count).toBeLessThanOrEqual(3);
        const after = view(anthropicMessages, marked);
        expect(after.messages.map(({ canonical }) => canonical)).toEqual(
          before.messages.map(({ canonical }) => canonical),
        );
        expect(unmarked(JSON.parse(shown(marked)))).toEqual(unmarked(JSON.parse(shown(body))));
        expect([before.marked, after.marked]).toEqual([false, count > 0]);
        expect(refusalOf(marked)).toBe(refusalOf(body));
      }),
    );
  });
});

const withoutMarks = Object.entries(messagesFixture.recorded).filter(
  ([, body]) => !view(anthropicMessages, body).marked,
);

it.each(withoutMarks)('cache marks are accepted in recorded client requests: %s', (_, body) => {
  const { messages } = view(anthropicMessages, body);
  const { body: marked, count } = cacheMarks.set(body, [messages.length - 1]);
  expect(count).toBeGreaterThan(0);
  expect(unmarked(JSON.parse(shown(marked)))).toEqual(unmarked(JSON.parse(shown(body))));
  expect(refusalOf(marked)).toBe(refusalOf(body));
});

describe("a client's own marks", () => {
  const ephemeral = '"cache_control":{"type":"ephemeral"}';
  it.each<[string, string]>([
    ['at the top', `{"messages":[],${ephemeral}}`],
    ['on a tool', `{"messages":[],"tools":[{"name":"f",${ephemeral}}]}`],
    ['on system', `{"messages":[],"system":[${block('s', mark)}]}`],
    ['on a block', `{"messages":[{"role":"user","content":[${block('a', mark)}]}]}`],
    [
      'in a result',
      `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[${block('a', mark)}]}]}]}`,
    ],
  ])('are seen %s', (_, body) => {
    expect(view(anthropicMessages, body).marked).toBe(true);
  });

  it('are none if they are null', () => {
    const none = ',"cache_control":null';
    const body = `{"messages":[{"role":"user","content":[${block('a', none)}]}]${none}}`;
    expect(view(anthropicMessages, body)).toMatchObject({ marked: false, keptMs: undefined });
  });

  const marked = (ttl?: string) => `,"cache_control":{"type":"ephemeral"${ttl ? `,"ttl":"${ttl}"` : ''}}`;
  const message = (...marks: readonly string[]) =>
    `{"role":"user","content":[${marks.map((more) => block('a', more)).join(',')}]}`;
  const system = (more: string) => `"system":[${block('s', more)}]`;
  it.each<[string, string, number | undefined]>([
    ['usually', `{"messages":[${message(marked())}]}`, 5],
    ['the longest of them', `{"messages":[${message(marked('1h'), marked('5m'))},${message(marked())}]}`, 60],
    ['at the top', `{"messages":[]${marked('1h')}}`, 60],
    ['on a tool', `{"messages":[],"tools":[{"name":"f"${marked('1h')}}]}`, 60],
    [
      'on system, with shorter ones after it',
      `{${system(marked('1h'))},"messages":[${message(marked())}]}`,
      60,
    ],
    [
      'on a block in a result',
      `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[${block('a', marked('1h'))}]}]}]}`,
      60,
    ],
    ['not without marks', `{"messages":[${message('')}]}`, undefined],
  ])('say for how long the prompt is kept, and whether that costs more to write: %s', (_, body, minutes) => {
    const { keptMs, writesLong } = view(anthropicMessages, body);
    expect({ minutes: keptMs && keptMs / 60_000, writesLong }).toEqual({
      minutes,
      writesLong: minutes === 60,
    });
  });

  it('are not confused with members of a tool or of the content', () => {
    const input = `{"type":"tool_use","id":"x","name":"f","input":{${ephemeral}}}`;
    const body = `{"messages":[{"role":"assistant","content":[${input},${block('\\"cache_control\\":{}')}]}],"tools":[{"name":"f","input_schema":{"properties":{${ephemeral}}}}]}`;
    expect(view(anthropicMessages, body).marked).toBe(false);
  });
});

function refusalOf(body: Uint8Array): string | undefined {
  const needs = { maxTokens: true, strictRoles: false };
  return messagesRefusal(JSON.parse(shown(body)) as JsonObject, needs)?.message;
}

/** Removes the marks, and turns each string content into a text block. */
function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([key]) => key !== 'cache_control');
  return Object.fromEntries(
    members.map(([key, member]) => [
      key,
      (key === 'content' || key === 'system') && typeof member === 'string' && member !== ''
        ? [{ type: 'text', text: member }]
        : unmarked(member),
    ]),
  );
}
