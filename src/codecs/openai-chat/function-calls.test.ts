/** Tests the legacy function form: `functions`, `function_call` and messages of role `function`, in requests, replies and streams. */
import { describe, expect, it } from 'vitest';
import { chatRefusal } from '../../../test/support/fake-provider/chat-rules.ts';
import type { JsonObject } from '../../../test/support/fake-provider/script.ts';
import { outline } from '../../../test/support/codec-suite/outline.ts';
import { sseText } from '../../../test/support/codec-suite/sse.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import { testEngine } from '../../../test/support/test-engine.ts';
import { relayed, tailOf } from '../../../test/support/codec-suite/relay.ts';
import { openaiChat } from './index.ts';
import { hasStub } from '../../../test/support/stub-texts.ts';

const encoder = new TextEncoder();
const log = (at: number) => `log ${at}\n${'one line of the log\n'.repeat(150)}`;

function body(steps: number): Uint8Array {
  const step = (at: number) => [
    {
      role: 'assistant',
      content: null,
      function_call: { name: at % 2 === 0 ? 'clock' : 'look', arguments: `{"n":${at}}` },
    },
    { role: 'function', name: at % 2 === 0 ? 'clock' : 'look', content: log(at) },
  ];
  return encoder.encode(
    JSON.stringify({
      model: 'gpt-4o',
      messages: [
        { role: 'user', content: 'Look.' },
        ...Array.from({ length: steps }, (_, at) => step(at)).flat(),
      ],
      functions: [{ name: 'clock', parameters: {} }, { name: 'look' }],
    }),
  );
}

describe('a request in the legacy function form', () => {
  it('is read with its calls and results, paired by name and order, and the names of its functions', () => {
    const conversation = view(
      openaiChat,
      '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"r"}],"functions":[{"name":"f"}]}',
    );
    expect(outline(conversation)).toEqual([
      'beside: tool f',
      'user: "a"',
      'assistant: call #function f f("{}")',
      'tool: result #function f ["r"]',
    ]);
    expect(conversation.toolNames).toEqual(['f']);
    expect(openaiChat.rules.problems(conversation)).toEqual([]);
  });

  it('is folded, offered the recall tool among its functions, and stays valid', async () => {
    const { engine } = testEngine({
      triggerOptions: { tokenBudget: { triggerTokens: 5_000, targetTokens: 2_000 } },
    });
    const prepared = await engine.prepare({ codec: openaiChat, body: body(20), tenant: 't' });
    expect(prepared.outcome).toEqual({ status: 'compacted' });
    const sent = JSON.parse(shown(prepared.body)) as JsonObject & {
      messages: { role: string; name?: string; content: string; function_call?: { name: string } }[];
      functions: { name: string }[];
    };
    expect(chatRefusal(sent)).toBeUndefined();
    expect(sent.functions.map(({ name }) => name)).toEqual(['clock', 'look', 'read_memory']);
    expect(sent['tools']).toBeUndefined();
    for (const [at, message] of sent.messages.entries())
      if (message.function_call)
        expect(sent.messages[at + 1]).toMatchObject({ role: 'function', name: message.function_call.name });
    expect(
      sent.messages.filter(({ content }) => content !== null && hasStub(content)).length,
    ).toBeGreaterThan(0);
  });
});

const recall = '{"name":"read_memory","arguments":"{\\"id\\":\\"mem_a\\"}"}';

describe('a reply in the legacy function form', () => {
  const reply = openaiChat.readResponse(
    encoder.encode(
      `{"choices":[{"message":{"role":"assistant","content":"Let me see. ","function_call":${recall}},"finish_reason":"function_call"}]}`,
    ),
    new Set(['read_memory']),
  );

  it('is read with its one call, and continued with a message of role function', () => {
    expect(reply.recalls).toEqual([
      { id: '#function read_memory', name: 'read_memory', argumentsJson: '{"id":"mem_a"}' },
    ]);
    const sent = encoder.encode('{"messages":[{"role":"user","content":"a"}]}');
    const answers = [{ call: reply.recalls[0]!, text: 'the text' }];
    expect(JSON.parse(shown(openaiChat.continueWith(sent, reply, answers)))).toEqual({
      messages: [
        { role: 'user', content: 'a' },
        {
          role: 'assistant',
          content: 'Let me see. ',
          function_call: { name: 'read_memory', arguments: '{"id":"mem_a"}' },
        },
        { role: 'function', name: 'read_memory', content: 'the text' },
      ],
    });
  });

  it('reaches the client without the private call, and with its own calls', () => {
    const said = '{"choices":[{"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}';
    const last = openaiChat.readResponse(encoder.encode(said), new Set(['read_memory']));
    expect(shown(openaiChat.writeResponse(encoder.encode(said), [reply], last))).toBe(
      '{"choices":[{"message":{"role":"assistant","content":"Let me see. Done."},"finish_reason":"stop"}]}',
    );
    const alone = `{"choices":[{"message":{"role":"assistant","content":null,"function_call":${recall}},"finish_reason":"function_call"}]}`;
    const read = openaiChat.readResponse(encoder.encode(alone), new Set(['read_memory']));
    expect(shown(openaiChat.writeResponse(encoder.encode(alone), [], read))).toBe(
      '{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}',
    );
    const own = alone.replace('read_memory', 'clock');
    const client = openaiChat.readResponse(encoder.encode(own), new Set(['read_memory']));
    expect(client.calls).toMatchObject([{ name: 'clock' }]);
    expect(shown(openaiChat.writeResponse(encoder.encode(own), [], client))).toBe(own);
  });
});

describe('a stream in the legacy function form', () => {
  const chunk = (delta: unknown, finish: string | null = null) =>
    sseText({ id: 'c', choices: [{ index: 0, delta, finish_reason: finish }] });
  const calling = (name: string) => [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'Let me see. ' }),
    chunk({ function_call: { name, arguments: '' } }),
    chunk({ function_call: { arguments: '{"id":' } }),
    chunk({ function_call: { arguments: '"mem_a"}' } }),
    chunk({}, 'function_call'),
    sseText('[DONE]'),
  ];

  it('holds back only the private call, and continues after it', () => {
    const { out, end } = relayed(
      openaiChat.openStream({ privateTools: new Set(['read_memory']) }),
      calling('read_memory').join(''),
    );
    expect(out).not.toContain('function_call');
    expect(out).toContain('Let me see. ');
    expect(end).toMatchObject({
      status: 'recall',
      reply: { recalls: [{ name: 'read_memory', argumentsJson: '{"id":"mem_a"}' }] },
    });
  });

  it("passes the client's own call with the bytes of the provider", () => {
    const { out, end } = relayed(
      openaiChat.openStream({ privateTools: new Set(['read_memory']) }),
      calling('clock').join(''),
    );
    expect(out + tailOf(end)).toBe(calling('clock').join(''));
    expect(end).toMatchObject({
      status: 'done',
      reply: { calls: [{ name: 'clock' }], finish: 'function_call' },
    });
  });
});
