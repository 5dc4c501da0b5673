/** Checks that generated conversations of each framework survive the way into the wire format and back: decision 42. */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type JsonRecord, isRecord, objectsOf } from '../../conversation/json-scan.ts';
import { itemBlocks, itemForm } from './agents-items.ts';
import { type SdkMessage, sdkForm } from './ai-sdk-messages.ts';
import { langchainForm, replyBlocks as langchainReply } from './langchain-messages.ts';
import { type MessageForm, wireRequest } from './wire-body.ts';

// Generated values: any text, with halves of characters, and names that objects have

const text = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
  fc.constantFrom('\ud800', '"\\\u2028', '__proto__', 'toString', '[Folded', '{"at":0}', ' '),
);
// LangChain's own copies of messages lose a member with the name `__proto__`.
const keys = text.filter((name) => name !== '__proto__');
const input = fc.dictionary(keys, fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)), {
  maxKeys: 3,
  noNullPrototype: true,
});
const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 9 })
  .map((bytes) => Buffer.from(bytes).toString('base64'));
const url = fc.webUrl().map((address) => new URL(address).href);
const options = fc.record({ one: input });
/** The numbers of the calls of each step; ids repeat between steps. */
const steps = fc.array(fc.array(fc.nat({ max: 3 }), { maxLength: 3 }), { minLength: 1, maxLength: 5 });

/** Returns an arbitrary of the messages of all steps. */
const inSteps = <Message>(step: (calls: readonly string[]) => fc.Arbitrary<readonly Message[]>) =>
  steps.chain((all) =>
    fc
      .tuple(...all.map((calls) => step([...new Set(calls)].map((number) => `call ${number}`))))
      .map((messages) => messages.flat()),
  );

// The AI SDK

const sdkData = fc.oneof(
  base64.map((data) => ({ type: 'data', data })),
  fc.uint8Array({ minLength: 1, maxLength: 9 }).map((data) => ({ type: 'data', data })),
  url.map((address) => ({ type: 'url', url: new URL(address) })),
);
const sdkFile = fc.record({
  type: fc.constant('file'),
  mediaType: fc.constantFrom('image/png', 'application/pdf', 'audio/wav'),
  data: sdkData,
  providerOptions: options,
});
const sdkText = fc.record({ type: fc.constant('text'), text, providerOptions: options });
const sdkOutput = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'error-text'), value: text }),
  fc.record({ type: fc.constantFrom('json', 'error-json'), value: input }),
  fc.record({ type: fc.constant('execution-denied'), reason: text }),
  fc.record({
    type: fc.constant('content'),
    value: fc.array(
      fc.oneof(
        sdkText,
        sdkFile,
        url.map((address) => ({ type: 'image-url', url: address })),
      ),
    ),
  }),
);
const sdkMessages: fc.Arbitrary<readonly SdkMessage[]> = inSteps((calls) =>
  fc
    .record({
      said: fc.array(
        fc.oneof(
          sdkText,
          fc.record({ type: fc.constant('reasoning'), text, providerOptions: options }),
          fc.record({ type: fc.constant('custom'), kind: text, providerOptions: options }),
          fc.record({
            type: fc.constant('tool-call'),
            toolCallId: text,
            toolName: text,
            input,
            providerExecuted: fc.constant(true),
          }),
        ),
        { maxLength: 4 },
      ),
      inputs: fc.array(input, { minLength: calls.length, maxLength: calls.length }),
      outputs: fc.array(sdkOutput, { minLength: calls.length, maxLength: calls.length }),
      asked: fc.array(fc.oneof(sdkText, sdkFile), { minLength: 1, maxLength: 3 }),
      approvalId: text,
      end: sdkText,
    })
    .map(({ said, inputs, outputs, asked, approvalId, end }) => {
      const called = calls.map((toolCallId, at) => ({
        type: 'tool-call',
        toolCallId,
        toolName: `tool ${at}`,
        input: inputs[at]!,
      }));
      const results = calls.map((toolCallId, at) => ({
        type: 'tool-result',
        toolCallId,
        toolName: `tool ${at}`,
        output: outputs[at]!,
      }));
      return [
        { role: 'user', content: asked },
        { role: 'assistant', content: [...said, ...(called.length > 0 ? called : [end])] },
        ...(results.length > 0
          ? [
              {
                role: 'tool',
                content: [{ type: 'tool-approval-response', approvalId, approved: true }, ...results],
              },
            ]
          : []),
      ];
    }),
);

// LangChain

