/** Generates conversations in the messages of each framework, for the tests of the adapters and of the codecs over values. */
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import * as fc from 'fast-check';

/** Returns a message as plain data. */
export function plainMessage(message: object): unknown {
  return 'toDict' in message ? (message as BaseMessage).toDict() : message;
}

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
export const sdkMessages: fc.Arbitrary<readonly object[]> = inSteps((calls) =>
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
export const langchainMessages: fc.Arbitrary<readonly BaseMessage[]> = inSteps((calls) =>
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
export const agentsItems: fc.Arbitrary<readonly object[]> = inSteps((calls) =>
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