const langchainPart = fc.oneof(
  fc.record({ type: fc.constant('text'), text }),
  base64.map((data) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } })),
  fc.record({ type: fc.constant('image'), url }),
  fc.record({ type: fc.constant('audio'), data: base64, mimeType: fc.constant('audio/wav') }),
);
const langchainMessages: fc.Arbitrary<readonly BaseMessage[]> = inSteps((calls) =>
  fc
    .record({
      asked: fc.oneof(text, fc.array(langchainPart, { minLength: 1, maxLength: 3 })),
      said: fc.oneof(
        text,
        fc.array(
          fc.oneof(
            fc.record({ type: fc.constant('text'), text }),
            fc.record({ type: fc.constant('thinking'), thinking: text, signature: text }),
            fc.record({ type: fc.constant('server_tool_use'), id: text, input }),
          ),
          { maxLength: 3 },
        ),
      ),
      end: text,
      inputs: fc.array(input, { minLength: calls.length, maxLength: calls.length }),
      outputs: fc.array(fc.oneof(text, fc.array(langchainPart, { minLength: 1, maxLength: 3 })), {
        minLength: calls.length,
        maxLength: calls.length,
      }),
      status: fc.constantFrom('success' as const, 'error' as const),
      extra: input,
      rule: fc.option(text),
      isRepeated: fc.boolean(),
    })
    .map(({ asked, said, end, inputs, outputs, status, extra, rule, isRepeated }) => {
      const called = calls.map((id, at) => ({ id, name: `tool ${at}`, args: inputs[at]! }));
      const repeated = called.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: args }));
      const parts =
        typeof said !== 'string'
          ? [...said, ...(isRepeated ? repeated : []), { type: 'text', text: end }]
          : said;
      return [
        ...(rule === null ? [] : [new SystemMessage(rule)]),
        new HumanMessage({ content: asked as never, id: 'h', name: 'Ann', additional_kwargs: extra }),
        new AIMessage({
          content: parts as never,
          tool_calls: called,
          id: 'a',
          additional_kwargs: { kept: extra },
        }),
        ...calls.map(
          (id, at) =>
            new ToolMessage({
              tool_call_id: id,
              name: `tool ${at}`,
              content: outputs[at]!,
              status,
              artifact: extra,
              metadata: extra,
            }),
        ),
      ];
    }),
);

// OpenAI Agents

const agentsPart = fc.oneof(
  fc.record({ type: fc.constant('input_text'), text, providerData: input }),
  fc.record({ type: fc.constant('input_image'), image: url, detail: fc.constant('low') }),
  fc.record({
    type: fc.constant('input_file'),
    file: base64.map((data) => `data:application/pdf;base64,${data}`),
  }),
);
const agentsItems: fc.Arbitrary<readonly JsonRecord[]> = inSteps((calls) =>
  fc
    .record({
      asked: fc.oneof(text, fc.array(agentsPart, { minLength: 1, maxLength: 3 })),
      rule: fc.option(text),
      sealed: text,
      said: fc.array(
        fc.oneof(
          fc.record({ type: fc.constant('output_text'), text, providerData: input }),
          fc.record({ type: fc.constant('refusal'), refusal: text }),
        ),
        { maxLength: 3 },
      ),
      inputs: fc.array(input, { minLength: calls.length, maxLength: calls.length }),
      outputs: fc.array(
        fc.oneof(
          text,
          text.map((words) => ({ type: 'text', text: words })),
          fc.array(agentsPart, { minLength: 1 }),
        ),
        { minLength: calls.length, maxLength: calls.length },
      ),
      extra: input,
    })
    .map(({ asked, rule, sealed, said, inputs, outputs, extra }) => [
      ...(rule === null ? [] : [{ role: 'system', content: rule }]),
      { role: 'user', content: asked },
      { type: 'reasoning', id: 'rs', content: [], providerData: { encrypted_content: sealed } },
      { type: 'message', role: 'assistant', status: 'completed', content: said },
      { type: 'shell_call', callId: 's', action: { commands: [sealed] } },
      { type: 'shell_call_output', callId: 's', output: [{ stdout: sealed }] },
      ...calls.map((callId, at) => ({
        type: 'function_call',
        callId,
        name: `tool ${at}`,
        arguments: JSON.stringify(inputs[at]!, undefined, 1),
        providerData: extra,
      })),
      ...calls.map((callId, at) => ({
        type: 'function_call_result',
        callId,
        name: `tool ${at}`,
        status: 'completed',
        output: outputs[at]!,
      })),
    ]),
);

// The laws

type Framework = {
  readonly name: string;
  readonly form: MessageForm<object>;
  readonly messages: fc.Arbitrary<readonly object[]>;
  /** Writes a reply as blocks, for a framework whose replies have the form of its messages. */
  readonly reply?: ((message: object) => readonly JsonRecord[]) | undefined;
  readonly isReply?: (message: object) => boolean;
};

const frameworks: readonly Framework[] = [
  {
    name: 'the AI SDK',
    form: sdkForm,
    messages: sdkMessages,
  },
  {
    name: 'LangChain',
    form: langchainForm,
    messages: langchainMessages,
    reply: (message) => langchainReply(message as AIMessage),
    isReply: (message) => AIMessage.isInstance(message),
  },
  {
    name: 'OpenAI Agents',
    form: itemForm,
    messages: agentsItems,
    reply: (item) => itemBlocks([item]),
    isReply: (item) =>
      /^(?:message|reasoning|function_call)$/.test(String((item as JsonRecord)['type'])) &&
      (item as JsonRecord)['role'] !== 'user',
  },
];

const wireOf = ({ form }: Framework, messages: readonly object[]) =>
  wireRequest({ model: 'm', messages, tools: [] }, form);

/** Returns the body as an object, and its bytes after a change. */
function changed(body: Uint8Array, change: (messages: JsonRecord[]) => readonly JsonRecord[]): Uint8Array {
  const sent = JSON.parse(new TextDecoder().decode(body)) as { messages: JsonRecord[] };
  return new TextEncoder().encode(JSON.stringify({ ...sent, messages: change(sent.messages) }, undefined, 1));
}

/** Returns a message as plain data. */
const plain = (message: object): unknown =>
  'toDict' in message ? (message as BaseMessage).toDict() : message;

const runs = { numRuns: 60 };

describe.each(frameworks)('messages of $name', (framework) => {
  it('come back as the very same objects when nothing is folded, and after any of them were dropped', () => {
    fc.assert(
      fc.property(
        framework.messages,
        fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
        (messages, keeps) => {
          const { body, read } = wireOf(framework, messages);
          const whole = read(body).messages;
          expect(whole.length).toBe(messages.length);
          expect(whole.every((message, at) => message === messages[at])).toBe(true);
          const sent = JSON.parse(new TextDecoder().decode(body)) as { messages: JsonRecord[] };
          const kept = sent.messages.filter((_, at) => keeps[at]);
          const rest = new TextEncoder().encode(JSON.stringify({ ...sent, messages: kept }));
          const left = read(rest).messages;
          const leading = messages.length - sent.messages.length;
          const expected = messages.filter((_, at) => at < leading || keeps[at - leading]);
          expect(left.length).toBe(expected.length);
          expect(left.every((message, at) => message === expected[at])).toBe(true);
        },
      ),
      runs,
    );
  });

  it('are equal when they are built anew from all their blocks', () => {
    fc.assert(
      fc.property(framework.messages, (messages) => {
        const { body, read } = wireOf(framework, messages);
        const rebuilt = read(changed(body, (all) => all)).messages;
        expect(rebuilt.map(plain)).toEqual(messages.map(plain));
      }),
      runs,
    );
  });

  it('change in nothing but the results that are folded', () => {
    fc.assert(
      fc.property(framework.messages, (messages) => {
        const { body, read } = wireOf(framework, messages);
        const stub = '[Folded: here it was.]';
        const folded = read(
          changed(body, (all) =>
            all.map((message) => ({
              ...message,
              content: objectsOf(message['content']).map((block) =>
                block['type'] === 'tool_result' && typeof block['content'] === 'string'
                  ? { ...block, content: stub }
                  : block,
              ),
            })),
          ),
        ).messages;
        expect(folded.length).toBe(messages.length);
        const masked = (message: object) => masking(plain(message), stub);
        for (const [at, message] of messages.entries()) {
          const result = folded[at]!;
          if (!JSON.stringify(plain(result)).includes(stub)) expect(plain(result)).toEqual(plain(message));
          else expect(masked(result)).toEqual(masked(message));
        }
      }),
      runs,
    );
  });

  it('that were replies come back from the blocks that are stored', () => {
    fc.assert(
      fc.property(framework.messages, (messages) => {
        const { reply, isReply } = framework;
        if (!reply || !isReply) return;
        for (const message of messages.filter(isReply)) {
          const turn = JSON.stringify({ messages: [{ role: 'assistant', content: reply(message) }] });
          const { messages: back } = wireOf(framework, []).read(new TextEncoder().encode(turn));
          if (reply(message).length > 0) expect(back.map(plain)).toEqual([plain(message)]);
        }
      }),
      runs,
    );
  });
});

/** Returns data in which the place of a result is masked: its text, and the form that the text has. */
function masking(value: unknown, stub: string): unknown {
  if (Array.isArray(value)) return value.map((one) => masking(one, stub));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const isOutput = key === 'output' && value['type'] !== 'shell_call_output';
      const isContent = key === 'content' && 'tool_call_id' in value;
      return [key, isOutput || isContent ? stub : masking(inner, stub)];
    }),
  );
}
